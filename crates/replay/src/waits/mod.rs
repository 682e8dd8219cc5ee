//! Wait states: who has waited for whom, for how long, why, and what that has done to the time that the job took.

mod analysis;
mod cells;
mod common;
mod delays;
mod found;
mod log;
mod path;
mod result;
mod rules;
#[cfg(test)]
mod tests;
mod totals;

pub use analysis::{Analysis, Limits, analyse};
