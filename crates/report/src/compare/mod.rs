//! What got slower or faster between runs of a program, and how sure that is (`mpiprobe compare`).
//!
//! Profiles become amounts of time by subject (`measure`), those of one run a [`Run`], runs of two sides a [`Comparison`]. Whether a
//! difference may be chance is the business of `statistics`. Nothing here reads files.

mod comparison;
mod condition;
mod markdown;
mod measure;
mod run;
mod scaling;
mod statistics;
#[cfg(test)]
mod tests;
mod text;

pub use comparison::{Basis, Comparison, Iterations, Options, Refused, Row, Verdict};
pub use condition::{Condition, ConditionError, Held};
pub use markdown::markdown;
pub use measure::{Section, Subject};
pub use run::{MOMENTS, Run};
pub use scaling::{Scaling, ScalingRow};
pub use statistics::Method;
pub use text::text;

/// Name and version of the JSON form of a [`Comparison`].
pub const SCHEMA: &str = "mpiprobe.comparison/1";
