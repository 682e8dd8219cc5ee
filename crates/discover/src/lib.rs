//! Finds MPI processes, ranks and jobs on this node, from `/proc` alone.
//!
//! mpiprobe looks at other users' processes with root's rights. Everything read here was written by them, or can change
//! between two reads: reads are bounded, parsers refuse rather than guess, processes are pinned ([`Process`]) and mapped
//! files are opened by identity ([`open_mapped()`]). Of a process that the caller may not trace ([`access`]), nothing is read
//! but what decides that and what everybody may read: names and command lines, of launchers and of processes that are
//! called what the user named.
//!
//! Start at [`Scanner`] for everything on the node, or at [`select()`] for what a user named.
// Printing to a pipe that somebody has closed must not panic: mpiprobe_report::present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod access;
pub mod allocation;
mod caller_rights;
pub mod command_line;
mod connections;
mod copies;
mod elf_symbols;
pub mod environment;
mod explain;
mod failure;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
pub mod files;
pub mod foreign;
mod grants;
pub mod job;
mod job_key;
mod launcher;
mod mapped_identity;
pub mod mappings;
mod maps_line;
#[cfg(test)]
mod mpi_job;
pub mod mpi_process;
#[cfg(test)]
mod mpi_tests;
mod nearest;
mod open_file;
pub mod open_mapped;
pub mod packet;
pub mod privileged;
pub mod proc_root;
pub mod process;
pub mod process_error;
pub mod rank;
mod read;
pub mod recognise;
mod return_risks;
pub mod root;
pub mod scan;
pub mod select;
pub mod select_error;
pub mod stat;
pub mod status;
#[cfg(test)]
mod test_child;
mod text;
pub mod users;

pub use access::{Caller, Refusal, Within, may_trace};
pub use allocation::{Allocation, KnownBy, Manager};
pub use caller_rights::{put_down_files_rights, with_callers_rights};
pub use connections::has_data_on_its_way;
pub use copies::{ForkRelation, silent_copies};
pub use elf_symbols::SymbolRecogniser;
pub use failure::Failure;
pub use foreign::ForeignFile;
pub use grants::Grants;
pub use job::Job;
pub use job::ranges;
pub use job_key::JobKey;
pub use launcher::Launcher;
pub use mapped_identity::identity_when_mapped;
pub use mappings::{Region, Regions};
pub use mpi_process::{MpiLibrary, MpiProcess, Unanswered, is_wrapper};
pub use open_file::open_regular;
pub use open_mapped::open_mapped;
pub use proc_root::{ProcRoot, ProcRootError};
pub use process::{Process, ProcessId};
pub use process_error::ProcessError;
pub use rank::{LauncherKind, RankInfo};
pub use read::read_from;
pub use recognise::{Recognise, Recognised, Role};
pub use return_risks::{ReturnRisk, ReturnRisks, Way};
pub use root::Root;
pub use scan::{Finding, Image, Scanner, Snapshot};
pub use select::{JobChoice, Selection, Target, select};
pub use select_error::SelectError;
pub use text::is_harmless;
pub use text::printable;
