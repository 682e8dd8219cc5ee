//! Profiles and listings for people and programs.

mod checks;
mod interval;
mod jobs;
mod message;
mod output;
mod profile;
mod table;
mod traffic;
mod units;

pub use checks::checks;
pub use interval::interval;
pub use jobs::{JobList, jobs, next_step};
pub use message::{say, say_in_passing};
pub use output::{Output, OutputError};
pub use profile::profile;
