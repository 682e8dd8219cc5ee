//! What a filter lacks where it ends.

use super::{
    Dimension, Field,
    token::{Token, TokenKind},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Condition,
    /// A comparison of this field.
    Sign(Field),
    Value(Field),
    /// A regular expression.
    Pattern(Field),
    /// `and`, `or`, and a bracket that closes if one is open.
    Joint {
        open: bool,
    },
    Nothing,
}

impl Expected {
    /// After these tokens, whether or not they make a filter.
    pub(super) fn after(tokens: &[Token]) -> Self {
        let (mut expected, mut open) = (Self::Condition, 0u32);
        // Of the set that is being written, the field.
        let mut set: Option<Field> = None;
        for token in tokens {
            expected = match (expected, &token.kind) {
                (Self::Condition, TokenKind::Word(word)) if word == "not" => Self::Condition,
                (Self::Condition, TokenKind::Word(word)) => Field::of_name(word).map_or(Self::Nothing, Self::Sign),
                (Self::Condition, TokenKind::Sign("(")) => {
                    open += 1;
                    Self::Condition
                }
                (Self::Sign(field), TokenKind::Sign("~" | "!~")) if field.dimension() == Dimension::Text => {
                    Self::Pattern(field)
                }
                (Self::Sign(field), TokenKind::Word(word)) if word == "in" => Self::Value(field),
                (Self::Sign(field), TokenKind::Sign(sign)) if !["(", ")", ",", ".."].contains(sign) => {
                    Self::Value(field)
                }
                (Self::Value(field), TokenKind::Sign("(")) => {
                    set = Some(field);
                    Self::Value(field)
                }
                (Self::Joint { .. }, TokenKind::Sign(")")) => {
                    open -= u32::from(set.take().is_none() && open > 0);
                    Self::Joint { open: open > 0 }
                }
                (Self::Joint { .. }, TokenKind::Sign("," | "..")) => {
                    set.or(ranged(tokens, token)).map_or(Self::Nothing, Self::Value)
                }
                (Self::Joint { .. }, TokenKind::Word(word)) if set.is_none() && (word == "and" || word == "or") => {
                    Self::Condition
                }
                (Self::Condition | Self::Pattern(_) | Self::Value(_), TokenKind::Text(_))
                | (Self::Value(_), TokenKind::Number(..)) => Self::Joint { open: open > 0 },
                _ => return Self::Nothing,
            };
        }
        // In a set there is no further condition; a comma is typed sooner than chosen.
        if set.is_some() && matches!(expected, Self::Joint { .. }) { Self::Nothing } else { expected }
    }
}

/// The field of `FIELD in VALUE ..`, of which `dots` is the last token.
fn ranged(tokens: &[Token], dots: &Token) -> Option<Field> {
    let at = tokens.iter().position(|token| token.at == dots.at)?;
    match &tokens.get(at.checked_sub(3)?)?.kind {
        TokenKind::Word(name) => Field::of_name(name),
        _ => None,
    }
}
