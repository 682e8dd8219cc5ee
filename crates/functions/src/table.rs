//! The table, generated from `mpi.tbl` at build time.

use core::fmt;

use crate::argument::{Argument, Direction, Length, Role};
use crate::function::{Fortran, Function, FunctionId, LargeCount};
use crate::{Group, Operation, Standard};

include!(concat!(env!("OUT_DIR"), "/table.rs"));

/// How many functions there are.
pub const COUNT: usize = FUNCTIONS.len();

impl FunctionId {
    /// The id at that index; nothing if the table is shorter.
    pub fn from_index(index: u16) -> Option<Self> {
        (usize::from(index) < FUNCTIONS.len()).then_some(Self::generated(index))
    }

    #[expect(clippy::indexing_slicing, reason = "an id is an index into the table by construction")]
    pub fn function(self) -> &'static Function {
        &FUNCTIONS[self.index()]
    }

    /// All functions, by name.
    pub fn all() -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + Clone {
        (0..COUNT_U16).map(Self::generated)
    }
}

impl fmt::Debug for FunctionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.function().name, self.number())
    }
}
