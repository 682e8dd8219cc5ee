//! Filters: a small language of conditions on the rows of a profile, such as
//! `func ~ "All.*" and bytes > 1MiB and rank in 0..15 and comm == "row"`.
//!
//! Text becomes tokens (`token`), tokens an expression (`parse`), which is evaluated on what a row tells (`facts`). A row is left
//! out if the expression is false for it: what a row does not tell cannot rule it out.

mod apply;
mod complete;
mod condition;
mod error;
mod expected;
mod expression;
pub mod facts;
mod field;
mod known;
mod parse;
mod pattern;
mod token;

pub use apply::{Kept, apply};
pub use complete::{Candidate, Completion, complete};
pub use condition::Filter;
pub use error::FilterError;

pub use facts::{Fact, Facts};
pub use field::{Dimension, Field};
pub use known::Values;
pub use token::bytes;

#[cfg(test)]
mod tests;
