//! Finds MPI processes, ranks and jobs on this node from /proc alone.

pub mod architecture;
pub mod command_line;
pub mod environment;
mod mapped_identity;
pub mod mappings;
mod open_file;
pub mod open_mapped;
pub mod proc_root;
pub mod process;
pub mod process_error;
mod read;
pub mod stat;
pub mod status;
mod text;

pub use proc_root::{ProcRoot, ProcRootError};
pub use process::{Process, ProcessId};
pub use process_error::ProcessError;
pub use text::printable;
