//! What the course of a job's calls means: which ends belong together, who waits for whom, and why.
//!
//! A trace is replayed slice by slice ([`Slices`]) on one clock ([`Clocks`]); the [`Matcher`] brings the ends of messages and collectives
//! together. All of it takes as much memory as a short time of the job has events, however long the trace is.
// Printing to a pipe that somebody has closed must not panic: mpiprobe_report::present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod bounds;
mod clock;
mod communication;
mod live;
mod loose;
mod matching;
mod parallel;
mod slices;
pub mod timeline;
mod waits;

pub use bounds::estimate;
pub use clock::{Clocks, Correction};
pub use communication::communication;
pub use live::{Inside, Live};
pub use loose::LooseEnds;
pub use matching::{
    CallAt, Done, End, Instance, InstanceDone, InstanceKind, Matched, Matcher, Member, Pending, Unmatched,
};
pub use parallel::threads;
pub use slices::{LocationSlice, Slice, Slices, Until};
pub use waits::{Analysis, Limits, analyse};
