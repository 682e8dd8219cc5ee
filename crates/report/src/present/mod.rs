//! Profiles and listings for people and programs.

mod call_sites;
mod checks;
mod doing;
mod findings;
mod interval;
mod jobs;
mod layers;
mod message;
mod open_calls;
mod output;
mod pending;
mod phases;
mod profile;
mod progress;
mod ranks;
pub mod recording;
mod remarks;
mod table;
mod threads;
mod traffic;
mod transfers;
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
pub use message::{
    Diverted, LogWriter, ThreadDiverted, ThreadListener, divert, divert_thread, say, say_in_passing, thread_listener,
};
pub use output::{Output, OutputError};
pub use profile::{filtered, profile};
pub use progress::Progress;
pub use ranks::{UNSEEN, UNTIMED};
pub use table::TextOptions;
pub(crate) use table::{Column, left, paragraph, right, table};
pub use threads::share_of_life;
pub use units::UNKNOWN;
pub use unmatched::{other_end, posted_by};
pub use wait_states::{wait_causes, wait_place, wait_sentence, wait_states, waiting_thread};
pub use waiting::{call as waiting_in, chain, circle, knot, waited_requests, waits_for};
