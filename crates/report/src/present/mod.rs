//! Profiles and listings for people and programs.

mod checks;
mod doing;
mod findings;
mod interval;
mod jobs;
mod layers;
mod message;
mod output;
mod pending;
mod phases;
mod profile;
mod progress;
pub mod recording;
mod table;
mod threads;
mod traffic;
pub mod units;
mod unmatched;
mod wait_states;
mod waiting;

pub use checks::checks;
pub use doing::{doing, what};
pub use findings::{FindingText, findings};
pub use interval::interval;
pub use jobs::{JobList, ListedJobs, jobs, next_step};
pub use layers::library;
pub use message::{Diverted, LogWriter, ThreadDiverted, divert, divert_thread, say, say_in_passing};
pub use output::{Output, OutputError};
pub use profile::{UNSEEN, UNTIMED, filtered, profile};
pub use progress::Progress;
pub use threads::share_of_life;
pub use units::UNKNOWN;
pub use unmatched::{other_end, posted_by};
pub use wait_states::{wait_sentence, wait_states};
pub use waiting::{call as waiting_in, chain, circle, waited_requests, waits_for};
