//! What is probed: what was chosen, and what the rest of it cannot be understood without.

use mpiprobe_functions::{FunctionId, FunctionSet};

/// The functions that the user has chosen, and those that traffic and phases need.
pub fn probed(chosen: FunctionSet, traffic: bool, ignore_pcontrol: bool) -> FunctionSet {
    let mut functions = if traffic { with_communicators(chosen) } else { chosen };
    if !ignore_pcontrol && let Some(control) = mpiprobe_functions::by_name("MPI_Pcontrol") {
        functions.insert(control);
    }
    functions
}

/// Together with what makes, names and frees communicators, so that it is known which one a handle means.
fn with_communicators(mut functions: FunctionSet) -> FunctionSet {
    for id in FunctionId::all() {
        if id.function().descriptor().concerns_communicators() {
            functions.insert(id);
        }
    }
    functions
}
