//! Every function of MPI: names, groups, and what its arguments mean.
//!
//! One table, `mpi.tbl`, from which this crate is generated at build time; nothing is parsed or allocated at run time.
//! Argument positions for BPF programs, names for people and selections on the command line all come from here.
#![no_std]

mod amount;
mod argument;
mod communication;
mod descriptor;
mod fortran;
mod function;
mod glob;
mod group;
mod lookup;
mod nearest;
mod operation;
mod select;
mod set;
mod standard;
mod table;

pub use argument::{Argument, Direction, Length, Role};
pub use communication::{Communication, Pattern, SendMode};
pub use fortran::SymbolName;
pub use function::{Fortran, Function, FunctionId};
pub use glob::matches as matches_pattern;
pub use group::Group;
pub use lookup::{by_name, by_name_ignoring_case, fingerprint, is_fortran_only, polls};
pub use nearest::nearest;
pub use operation::Operation;
pub use select::{SelectError, select};
pub use set::FunctionSet;
pub use standard::Standard;
pub use table::{COUNT, FUNCTIONS};
