//! A filter as it was typed, and whether it keeps a row.

use std::{str::FromStr, sync::Arc};

use super::{Facts, FilterError, expression::Expression, parse, token};

/// A condition on rows, with the text that it was made from.
#[derive(Clone, Debug)]
pub struct Filter {
    text: String,
    line: String,
    expression: Arc<Expression>,
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let expression = parse::expression(text).map_err(|error| error.of(text))?;
        let line = token::line(text).map_err(|error| error.of(text))?;
        Ok(Self { text: text.trim().to_owned(), line, expression: Arc::new(expression) })
    }
}

/// The same condition, as it was typed.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Filter {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// On one line and without comments.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Whether a text asks for nothing: there are blanks and comments in it only.
    pub fn is_blank(text: &str) -> bool {
        token::line(text).is_ok_and(|line| line.is_empty())
    }

    /// Whether a row that tells this is shown.
    pub fn keeps(&self, facts: &Facts<'_>) -> bool {
        self.expression.holds(facts) != Some(false)
    }
}
