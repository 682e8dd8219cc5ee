//! JSON that somebody else may have written, made fit for a terminal.

use std::borrow::Cow;

use mpiprobe_discover::is_harmless;

/// The text with all characters in its strings replaced, escaped or not, that could drive a terminal. mpiprobe writes none of those:
/// what it has recorded stays as it is. `None`: it is no UTF-8.
pub(super) fn harmless(json: &[u8]) -> Option<Cow<'_, str>> {
    let json = str::from_utf8(json).ok()?;
    // Hardly anything has to be looked at letter by letter.
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'\\';
    Some(if json.as_bytes().iter().all(is_plain) { Cow::Borrowed(json) } else { Cow::Owned(replaced(json)) })
}

fn replaced(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut characters = json.chars();
    let mut in_string = false;
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                in_string = !in_string;
                text.push('"');
            }
            // People's JSON has lines.
            '\n' | '\r' | '\t' if !in_string => text.push(' '),
            // Outside of strings there is no backslash.
            '\\' => match characters.next() {
                Some(kept @ ('"' | '\\' | '/')) => text.extend(['\\', kept]),
                escaped => {
                    if escaped == Some('u') {
                        // Its four digits; whoever has written others gets them back as text.
                        characters = behind_digits(characters.as_str()).chars();
                    }
                    text.push(char::REPLACEMENT_CHARACTER);
                }
            },
            character if is_harmless(character) => text.push(character),
            _ => text.push(char::REPLACEMENT_CHARACTER),
        }
    }
    text
}

/// What comes after up to four of them.
fn behind_digits(text: &str) -> &str {
    let digits = text.chars().take(4).take_while(char::is_ascii_hexdigit).count();
    text.get(digits..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_drive_a_terminal_is_replaced_and_nothing_else() {
        let same = r#"{"path":"C:\\u001b \"quoted\" Grüße","n":1.5e-3}"#;
        assert_eq!(harmless(same.as_bytes()).as_deref(), Some(same));
        for hostile in ["\\u001b[2J", "\\u009b2J", "\u{9b}2J", "\\n", "\u{202e}", "\u{1b}[2J", "\\u202E", "\\ud83d"] {
            let json = format!("\"{hostile}\"");
            let text = harmless(json.as_bytes()).unwrap();
            let read: String = serde_json::from_str(&text).unwrap();
            assert!(
                read.chars().all(is_harmless) && read.starts_with(char::REPLACEMENT_CHARACTER),
                "{hostile:?}: {read:?}"
            );
        }
        assert_eq!(harmless(b"\xff"), None);
        assert!(matches!(harmless(b"{\"a\": \"plain ~ text\"}"), Some(Cow::Borrowed(_))));
        assert_eq!(harmless(b"{\n\t\"a\": \"b\\\"\n\"\r\n}").as_deref(), Some("{  \"a\": \"b\\\"\u{fffd}\"  }"));
    }
}
