//! Fortran symbols against what installed Fortran libraries export.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

mod installed;

use std::collections::BTreeSet;

use mpiprobe_functions::{FunctionId, by_name};

fn symbols(name: &str) -> Vec<String> {
    by_name(name).unwrap().function().fortran_symbols().map(|symbol| symbol.to_string()).collect()
}

#[test]
fn symbols_are_spelt_as_compilers_and_libraries_do() {
    assert_eq!(
        symbols("MPI_Send"),
        [
            "mpi_send",
            "pmpi_send",
            "mpi_send_",
            "pmpi_send_",
            "mpi_send__",
            "pmpi_send__",
            "MPI_SEND",
            "PMPI_SEND",
            "mpi_send_f08_",
            "pmpi_send_f08_",
            "mpi_send_f08ts_",
            "pmpi_send_f08ts_",
        ]
    );
    assert_eq!(
        symbols("MPI_Send_c"),
        ["mpi_send_f08_large_", "pmpi_send_f08_large_", "mpi_send_f08ts_large_", "pmpi_send_f08ts_large_"]
    );
    assert_eq!(symbols("MPI_T_init_thread"), [""; 0]);
    assert_eq!(symbols("MPI_Comm_f2c"), [""; 0]);
}

#[test]
fn no_symbol_belongs_to_two_functions() {
    let mut seen = BTreeSet::new();
    for id in FunctionId::all() {
        for symbol in id.function().fortran_symbols() {
            assert!(symbol.len() < 64, "{symbol}");
            assert!(seen.insert(symbol.to_string()), "{symbol}");
        }
    }
}

/// Every routine that a Fortran library exports with gfortran's spelling is one of ours, but for those with no C counterpart.
#[test]
fn exported_symbols_are_known() {
    let known: BTreeSet<String> =
        FunctionId::all().flat_map(|id| id.function().fortran_symbols()).map(|symbol| symbol.to_string()).collect();
    for library in installed::fortran_libraries() {
        let routines = library.functions.iter().filter(|name| name.starts_with("mpi_") && name.ends_with('_'));
        let routines: BTreeSet<&str> = routines.map(String::as_str).filter(|name| !name.ends_with("__")).collect();
        let ours = routines.iter().filter(|name| known.contains(**name)).count();
        assert!(ours > 340, "only {ours} routines of {} are known", library.path.display());
        let unknown: Vec<_> =
            routines.iter().filter(|name| !known.contains(**name) && !is_fortran_matter(name)).collect();
        assert!(unknown.is_empty(), "{} has {unknown:?}", library.path.display());
    }
}

/// Routines that Fortran alone has: predefined callbacks, sizes of variables, overloads for C pointers; and those of
/// MPI 4.1 that MPICH had under other names before there was MPI 4.1.
fn is_fortran_matter(symbol: &str) -> bool {
    let parts = ["_sizeof_", "_f_sync_reg_", "_cptr_", "_fn_", "_delete_error_"];
    parts.iter().any(|part| symbol.contains(part))
}
