//! Small things about words.

use std::error::Error;

/// `1 process`, `2 processes`.
pub(super) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// What an error says is wrong, and what it says is to be done about it.
///
/// By this program's convention the second part of a message follows a semicolon or stands on the next line.
pub(super) fn finding_and_fix(error: &dyn Error) -> (String, Option<String>) {
    let message = error.to_string();
    match message.split_once('\n').or_else(|| message.split_once("; ")) {
        Some((finding, fix)) => (finding.to_owned(), Some(fix.trim().to_owned())),
        None => (message, None),
    }
}

/// The first part alone.
pub(super) fn finding_of(error: &dyn Error) -> String {
    finding_and_fix(error).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_with_words() {
        assert_eq!([0, 1, 2].map(|number| counted(number, "job", "jobs")), ["0 jobs", "1 job", "2 jobs"]);
    }

    #[test]
    fn messages_are_taken_apart() {
        let parts = |message: &str| finding_and_fix(&std::io::Error::other(message));
        let fix = |text: &str| Some(text.to_owned());
        assert_eq!(parts("process 5 is bob's; run it as root"), ("process 5 is bob's".into(), fix("run it as root")));
        assert_eq!(
            parts("it runs; badly\n  Run it on the host."),
            ("it runs; badly".into(), fix("Run it on the host."))
        );
        assert_eq!(parts("process 5 has ended"), ("process 5 has ended".into(), None));
    }
}
