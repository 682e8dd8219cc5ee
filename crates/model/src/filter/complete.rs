//! What may come next in a filter that is being typed.

use super::{
    Dimension, Field, Values,
    expected::Expected,
    token::{Token, TokenKind, UNITS, tokens},
};

/// More are not offered at once.
const MOST: usize = 200;

/// Something that can be typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub text: String,
    /// What it means, in a few words; empty if it says so itself.
    pub what: String,
}

/// What may stand at the cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Characters before what a candidate replaces; that ends at the cursor.
    pub from: usize,
    /// Likely ones first.
    pub candidates: Vec<Candidate>,
    /// Candidates beyond those.
    pub more: usize,
}

/// What has been typed of something.
struct Begun {
    from: usize,
    text: String,
}

/// `cursor`: characters before it.
pub fn complete(text: &str, cursor: usize, known: &Values) -> Completion {
    let before: Vec<char> = text.chars().take(cursor).collect();
    let Some((tokens, begun)) = split(&before) else { return Completion::default() };
    let expected = Expected::after(&tokens);
    let from = begun.as_ref().map_or(before.len(), |begun| begun.from);
    let typed = begun.map(|begun| begun.text).unwrap_or_default();
    let touches = from.checked_sub(1).and_then(|last| before.get(last)).copied();
    let mut candidates = match expected {
        // Units go with a number; without one there is nothing to offer.
        Expected::Value(field) if field.dimension() != Dimension::Text => {
            let is_begun = touches.is_some_and(|letter| letter.is_ascii_digit());
            if is_begun { units(field.dimension(), &typed) } else { Vec::new() }
        }
        _ => candidates(expected, &typed, known),
    };
    // What would go on where something else ends needs a blank between.
    let needs_blank = touches.is_some_and(|letter| !letter.is_whitespace() && letter != '(');
    let has_blank = text.chars().nth(before.len()).is_some_and(char::is_whitespace);
    for candidate in &mut candidates {
        if needs_blank && matches!(expected, Expected::Joint { .. } | Expected::Sign(_)) {
            candidate.text.insert(0, ' ');
        }
        if has_blank && candidate.text.ends_with(' ') {
            candidate.text.pop();
        }
    }
    let more = candidates.len().saturating_sub(MOST);
    candidates.truncate(MOST);
    Completion { from, candidates, more }
}

/// The tokens that are complete, and what has been typed of the next one. `None`: nobody can say what is meant.
fn split(before: &[char]) -> Option<(Vec<Token>, Option<Begun>)> {
    let text = |from: usize| before.iter().skip(from).collect::<String>();
    let begun = |from: usize| Some(Begun { from, text: text(from) });
    let whole: String = before.iter().collect();
    let mut known = match tokens(&whole) {
        Ok(tokens) => tokens,
        Err(error) => {
            let mut known = tokens(&before.iter().take(error.at).collect::<String>()).ok()?;
            known.pop();
            return match before.get(error.at)? {
                '"' | '\'' | '!' => Some((known, begun(error.at))),
                // A unit: its number is no value yet.
                letter if letter.is_alphabetic() => known.pop().map(|_| (known, begun(error.at))),
                _ => None,
            };
        }
    };
    known.pop();
    let touching = known.last().filter(|last| last.at + last.length == before.len());
    let from = match touching.map(|last| (&last.kind, last.at)) {
        Some((TokenKind::Word(_), at)) => at,
        Some((TokenKind::Number(..), at)) => {
            let is_unit = |letter: &&char| letter.is_alphabetic() || **letter == '%';
            before.len() - before.iter().skip(at).rev().take_while(is_unit).count()
        }
        Some((TokenKind::Sign(sign), at)) if !["(", ")", ",", ".."].contains(sign) => at,
        _ => return Some((known, None)),
    };
    known.pop();
    Some((known, begun(from)))
}

fn candidates(expected: Expected, typed: &str, known: &Values) -> Vec<Candidate> {
    let begins = |text: &str| starts_with(text, typed);
    let words = |words: &[(&str, &str)]| {
        let words = words.iter().filter(|(word, _)| begins(word));
        words.map(|(word, what)| Candidate { text: (*word).to_owned(), what: (*what).to_owned() }).collect()
    };
    match expected {
        Expected::Condition => {
            let fields = Field::ALL.iter().filter(|field| begins(field.name()));
            let field =
                |field: &Field| Candidate { text: format!("{} ", field.name()), what: field.what().replace('`', "") };
            let mut candidates: Vec<Candidate> = fields.map(field).collect();
            candidates.extend::<Vec<Candidate>>(words(&[("not ", "the opposite of what follows")]));
            candidates
        }
        Expected::Sign(field) if field.dimension() == Dimension::Text => words(&[
            ("== ", "is"),
            ("~ ", "matches a regular expression"),
            ("!= ", "is not"),
            ("!~ ", "does not match"),
            ("in ", "is one of: in (\"a\", \"b\")"),
        ]),
        Expected::Sign(_) => words(&[
            ("== ", "is"),
            ("> ", "more than"),
            (">= ", "at least"),
            ("< ", "less than"),
            ("<= ", "at most"),
            ("!= ", "is not"),
            ("in ", "is in a range or a set: in 0..15, in (1, 3)"),
        ]),
        Expected::Value(field) => values(known.get(field), typed, quoted),
        Expected::Pattern(field) => values(known.get(field), typed, |value| quoted(&regex::escape(value))),
        Expected::Joint { open } => {
            let mut joints = vec![("and ", "both hold"), ("or ", "one holds")];
            joints.extend(open.then_some((") ", "")));
            words(&joints)
        }
        Expected::Nothing => Vec::new(),
    }
}

fn starts_with(text: &str, typed: &str) -> bool {
    let mut letters = text.chars().flat_map(char::to_lowercase);
    typed.chars().flat_map(char::to_lowercase).all(|letter| letters.next() == Some(letter))
}

/// Those that begin as typed, and then those that have it anywhere in them.
fn values<'a>(
    known: impl Iterator<Item = &'a str>,
    typed: &str,
    write: impl Fn(&str) -> Option<String>,
) -> Vec<Candidate> {
    let typed = typed.trim_start_matches(['"', '\'']).to_lowercase();
    let fitting = known.filter(|value| value.to_lowercase().contains(&typed));
    let (first, second): (Vec<&str>, Vec<&str>) = fitting.partition(|value| starts_with(value, &typed));
    let written = first.into_iter().chain(second).filter_map(write);
    written.map(|text| Candidate { text, what: String::new() }).collect()
}

/// `None`: there is no way to write it.
fn quoted(value: &str) -> Option<String> {
    let quote = if value.contains('"') { '\'' } else { '"' };
    let is_plain = !value.ends_with('\\') && !value.contains(quote) && !value.contains(char::is_control);
    is_plain.then(|| format!("{quote}{value}{quote}"))
}

fn units(dimension: Dimension, typed: &str) -> Vec<Candidate> {
    let fitting = UNITS.iter().filter(|(name, of, _)| *of == dimension && name.starts_with(typed));
    fitting.map(|(name, ..)| Candidate { text: (*name).to_owned(), what: String::new() }).collect()
}
