//! The table, generated from `mpi.tbl` at build time.

use crate::argument::{Argument, Direction, Length, Role};
use crate::function::{Fortran, Function, FunctionId, LargeCount};
use crate::{Group, Operation, Standard};

include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// How many functions there are.
pub const COUNT: usize = FUNCTIONS.len();
