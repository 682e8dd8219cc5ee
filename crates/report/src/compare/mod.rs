//! What got slower or faster between runs of a program, and how sure that is (`mpiprobe compare`).
//!
//! Profiles become amounts of time by subject (`measure`), those of one [`Source`](crate::Source) a [`Run`], runs of two sides a
//! [`Comparison`]. Whether a difference may be chance is the business of `statistics`.

mod comparison;
mod condition;
mod html;
mod markdown;
mod measure;
mod run;
mod statistics;
#[cfg(test)]
mod tests;
mod text;

pub use comparison::{Basis, Comparison, Iterations, Options, Refused, Row, Verdict};
pub use condition::{Condition, ConditionError, Held};
pub use html::html;
pub use markdown::markdown;
pub use measure::{Section, Subject};
pub use run::Run;
pub use statistics::Method;
pub use text::text;

/// Name and version of the JSON form of a [`Comparison`].
pub const SCHEMA: &str = "mpiprobe.comparison/1";
