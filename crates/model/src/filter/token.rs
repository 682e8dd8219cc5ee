//! From characters to tokens.

use super::{Dimension, FilterError};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Word(String),
    Text(String),
    Number(f64, Dimension),
    /// `==`, `!=`, `<`, `<=`, `>`, `>=`, `~`, `!~`, `..`, `(`, `)`, `,`
    Sign(&'static str),
    End,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// Characters before it.
    pub(super) at: usize,
    pub(super) length: usize,
}

/// Longer ones first.
const SIGNS: [&str; 13] = ["==", "!=", "<=", ">=", "!~", "..", "<", ">", "~", "(", ")", ",", "="];

/// Units, what they measure and how much of it they are.
pub(super) const UNITS: [(&str, Dimension, f64); 22] = [
    ("ns", Dimension::Time, 1.0),
    ("us", Dimension::Time, 1e3),
    ("µs", Dimension::Time, 1e3),
    ("ms", Dimension::Time, 1e6),
    ("s", Dimension::Time, 1e9),
    ("min", Dimension::Time, 60e9),
    ("h", Dimension::Time, 3600e9),
    ("%", Dimension::Percent, 1.0),
    ("B", Dimension::Bytes, 1.0),
    ("kB", Dimension::Bytes, 1e3),
    ("KB", Dimension::Bytes, 1e3),
    ("MB", Dimension::Bytes, 1e6),
    ("GB", Dimension::Bytes, 1e9),
    ("TB", Dimension::Bytes, 1e12),
    ("KiB", Dimension::Bytes, 1024.0),
    ("kiB", Dimension::Bytes, 1024.0),
    ("MiB", Dimension::Bytes, 1_048_576.0),
    ("GiB", Dimension::Bytes, 1_073_741_824.0),
    ("TiB", Dimension::Bytes, 1_099_511_627_776.0),
    ("k", Dimension::Count, 1e3),
    ("M", Dimension::Count, 1e6),
    ("G", Dimension::Count, 1e9),
];

/// An amount of data as it is written in filters: `500MB`, `4GiB`; bytes.
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let (.., size) =
        UNITS.iter().find(|(name, dimension, _)| *name == unit.trim() && *dimension == Dimension::Bytes)?;
    let bytes = number.parse::<f64>().ok()? * size;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "there is no sign, and the range is asked for"
    )]
    (1.0..9e18).contains(&bytes).then_some(bytes as u64)
}

/// All tokens of a text, the last of which is [`TokenKind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, FilterError> {
    let letters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        let rest = letters.get(at..).unwrap_or_default();
        if letter.is_whitespace() || letter == '#' {
            at += blank(rest);
            continue;
        }
        let (kind, length) = token(rest, at)?;
        tokens.push(Token { kind, at, length });
        at += length;
    }
    tokens.push(Token { kind: TokenKind::End, at: letters.len(), length: 1 });
    Ok(tokens)
}

/// Blanks, or a comment: from `#` to the end of the line.
fn blank(rest: &[char]) -> usize {
    match rest.first() {
        Some('#') => rest.iter().take_while(|letter| **letter != '\n').count(),
        _ => 1,
    }
}

/// The text on one line, without comments.
pub(super) fn line(text: &str) -> Result<String, FilterError> {
    let letters: Vec<char> = text.chars().collect();
    let (mut line, mut end) = (String::new(), 0);
    for token in tokens(text)? {
        if token.kind == TokenKind::End {
            break;
        }
        if token.at > end && !line.is_empty() {
            line.push(' ');
        }
        // A text in quotes may go over lines, too.
        let written = letters.iter().skip(token.at).take(token.length);
        line.extend(written.map(|letter| if letter.is_control() { ' ' } else { *letter }));
        end = token.at + token.length;
    }
    Ok(line)
}

fn token(rest: &[char], at: usize) -> Result<(TokenKind, usize), FilterError> {
    let first = rest.first().copied().unwrap_or_default();
    let is_number = |letter: char| letter.is_ascii_digit();
    if is_number(first) || first == '-' && rest.get(1).copied().is_some_and(is_number) {
        return number(rest, at);
    }
    if first.is_alphabetic() || first == '_' {
        let word: String = rest.iter().take_while(|letter| letter.is_alphanumeric() || **letter == '_').collect();
        let length = word.chars().count();
        return Ok((TokenKind::Word(word), length));
    }
    if first == '"' || first == '\'' {
        return quoted(rest, first, at);
    }
    let starts = |sign: &&&str| sign.chars().zip(rest).filter(|(a, b)| a == *b).count() == sign.len();
    match SIGNS.iter().find(starts) {
        // What people type who think of other languages.
        Some(&"=") => Ok((TokenKind::Sign("=="), 1)),
        Some(sign) => Ok((TokenKind::Sign(sign), sign.len())),
        None => Err(FilterError::new(at, 1, format!("{first:?} means nothing here"))),
    }
}

/// A backslash goes with the letter after it: it belongs to the pattern, but for a quote.
fn quoted(rest: &[char], quote: char, at: usize) -> Result<(TokenKind, usize), FilterError> {
    let mut text = String::new();
    let mut place = 1;
    while let Some(&letter) = rest.get(place) {
        match (letter, rest.get(place + 1)) {
            (letter, _) if letter == quote => return Ok((TokenKind::Text(text), place + 1)),
            ('\\', Some(&next)) => {
                if next != quote {
                    text.push('\\');
                }
                text.push(next);
                place += 2;
            }
            (letter, _) => {
                text.push(letter);
                place += 1;
            }
        }
    }
    Err(FilterError::new(at, rest.len(), "this text has no end"))
}

fn number(rest: &[char], at: usize) -> Result<(TokenKind, usize), FilterError> {
    let mut length = 1;
    while let Some(&letter) = rest.get(length) {
        // "0..15" is a range, "0.5" a number.
        let is_point = letter == '.' && rest.get(length + 1).is_some_and(char::is_ascii_digit);
        if !(letter.is_ascii_digit() || letter == '_' || is_point) {
            break;
        }
        length += 1;
    }
    let digits: String = rest.iter().take(length).filter(|letter| **letter != '_').collect();
    let value: f64 = digits.parse().map_err(|_| FilterError::new(at, length, "this is no number"))?;
    let unit: String =
        rest.iter().skip(length).take_while(|letter| letter.is_alphabetic() || **letter == '%').collect();
    let all = length + unit.chars().count();
    if unit.is_empty() {
        return Ok((TokenKind::Number(value, Dimension::Count), all));
    }
    if let Some((_, dimension, of)) = UNITS.iter().find(|(name, ..)| *name == unit) {
        return Ok((TokenKind::Number(value * of, *dimension), all));
    }
    let message = format!("there is no unit {unit}; there are ns us ms s min h, B kB MB GB KiB MiB GiB, %");
    Err(FilterError::new(at + length, all - length, message))
}
