//! From an ELF file to the places where probes go.
//!
//! [`ElfFile`] and [`Library::read`] read one ELF file, [`Library::mpi_role`] says whether it is the C library of an MPI,
//! [`Implementation::of`] which one, and [`plan`] finds for each wanted function the instruction on which a uprobe is cheap and
//! still sees the call's arguments. All of it works on the file alone: nothing here touches a process.
//!
//! The files belong to other users and may be hostile: every number in them is checked, every loop is bounded.
// Printing to a pipe that somebody has closed must not panic: mpiprobe_report::present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod census;
mod data;
mod effects;
mod error;
mod fingerprint;
mod implementation;
mod jumps;
mod kernel;
mod library;
mod lookup;
mod planned;
mod prologue;
mod read;
mod recogniser;
mod references;
mod role;
mod site;
mod symbols;
#[cfg(test)]
mod tests;

pub use census::{Census, SlowFunction};
pub use data::{Data, DataSymbol};
pub use error::{ReadError, Rejection};
pub use fingerprint::{Difference, Fingerprint, compare_code};
pub use implementation::{Family, Implementation, StandardVersion};
pub use kernel::Unprobeable;
pub use library::Library;
/// Why an ELF file cannot be used.
pub use mpiprobe_elf::ElfError;
pub use planned::{Plan, PlannedFunction, UnprobeableFunction, plan};
pub use prologue::plan_site;
pub use read::ElfFile;
pub use recogniser::ImplementationRecogniser;
pub use role::MpiRole;
pub use site::{ArgumentRegister, Site, SiteKind, SlowReason};
pub use symbols::{Alias, Function, Rejected, Symbols};
