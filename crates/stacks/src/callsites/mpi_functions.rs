//! Which code of a file is an MPI function that programs call: in an MPI library, its Fortran layer, a tool, or a program that has
//! MPI linked in.

use std::{collections::HashMap, ops::Range, sync::LazyLock};

use mpiprobe_functions::{FunctionId, by_name};

use super::{image::Image, symbols::Symbols};

/// In ascending order, each address once; with each whether it is Fortran's, which is given addresses of its arguments.
#[derive(Debug, Default)]
pub(super) struct MpiFunctions(Vec<(Range<u64>, FunctionId, bool)>);

impl MpiFunctions {
    /// The one whose code is at `address`.
    pub(super) fn at(&self, address: u64) -> Option<(FunctionId, bool)> {
        let after = self.0.partition_point(|(range, ..)| range.start <= address);
        let (range, function, is_fortran) = self.0.get(after.checked_sub(1)?)?;
        range.contains(&address).then_some((*function, *is_fortran))
    }

    pub(super) fn of(image: &Image) -> Self {
        // Of a library, only what it exports can be called by a program.
        let symbols =
            if image.is_program() { Symbols::read(std::iter::once(image)) } else { Symbols::read_dynamic(image) };
        let function = |(name, range): (&[u8], Range<u64>)| {
            let (function, is_fortran) = function_of(name)?;
            Some((range, function, is_fortran))
        };
        let mut functions: Vec<_> = symbols.functions().filter_map(function).collect();
        // One function has several names; the first that the table has is as good as any.
        functions.sort_by_key(|(range, function, is_fortran)| (range.start, !is_fortran, function.index()));
        functions.dedup_by_key(|(range, ..)| range.start);
        Self(functions)
    }
}

fn function_of(symbol: &[u8]) -> Option<(FunctionId, bool)> {
    let symbol = std::str::from_utf8(symbol).ok()?;
    if !symbol.get(..4).is_some_and(|start| ["MPI_", "PMPI", "mpi_", "pmpi"].contains(&start)) {
        return None;
    }
    let fortran = || FORTRAN.get(symbol).map(|function| (*function, true));
    by_name(symbol).map(|function| (function, false)).or_else(fortran)
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
        let name =
            |symbol: &str| function_of(symbol.as_bytes()).map(|(id, is_fortran)| (id.function().name, is_fortran));
        for symbol in ["MPI_Recv", "PMPI_Recv"] {
            assert_eq!(name(symbol), Some(("MPI_Recv", false)), "{symbol}");
        }
        for symbol in ["mpi_recv_", "MPI_RECV", "pmpi_recv__", "mpi_recv_f08_"] {
            assert_eq!(name(symbol), Some(("MPI_Recv", true)), "{symbol}");
        }
        for symbol in ["MPIR_Recv", "ompi_recv_f", "main", "mpi_finish_", "m", ""] {
            assert_eq!(name(symbol), None, "{symbol}");
        }
    }
}
