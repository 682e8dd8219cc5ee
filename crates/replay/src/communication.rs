//! What functions do between processes, found out once: where nothing repeats, it is asked for each call.

use std::sync::LazyLock;

use mpiprobe_functions::{Communication, FUNCTIONS, Function, FunctionId};

static ALL: LazyLock<Vec<Communication>> = LazyLock::new(|| FUNCTIONS.iter().map(Function::communication).collect());

/// The same as [`Function::communication`](mpiprobe_functions::Function::communication).
pub fn communication(function: FunctionId) -> Communication {
    ALL.get(function.index()).copied().unwrap_or(Communication::Nothing)
}
