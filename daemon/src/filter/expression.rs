//! Conditions, and whether they hold.

use std::{cmp::Ordering, str::FromStr, sync::Arc};

use regex_lite::Regex;

use super::{Fact, Facts, Field, FilterError, parse};

/// A condition on rows, with the text that it was made from.
#[derive(Clone, Debug)]
pub struct Filter {
    text: String,
    expression: Arc<Expression>,
}

#[derive(Debug)]
pub(super) enum Expression {
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Not(Box<Self>),
    Compare(Field, Comparison, Fact),
    Matches(Field, Regex),
    /// Bounds are inside.
    In(Field, Vec<(Fact, Fact)>),
    /// Any text of the row has this in it, whatever its case.
    Has(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let expression = parse::expression(text).map_err(|error| error.of(text))?;
        Ok(Self { text: text.trim().to_owned(), expression: Arc::new(expression) })
    }
}

impl Filter {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a row that tells this is shown.
    pub fn keeps(&self, facts: &Facts) -> bool {
        self.expression.holds(facts) != Some(false)
    }
}

impl Expression {
    /// `None`: the row does not tell.
    fn holds(&self, facts: &Facts) -> Option<bool> {
        match self {
            Self::And(a, b) => match (a.holds(facts), b.holds(facts)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (a, b) => a.and(b),
            },
            Self::Or(a, b) => match (a.holds(facts), b.holds(facts)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (a, b) => a.and(b),
            },
            Self::Not(of) => of.holds(facts).map(|holds| !holds),
            Self::Compare(field, comparison, value) => {
                let fact = facts.get(*field)?;
                Some(fact.is_some_and(|fact| comparison.holds(order(fact, value))))
            }
            Self::Matches(field, pattern) => {
                Some(matches!(facts.get(*field)?, Some(Fact::Text(text)) if pattern.is_match(text)))
            }
            Self::In(field, ranges) => {
                let fact = facts.get(*field)?;
                let is_in = |fact: &Fact, (least, most): &(Fact, Fact)| {
                    Comparison::AtLeast.holds(order(fact, least)) && Comparison::AtMost.holds(order(fact, most))
                };
                Some(fact.is_some_and(|fact| ranges.iter().any(|range| is_in(fact, range))))
            }
            Self::Has(wanted) => facts.texts().map(|text| text.to_lowercase().contains(wanted)).reduce(|a, b| a || b),
        }
    }
}

fn order(fact: &Fact, value: &Fact) -> Option<Ordering> {
    match (fact, value) {
        (Fact::Number(a), Fact::Number(b)) => a.partial_cmp(b),
        (Fact::Text(a), Fact::Text(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

impl Comparison {
    fn holds(self, order: Option<Ordering>) -> bool {
        let Some(order) = order else { return false };
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}
