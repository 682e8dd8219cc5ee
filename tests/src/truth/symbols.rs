//! Which symbols to interpose, and which C function each one stands for. The source is what the installed libraries define,
//! never a list of MPI functions of our own: a list could share a gap with the profiler's.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use object::{Object, ObjectSymbol, SymbolKind};

use crate::compile::{CompileError, file_error};

/// Exported symbol → C function. Several symbols stand for one function (`mpi_send_`, `MPI_SEND`, `mpi_send_f08ts_`).
pub(super) type Interposed = BTreeMap<String, String>;

pub(super) fn interposed(c_library: &Path, fortran_libraries: &[impl AsRef<Path>]) -> Result<Interposed, CompileError> {
    let mut symbols = Interposed::new();
    let mut by_lower_case = BTreeMap::new();
    for name in defined_functions(c_library)? {
        if is_c_function(&name) {
            by_lower_case.insert(name.to_ascii_lowercase(), name.clone());
            symbols.insert(name.clone(), name);
        }
    }
    for library in fortran_libraries {
        for name in defined_functions(library.as_ref())? {
            if let Some(function) = c_name_of_fortran(&name).and_then(|c_name| by_lower_case.get(&c_name)) {
                symbols.entry(name).or_insert_with(|| function.clone());
            }
        }
    }
    Ok(symbols)
}

/// `MPI_Send`, `MPI_T_init_thread`; not `MPI_DUP_FN` (a predefined callback: its address means something, and only the library
/// calls it) or the Fortran spellings `MPI_SEND`.
fn is_c_function(name: &str) -> bool {
    name.starts_with("MPI_") && name.chars().any(|character| character.is_ascii_lowercase()) && !is_callback(name)
}

fn is_callback(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.trim_end_matches('_').ends_with("_fn") || name.contains("_fn_null")
}

/// Lower-case C name for a Fortran entry point: `mpi_send`, `mpi_send_`, `mpi_send__`, `MPI_SEND`, `mpi_send_f08_`,
/// `mpi_send_f08ts_` → `mpi_send`; `mpi_send_f08ts_large_` → `mpi_send_c`. None for `MPI_Send_f`, which is a Fortran entry under
/// an internal name that no program calls.
fn c_name_of_fortran(symbol: &str) -> Option<String> {
    let mixed_case = symbol.chars().any(|character| character.is_ascii_lowercase())
        && symbol.chars().any(|character| character.is_ascii_uppercase());
    let lower = symbol.to_ascii_lowercase();
    if mixed_case || !lower.starts_with("mpi_") || is_callback(&lower) {
        return None;
    }
    let bare = lower.trim_end_matches('_');
    let (bare, large) = bare.strip_suffix("_large").map_or((bare, false), |small| (small, true));
    let bare = bare.strip_suffix("_f08ts").or_else(|| bare.strip_suffix("_f08")).unwrap_or(bare);
    Some(if large { format!("{bare}_c") } else { bare.to_owned() })
}

/// Names of the functions that a shared library defines for others.
fn defined_functions(library: &Path) -> Result<Vec<String>, CompileError> {
    let data = fs::read(library).map_err(file_error("reading", library))?;
    let file =
        object::File::parse(&*data).map_err(|source| CompileError::Symbols { path: library.to_owned(), source })?;
    let functions = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
        .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
        .collect();
    Ok(functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fortran_spellings_map_to_the_c_function() {
        for symbol in ["mpi_send", "mpi_send_", "mpi_send__", "MPI_SEND", "mpi_send_f08_", "mpi_send_f08ts_"] {
            assert_eq!(c_name_of_fortran(symbol).as_deref(), Some("mpi_send"), "{symbol}");
        }
        assert_eq!(c_name_of_fortran("mpi_send_f08ts_large_").as_deref(), Some("mpi_send_c"));
        assert_eq!(c_name_of_fortran("mpi_type_size_f08_large_").as_deref(), Some("mpi_type_size_c"));
    }

    #[test]
    fn internal_names_and_callbacks_are_left_alone() {
        for symbol in
            ["MPI_Send_f", "MPI_Send_f08", "ompi_send_f", "mpi_dup_fn_", "MPI_COMM_NULL_COPY_FN", "pmpi_send_"]
        {
            assert_eq!(c_name_of_fortran(symbol), None, "{symbol}");
        }
        assert!(is_c_function("MPI_T_init_thread"));
        assert!(!is_c_function("MPI_CONVERSION_FN_NULL"));
        assert!(!is_c_function("PMPI_Send"));
    }
}
