//! What is wrong with a filter, and where.

use std::fmt;

/// The first mistake in a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Characters before the mistake.
    pub at: usize,
    /// Characters of it; at least 1.
    pub length: usize,
    pub message: String,
    text: String,
}

impl std::error::Error for FilterError {}

impl FilterError {
    pub(super) fn new(at: usize, length: usize, message: impl Into<String>) -> Self {
        Self { at, length: length.max(1), message: message.into(), text: String::new() }
    }

    #[must_use]
    pub(super) fn of(self, text: &str) -> Self {
        Self { text: text.to_owned(), ..self }
    }

    /// Line and column of the mistake, from 0.
    pub fn place(&self) -> (usize, usize) {
        let before = || self.text.chars().take(self.at);
        let line = before().filter(|&letter| letter == '\n').count();
        (line, before().collect::<Vec<_>>().iter().rev().take_while(|&&letter| letter != '\n').count())
    }
}

/// The line, and below it a mark and what is wrong.
impl fmt::Display for FilterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.place();
        let text = self.text.lines().nth(line).unwrap_or_default();
        let mark = "^".repeat(self.length.min(text.chars().count().saturating_sub(column)).max(1));
        write!(formatter, "column {}: {}\n  {text}\n  {:column$}{mark}", column + 1, self.message, "")
    }
}
