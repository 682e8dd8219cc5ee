//! The tables as they are now.
// Printing to a pipe that somebody has closed must not panic: mpiprobe_report::present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod began_before;
mod call_before;
mod recent;
mod recent_switch;
mod rings;
mod shared;
mod snapshot;
mod stats;
mod table_file;

pub use call_before::{After, BeganBefore, CallBefore};
pub use recent::{RecentLog, RecentRing};
pub use recent_switch::RecentSwitch;
pub use rings::{Drained, FileReferred, FileRings, Referred, RingReader, Rings, communicator};
pub use shared::SharedArray;
pub use snapshot::{
    ArgumentWords, AwaitedRequest, AwaitedRequests, ByFunction, CommunicatorSnapshot, DatatypeSnapshot, GroupSnapshot,
    Members, PendingRequest, PhaseSnapshot, ProcessSnapshot, RecentSnapshot, SHARED, Snapshot, ThreadSnapshot,
    ToolsSnapshot, WindowSnapshot, alive, by_end, monotonic_ns,
};
pub use stats::StatsReader;
pub use table_file::{TableFile, TableFileError};
