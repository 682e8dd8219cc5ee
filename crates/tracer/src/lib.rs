//! From rings of calls to traces.
//!
//! Both engines write calls to rings as they return ([`mpiprobe_common::trace`]). A [`Recorder`] is given their lines and makes events of them:
//! which request a handle means, in which order a thread's calls come, which are missing and why, what was not asked for. Where events go is the
//! business of an [`Output`]: a file, or memory.
// Printing to a pipe that somebody has closed must not panic: mpiprobe_report::present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod clock;
mod numbering;
mod open_calls;
mod operation;
mod output;
mod process;
mod recorder;
mod requests;
mod selection;
mod sites;
mod thread;

pub use clock::clock_pair;
pub use open_calls::UnfinishedCall;
pub use output::Output;
pub use process::NewSite;
pub use recorder::{Done, Recorder};
pub use selection::Selection;
