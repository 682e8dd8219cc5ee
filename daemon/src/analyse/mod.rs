//! From tables to a profile.

mod aggregate;
mod flows;
mod input;
mod names;
mod pending;
mod percentile;
mod profile;
mod rank;

pub use input::{EndedCall, Identity, Observed, Session};
pub use profile::profile;
