//! Function ids to names and groups.

use mpiprobe_functions::{Function, FunctionId, Group};

/// The function of an id in the tables.
pub(super) fn function(id: u32) -> Option<&'static Function> {
    FunctionId::from_index(u16::try_from(id).ok()?).map(FunctionId::function)
}

/// Its name; what the table does not know cannot have been probed.
pub(super) fn name(id: u32) -> &'static str {
    function(id).map_or("unknown function", |function| function.name)
}

pub(super) fn group(id: u32) -> Group {
    function(id).map_or(Group::Other, |function| function.group)
}
