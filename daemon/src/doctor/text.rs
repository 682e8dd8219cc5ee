//! Small things about words.

use std::error::Error;

use mpiprobe_model::finding_and_fix;

/// `1 process`, `2 processes`.
pub(super) fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
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
}
