//! The layout of a running process's MPI library: which numbers in its memory mean what.
//!
//! All that mpiprobe knows of the inside of MPI libraries is here, one folder for each family: [`Blueprint::of`] takes from the
//! library's file what it says, [`Blueprint::find`] looks into a process that has mapped it, and checks what it finds on
//! predefined objects whose properties are known. What fails the check is not used, and the reason is told ([`Missing`]).
//! The result is a [`Layout`], by which the functions of `mpiprobe_common::layout` read handles, in BPF programs too;
//! [`communicators`] and [`names`] read what only the observer needs.
//!
//! Nothing here changes a process. Whatever it has in its memory was put there by somebody else: addresses are followed by
//! [`TargetMemory`] alone, lists have limits.
//!
//! [`Layout`]: mpiprobe_common::Layout
// Printing to a pipe that somebody has closed must not panic: mpiprobe_report::present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod blueprint;
pub mod communicators;
mod found;
mod memory;
mod missing;
mod mpich;
pub mod names;
mod openmpi;
mod predefined;
pub mod requests;
mod search;
mod standard_abi;
mod template;
#[cfg(test)]
mod tests;
mod version;
pub mod windows;

pub use blueprint::{Blueprint, Expected, FoundLayout, Registry, Search};
pub use communicators::Communicator;
pub use memory::TargetMemory;
pub use missing::{Capability, Missing, Reason};
pub use names::datatype_name;
pub use predefined::{predefined, predefined_name};
pub use requests::request;
pub use version::Version;
pub use windows::{Window, group, window};
