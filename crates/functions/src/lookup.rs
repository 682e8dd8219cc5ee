//! Functions by name.

use crate::table::{FORTRAN_ONLY, FUNCTIONS};
use crate::{Function, FunctionId};

/// The function of that C name: `MPI_Send` or `PMPI_Send`, in exactly this spelling.
pub fn by_name(name: &str) -> Option<FunctionId> {
    let name = name.strip_prefix('P').unwrap_or(name);
    let index = FUNCTIONS.binary_search_by(|function| function.name.cmp(name)).ok()?;
    FunctionId::from_index(u16::try_from(index).ok()?)
}

/// Whether the function of that C name only asks whether something has happened. Of names that are none of MPI's: no.
pub fn polls(name: &str) -> bool {
    by_name(name).is_some_and(|id| id.function().polling)
}

/// The function a user means: `MPI_Send`, `mpi_send`, `pmpi_send`, `Send` or `send`.
pub fn by_name_ignoring_case(name: &str) -> Option<FunctionId> {
    let name = without_prefix(name);
    FunctionId::all().find(|id| id.function().short_name().eq_ignore_ascii_case(name))
}

/// Whether C libraries export that name for Fortran callers only: a predefined callback such as `MPI_COMM_DUP_FN`, or a helper.
/// Such a function takes its arguments by reference and is none of [`FUNCTIONS`].
pub fn is_fortran_only(name: &str) -> bool {
    FORTRAN_ONLY.binary_search(&name).is_ok()
}

/// The name without `MPI_` or `PMPI_`, in any case.
pub(crate) fn without_prefix(name: &str) -> &str {
    ["MPI_", "PMPI_"]
        .into_iter()
        .find_map(|prefix| {
            let (start, rest) = name.split_at_checked(prefix.len())?;
            start.eq_ignore_ascii_case(prefix).then_some(rest)
        })
        .unwrap_or(name)
}

/// The names of all functions, in order, as one number: ids of tables with the same number mean the same functions.
pub fn fingerprint() -> u64 {
    // FNV-1a, by bytes.
    FUNCTIONS
        .iter()
        .flat_map(|function| function.name.bytes().chain([0]))
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Function {
    /// This function's id.
    pub fn id(&self) -> Option<FunctionId> {
        by_name(self.name)
    }
}
