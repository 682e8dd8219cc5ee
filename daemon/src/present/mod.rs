//! Profiles and listings for people and programs.

mod interval;
mod jobs;
mod output;
mod profile;
mod table;
mod units;

pub use interval::interval;
pub use jobs::jobs;
pub use output::{Output, OutputError};
pub use profile::profile;
