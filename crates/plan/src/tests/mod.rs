//! Tests of the whole way from a file to its sites; those of single files stand beside them.

mod compiled;
mod files;
mod hostile_files;
mod installed;
mod planner_properties;
mod prologues;
mod resolving;

use super::{Implementation, Library, Plan, plan};

/// Every function that looks like one of MPI's C functions, with all argument registers kept.
fn plan_mpi(library: &Library<'_>) -> Plan<()> {
    plan(library, |name| is_c_function(name).then_some(()), |()| 6).unwrap()
}

/// `MPI_Send` and `PMPI_Send`, but not the Fortran spellings `MPI_SEND` and `MPI_Send_f`.
fn is_c_function(name: &str) -> bool {
    let name = name.strip_prefix('P').unwrap_or(name);
    let Some(rest) = name.strip_prefix("MPI_") else { return false };
    rest.bytes().any(|byte| byte.is_ascii_lowercase()) && !rest.ends_with("_f") && !rest.ends_with("_f08")
}

/// Everything that is ever asked of a file.
fn examine(bytes: &[u8]) -> Option<(Plan<()>, Implementation)> {
    let library = Library::parse(bytes).ok()?;
    let _ = (library.mpi_role(), library.is_stripped(), library.soname(), library.build_id());
    let plan = plan(&library, |_| Some(()), |()| 6).ok()?;
    let _ = plan.census().to_string();
    Some((plan, Implementation::of(&library)))
}
