//! Names that other users chose (commands, paths, environment) made fit for a terminal, a log and JSON.

use std::fmt::Write as _;

/// The text of `bytes`, with everything that could drive a terminal or mislead a reader escaped as `\xNN` or `\u{N}`:
/// control characters, bidirectional overrides and bytes that are not UTF-8.
///
/// A process may call itself `ring\x1b[2J`; root looks at the list.
pub fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_harmless(character) {
                text.push(character);
            } else {
                text.extend(character.escape_default());
            }
        }
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Whether a character can neither drive a terminal nor mislead a reader.
pub fn is_harmless(character: char) -> bool {
    !character.is_control() && !is_invisible(character)
}

/// Zero-width characters, line and paragraph separators, and the marks that reverse the direction of text.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The last component of a path, without trailing slashes; the whole if it has none.
pub(crate) fn base_name(path: &[u8]) -> &[u8] {
    let trimmed = path.strip_suffix(b"/").unwrap_or(path);
    trimmed.rsplit(|byte| *byte == b'/').next().unwrap_or(trimmed)
}

/// A value fit for a name: short, printable ASCII without spaces.
pub(crate) fn plain(value: &[u8]) -> Option<&str> {
    let fit = !value.is_empty() && value.len() <= 128 && value.iter().all(u8::is_ascii_graphic);
    fit.then(|| std::str::from_utf8(value).ok()).flatten()
}

/// A name in `/proc` that is a pid: digits alone, no sign, no leading zero.
pub(crate) fn parse_pid(name: &str) -> Option<u32> {
    let digits = name.bytes().all(|byte| byte.is_ascii_digit()) && !name.starts_with('0');
    digits.then(|| name.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_numbers_are_pids() {
        assert_eq!(parse_pid("4711"), Some(4711));
        for other in ["", "0", "007", "+1", "self", "1x", "99999999999"] {
            assert_eq!(parse_pid(other), None, "{other}");
        }
    }

    /// Invariant PRINTABLE.
    #[test]
    fn ordinary_text_is_unchanged() {
        assert_eq!(printable("Müller's ring (v2)".as_bytes()), "Müller's ring (v2)");
    }

    #[test]
    fn terminal_sequences_and_broken_utf8_are_shown_not_sent() {
        assert_eq!(printable(b"a\x1b[2J\n\xff"), "a\\u{1b}[2J\\n\\xff");
        assert_eq!(printable("gpj\u{202e}.exe".as_bytes()), "gpj\\u{202e}.exe");
    }

    #[test]
    fn base_names() {
        assert_eq!(base_name(b"/usr/bin/ring"), b"ring");
        assert_eq!(base_name(b"ring"), b"ring");
        assert_eq!(base_name(b"dir/"), b"dir");
        assert_eq!(base_name(b""), b"");
    }

    proptest! {
        #[test]
        fn never_lets_a_control_character_through(bytes: Vec<u8>) {
            prop_assert!(!printable(&bytes).chars().any(char::is_control));
        }
    }
}
