//! Which code of a file is an MPI function that programs call: in an MPI library, its Fortran layer, a tool, or a program that has
//! MPI linked in.

use std::{collections::HashMap, ops::Range, sync::LazyLock};

use mpiprobe_functions::{FunctionId, by_name};

use super::{image::Image, symbols::Symbols};

/// In ascending order, each address once.
#[derive(Debug, Default)]
pub(super) struct MpiFunctions(Vec<(Range<u64>, FunctionId)>);

impl MpiFunctions {
    /// The one whose code is at `address`.
    pub(super) fn at(&self, address: u64) -> Option<FunctionId> {
        let after = self.0.partition_point(|(range, _)| range.start <= address);
        let (range, function) = self.0.get(after.checked_sub(1)?)?;
        range.contains(&address).then_some(*function)
    }

    pub(super) fn of(image: &Image) -> Self {
        // Of a library, only what it exports can be called by a program.
        let symbols =
            if image.is_program() { Symbols::read(std::iter::once(image)) } else { Symbols::read_dynamic(image) };
        let mut functions: Vec<_> =
            symbols.functions().filter_map(|(name, range)| Some((range, function_of(name)?))).collect();
        // One function has several names; the first that the table has is as good as any.
        functions.sort_by_key(|(range, function)| (range.start, function.index()));
        functions.dedup_by_key(|(range, _)| range.start);
        Self(functions)
    }
}

fn function_of(symbol: &[u8]) -> Option<FunctionId> {
    let symbol = std::str::from_utf8(symbol).ok()?;
    if !symbol.get(..4).is_some_and(|start| ["MPI_", "PMPI", "mpi_", "pmpi"].contains(&start)) {
        return None;
    }
    by_name(symbol).or_else(|| FORTRAN.get(symbol).copied())
}

/// Every name under which a Fortran procedure of MPI may be exported.
static FORTRAN: LazyLock<HashMap<String, FunctionId>> = LazyLock::new(|| {
    let of = |id: FunctionId| id.function().fortran_symbols().map(move |name| (name.as_str().to_owned(), id));
    FunctionId::all().flat_map(of).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_all_their_names() {
        let name = |symbol: &str| function_of(symbol.as_bytes()).map(|id| id.function().name);
        for symbol in ["MPI_Recv", "PMPI_Recv", "mpi_recv_", "MPI_RECV", "pmpi_recv__", "mpi_recv_f08_"] {
            assert_eq!(name(symbol), Some("MPI_Recv"), "{symbol}");
        }
        for symbol in ["MPIR_Recv", "ompi_recv_f", "main", "mpi_finish_", "m", ""] {
            assert_eq!(name(symbol), None, "{symbol}");
        }
    }
}
