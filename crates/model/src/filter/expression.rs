//! Conditions, and whether they hold.

use std::cmp::Ordering;

use super::{Fact, Facts, Field, pattern::Pattern};

#[derive(Debug)]
pub(super) enum Expression {
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Not(Box<Self>),
    Compare(Field, Comparison, Fact<'static>),
    Matches(Field, Pattern),
    /// Bounds are inside.
    In(Field, Vec<(Fact<'static>, Fact<'static>)>),
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

impl Expression {
    /// `None`: the row does not tell.
    pub(super) fn holds(&self, facts: &Facts<'_>) -> Option<bool> {
        match self {
            Self::And(a, b) => match a.holds(facts) {
                Some(false) => Some(false),
                a => match b.holds(facts) {
                    Some(false) => Some(false),
                    b => a.and(b),
                },
            },
            Self::Or(a, b) => match a.holds(facts) {
                Some(true) => Some(true),
                a => match b.holds(facts) {
                    Some(true) => Some(true),
                    b => a.and(b),
                },
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
                let is_in = |fact: &Fact<'_>, (least, most): &(Fact<'_>, Fact<'_>)| {
                    Comparison::AtLeast.holds(order(fact, least)) && Comparison::AtMost.holds(order(fact, most))
                };
                Some(fact.is_some_and(|fact| ranges.iter().any(|range| is_in(fact, range))))
            }
            Self::Has(wanted) => facts.texts().map(|text| text.to_lowercase().contains(wanted)).reduce(|a, b| a || b),
        }
    }
}

fn order(fact: &Fact<'_>, value: &Fact<'_>) -> Option<Ordering> {
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
