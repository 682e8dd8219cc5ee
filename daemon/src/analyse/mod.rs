//! From tables to a profile.

mod aggregate;
mod communicator_names;
mod communicators;
mod flows;
mod input;
mod names;
mod percentile;
mod profile;
mod rank;
mod traffic;

pub use input::{EndedCall, Identity, Observed, Session};
pub use profile::profile;
