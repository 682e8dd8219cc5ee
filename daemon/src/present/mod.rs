//! Profiles and listings for people and programs.

mod checks;
mod doing;
mod interval;
mod jobs;
mod layers;
mod message;
mod output;
mod pending;
mod phases;
mod profile;
mod table;
mod threads;
mod traffic;
pub(crate) mod units;
mod unmatched;
mod waiting;

pub use checks::checks;
pub use doing::{doing, what};
pub use interval::interval;
pub use jobs::{JobList, jobs, next_step};
pub use layers::library;
pub use message::{Diverted, LogWriter, divert, say, say_in_passing};
pub use output::{Output, OutputError};
pub(crate) use profile::UNSEEN;
pub use profile::{filtered, profile};
pub use threads::share_of_life;
pub use unmatched::{other_end, posted_by};
pub use waiting::{call as waiting_in, chain, circle, waits_for};
