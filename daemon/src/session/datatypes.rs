//! What the datatypes are that open calls were given, read from the memory of processes while the calls last: a call keeps its
//! datatype alive, and later its handle may stand for another one.

use mpiprobe_common::{
    Layout,
    layout::{Size, datatype_size},
};
use mpiprobe_discover::Process;
use mpiprobe_layout::{TargetMemory, datatype_name};
use mpiprobe_model::analyse::datatype_of_open_call;
use mpiprobe_observe::{DatatypeSnapshot, ProcessSnapshot, Snapshot};

use super::process_table::ProcessTable;

/// Adds to what the tables say.
pub(super) fn complete(snapshot: &mut Snapshot, process_table: &ProcessTable) {
    for tables in &mut snapshot.processes {
        let handles = of_open_calls(tables);
        if let Some(process) = process_table.process(tables.process)
            && !handles.is_empty()
        {
            tables.datatypes = read(handles, &tables.layout, process);
        }
    }
}

/// Handles of the datatypes that open calls of a process were given.
pub(super) fn of_open_calls(tables: &ProcessSnapshot) -> Vec<u64> {
    let handles = tables.threads.iter().filter_map(|thread| datatype_of_open_call(&thread.state, tables));
    let mut handles: Vec<u64> = handles.collect();
    handles.sort_unstable();
    handles.dedup();
    handles
}

/// What they are. Empty if the process's memory may not be read.
pub(super) fn read(handles: Vec<u64>, layout: &Layout, process: &Process) -> Vec<DatatypeSnapshot> {
    let Ok(memory) = TargetMemory::open(process) else { return Vec::new() };
    let read = |handle| DatatypeSnapshot {
        handle,
        name: datatype_name(layout, handle, &memory),
        size: match datatype_size(layout, handle, &memory) {
            Size::Known(size) => Some(size),
            Size::Unknown => None,
        },
    };
    handles.into_iter().map(read).collect()
}
