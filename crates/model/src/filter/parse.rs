//! From tokens to an expression.

use super::{
    Dimension, Fact, Field, FilterError,
    expression::{Comparison, Expression},
    pattern::Pattern,
    token::{Token, TokenKind, tokens},
};

/// Brackets and negations inside each other: nobody writes more, and each takes some stack.
const DEEPEST: usize = 64;
/// Bytes of a filter: evaluating it takes some stack for each condition.
const LONGEST: usize = 16 << 10;
/// Patterns in a filter: each takes memory.
const MOST_PATTERNS: usize = 32;

pub(super) fn expression(text: &str) -> Result<Expression, FilterError> {
    if text.len() > LONGEST {
        return Err(FilterError::new(LONGEST, 1, format!("a filter has at most {LONGEST} bytes")));
    }
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0, patterns: 0 };
    let expression = parser.or()?;
    match parser.peek() {
        Token { kind: TokenKind::End, .. } => Ok(expression),
        token => Err(wrong(&token, "here a further condition needs \"and\" or \"or\" before it")),
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    patterns: usize,
}

fn wrong(token: &Token, message: impl Into<String>) -> FilterError {
    FilterError::new(token.at, token.length, message)
}

impl Parser {
    fn peek(&self) -> Token {
        let last = || self.tokens.last();
        let end = Token { kind: TokenKind::End, at: 0, length: 1 };
        self.tokens.get(self.next).or_else(last).cloned().unwrap_or(end)
    }

    fn take(&mut self) -> Token {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn takes_word(&mut self, wanted: &str) -> bool {
        let is_it = matches!(self.peek().kind, TokenKind::Word(word) if word == wanted);
        self.next += usize::from(is_it);
        is_it
    }

    fn takes(&mut self, wanted: &str) -> bool {
        let is_it = matches!(self.peek().kind, TokenKind::Sign(sign) if sign == wanted);
        self.next += usize::from(is_it);
        is_it
    }

    fn or(&mut self) -> Result<Expression, FilterError> {
        let mut left = self.and()?;
        while self.takes_word("or") {
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, FilterError> {
        let mut left = self.not()?;
        while self.takes_word("and") {
            left = Expression::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expression, FilterError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(wrong(&self.peek(), "too many conditions inside each other"));
        }
        let expression = if self.takes_word("not") {
            Expression::Not(Box::new(self.not()?))
        } else if self.takes("(") {
            let inside = self.or()?;
            if !self.takes(")") {
                return Err(wrong(&self.peek(), "here a \")\" is missing"));
            }
            inside
        } else {
            self.condition()?
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn condition(&mut self) -> Result<Expression, FilterError> {
        let token = self.take();
        let field = match &token.kind {
            TokenKind::Text(text) => return Ok(Expression::Has(text.to_lowercase())),
            TokenKind::Word(word) => Field::of_name(word).ok_or_else(|| wrong(&token, no_field(word)))?,
            _ => return Err(wrong(&token, "here a condition is missing, such as bytes > 1MiB")),
        };
        let sign = self.take();
        match &sign.kind {
            TokenKind::Word(word) if word == "in" => self.set(field),
            TokenKind::Sign(of @ ("~" | "!~")) => {
                let matches = self.pattern(field, &sign)?;
                Ok(if *of == "~" { matches } else { Expression::Not(Box::new(matches)) })
            }
            TokenKind::Sign(of) => {
                let Some(comparison) = comparison(of) else { return Err(wrong(&sign, NO_SIGN)) };
                Ok(Expression::Compare(field, comparison, self.value(field)?))
            }
            _ => Err(wrong(&sign, NO_SIGN)),
        }
    }

    fn pattern(&mut self, field: Field, sign: &Token) -> Result<Expression, FilterError> {
        if field.dimension() != Dimension::Text {
            return Err(wrong(sign, format!("{} is a number: compare it with ==, < or in", field.name())));
        }
        let token = self.take();
        let TokenKind::Text(text) = &token.kind else {
            return Err(wrong(&token, "here a pattern in quotes is missing"));
        };
        self.patterns += 1;
        if self.patterns > MOST_PATTERNS {
            return Err(wrong(
                &token,
                format!("a filter has at most {MOST_PATTERNS} patterns: join some of them by |"),
            ));
        }
        let pattern = Pattern::new(text).map_err(|error| wrong(&token, format!("no pattern: {error}")))?;
        Ok(Expression::Matches(field, pattern))
    }

    /// `0..15`, or `(1, 3, 8..15)`
    fn set(&mut self, field: Field) -> Result<Expression, FilterError> {
        if !self.takes("(") {
            return Ok(Expression::In(field, vec![self.range(field)?]));
        }
        let mut ranges = vec![self.range(field)?];
        while self.takes(",") {
            ranges.push(self.range(field)?);
        }
        if self.takes(")") {
            Ok(Expression::In(field, ranges))
        } else {
            Err(wrong(&self.peek(), "here a \")\" is missing"))
        }
    }

    fn range(&mut self, field: Field) -> Result<(Fact<'static>, Fact<'static>), FilterError> {
        let least = self.value(field)?;
        let most = if self.takes("..") { self.value(field)? } else { least.clone() };
        Ok((least, most))
    }

    fn value(&mut self, field: Field) -> Result<Fact<'static>, FilterError> {
        let token = self.take();
        let name = field.name();
        match (&token.kind, field.dimension()) {
            (TokenKind::Text(text), Dimension::Text) => Ok(Fact::Text(text.clone().into())),
            (_, Dimension::Text) => Err(wrong(&token, format!("{name} is compared with a text in quotes"))),
            (TokenKind::Number(value, unit), wanted) => match (unit, wanted) {
                (Dimension::Count, Dimension::Time) if *value != 0.0 => {
                    Err(wrong(&token, format!("{name} needs a unit, such as {value}ms")))
                }
                (Dimension::Count, _) => Ok(Fact::Number(*value)),
                (unit, wanted) if *unit == wanted => Ok(Fact::Number(*value)),
                _ => Err(wrong(&token, format!("this unit does not go with {name}"))),
            },
            _ => Err(wrong(&token, format!("here a number is missing that {name} is compared with"))),
        }
    }
}

const NO_SIGN: &str = "here one of == != < <= > >= ~ !~ in is missing";

fn comparison(sign: &str) -> Option<Comparison> {
    Some(match sign {
        "==" => Comparison::Equal,
        "!=" => Comparison::NotEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::AtMost,
        ">" => Comparison::Greater,
        ">=" => Comparison::AtLeast,
        _ => return None,
    })
}

fn no_field(word: &str) -> String {
    match Field::like(word) {
        Some(field) => format!("there is no field {word}; is it {}?", field.name()),
        None => format!("there is no field {word}; text stands in quotes"),
    }
}
