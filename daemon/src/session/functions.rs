//! What is counted, and what is probed: what it cannot be understood without, too.

use mpiprobe_functions::{FunctionId, FunctionSet, Group};

/// The functions whose calls are counted: those that the user has chosen, and what programs mark phases by.
pub(super) fn counted(chosen: FunctionSet, ignore_pcontrol: bool) -> FunctionSet {
    let mut functions = chosen;
    if !ignore_pcontrol && let Some(control) = mpiprobe_functions::by_name("MPI_Pcontrol") {
        functions.insert(control);
    }
    functions
}

/// Whether there are local questions among these functions, which language layers ask on their own account, too.
pub(super) fn has_queries(chosen: FunctionSet) -> bool {
    chosen.iter().any(|id| id.function().group == Group::Query)
}

/// These, and those that traffic needs, of which nothing is counted.
pub(super) fn probed(chosen: FunctionSet, traffic: bool, ignore_pcontrol: bool) -> FunctionSet {
    let functions = counted(chosen, ignore_pcontrol);
    if traffic { with_communicators(functions) } else { functions }
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
