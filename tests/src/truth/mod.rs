//! The independent count of MPI calls: a preloaded library per MPI, and the files it writes.

mod file;
mod library;
mod symbols;

pub use file::{Calls, Image, Snapshot, Thread, TruthError};
pub(crate) use library::{gate_library, truth_library};
