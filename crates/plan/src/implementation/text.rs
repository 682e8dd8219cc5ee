//! Version texts in a library's constants.

use super::{super::Library, Evidence};

/// The longest text that is believed to be a version, in bytes.
const MAX_TEXT: usize = 64;
/// How much of a library's constants is searched, in bytes: those of the largest MPI library seen have 4 MB.
const MAX_SEARCHED: usize = 64 << 20;
/// How often a text may occur before the search ends.
const MAX_OCCURRENCES: usize = 16;

/// The string that an exported array of characters holds, if it is printable.
pub(super) fn string_of(evidence: &Evidence<'_, '_>, name: &str) -> Option<String> {
    let bytes = evidence.library.bytes_of(evidence.names.get(name)?, MAX_TEXT as u64);
    let text = bytes.split(|&byte| byte == 0).next()?;
    printable(text).filter(|text| !text.is_empty())
}

/// The words that follow each occurrence of `text`; empty if it occurs nowhere.
pub(super) fn after(library: &Library<'_>, text: &[u8]) -> Vec<String> {
    let mut left = MAX_SEARCHED;
    let mut words = Vec::new();
    for bytes in library.constants() {
        let bytes = bytes.get(..left).unwrap_or(bytes);
        left -= bytes.len();
        let rest = occurrences(bytes, text).filter_map(|at| bytes.get(at + text.len()..)).take(MAX_OCCURRENCES);
        words.extend(rest.map(|rest| {
            let word = rest.iter().take(MAX_TEXT).take_while(|byte| byte.is_ascii_graphic());
            word.map(|&byte| char::from(byte)).collect()
        }));
    }
    words
}

fn occurrences(bytes: &[u8], text: &[u8]) -> impl Iterator<Item = usize> {
    let first = text.first().copied();
    let starts = bytes.iter().enumerate().filter(move |&(_, byte)| Some(*byte) == first);
    starts.filter(move |&(at, _)| bytes.get(at..).is_some_and(|rest| rest.starts_with(text))).map(|(at, _)| at)
}

/// `2021.18.1`, `4.1.4`, `5.0.0rc2`: a number, then at least one more.
pub(super) fn is_version(word: &str) -> bool {
    let mut parts = word.split('.');
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.next().is_some_and(number) && parts.next().is_some_and(|part| part.starts_with(|c: char| c.is_ascii_digit()))
}

/// Versions reach the user's terminal: nothing that could steer it passes.
fn printable(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    text.chars().all(|c| c.is_ascii_graphic() || c == ' ').then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_from_formats() {
        for word in ["4.1.4", "2021.18", "5.0.0rc2", "2.3.7"] {
            assert!(is_version(word), "{word}");
        }
        for word in ["%s", "for", "4", "", "v4.1.4", "4.", "4.x"] {
            assert!(!is_version(word), "{word}");
        }
    }

    /// Invariant PRINTABLE.
    #[test]
    fn nothing_passes_that_could_steer_a_terminal() {
        assert_eq!(printable(b"4.1.4 (rc)"), Some("4.1.4 (rc)".to_owned()));
        assert_eq!(printable(b"\x1b[2J4.1"), None);
        assert_eq!(printable(b"\xff"), None);
        assert_eq!(printable("4·1".as_bytes()), None);
    }

    #[test]
    fn every_occurrence_is_found() {
        assert_eq!(occurrences(b"ab abab", b"ab").collect::<Vec<_>>(), [0, 3, 5]);
        assert_eq!(occurrences(b"ab", b"abc").count(), 0);
    }
}
