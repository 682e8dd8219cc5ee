//! The table against what installed MPI libraries export.

mod installed;

use std::collections::BTreeSet;

use mpiprobe_functions::{FunctionId, Standard, by_name, is_fortran_only};

/// Invariant FUNCTIONS-ARE-DATA.
#[test]
fn every_exported_function_is_known() {
    for library in installed::c_libraries() {
        let unknown: Vec<_> = library
            .functions
            .iter()
            .filter(|name| name.starts_with("MPI_") || name.starts_with("PMPI_"))
            .filter(|name| by_name(name).is_none() && !is_fortran_only(name.strip_prefix('P').unwrap_or(name)))
            .collect();
        assert!(unknown.is_empty(), "{} exports what the table lacks: {unknown:?}", library.path.display());
    }
}

/// The other direction: what the table has and a library lacks must be newer than the library, or have been removed before
/// it, or be one of the functions that libraries may have as macros.
#[test]
fn every_old_function_is_exported() {
    for library in installed::c_libraries() {
        let missing: BTreeSet<&str> = FunctionId::all()
            .map(FunctionId::function)
            .filter(|function| function.is_in(Standard::Mpi3_1) && function.is_in(Standard::Mpi5_0))
            .map(|function| function.name)
            .filter(|name| !library.defines(name))
            .collect();
        let may_be_macro = |name: &str| {
            let conversions = ["_c2f", "_f2c", "_c2f08", "_f082c", "_f082f", "_f2f08"];
            conversions.iter().any(|end| name.ends_with(end)) || name.starts_with("MPI_Aint_")
        };
        let unexplained: Vec<_> = missing.into_iter().filter(|name| !may_be_macro(name)).collect();
        assert!(unexplained.is_empty(), "{} lacks {unexplained:?}", library.path.display());
    }
}

/// A library that has any large-count function has those of MPI 4.0, all of them.
#[test]
fn large_count_functions_are_exported_together() {
    for library in installed::c_libraries().iter().filter(|library| library.defines("MPI_Send_c")) {
        for id in FunctionId::all().filter(|id| id.function().is_large_count()) {
            let function = id.function();
            if function.since == Standard::Mpi4_0 {
                assert!(library.defines(function.name), "{} lacks {}", library.path.display(), function.name);
            }
        }
    }
}
