//! The independent count of MPI calls, and of what they move: a preloaded library per MPI, and the files it writes.

mod file;
mod library;
mod log;
mod reader;
mod rule;
mod symbols;
mod traffic;
mod traffic_file;
mod typed;

pub use file::{Calls, EndedThread, Image, Snapshot, Thread, TruthError};
pub(crate) use library::{gate_library, truth_library, yielding_library};
pub use log::{ChangeKind, Given, Log, LoggedCall, LoggedChange, Meaning};
pub use traffic::{Amounts, Key, Peer, Received, Scope, ScopeKind, Traffic};
