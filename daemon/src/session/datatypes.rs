//! What the datatypes are that open calls were given, read from the memory of processes while the calls last: a call keeps its
//! datatype alive, and later its handle may stand for another one.

use mpiprobe_common::layout::{Size, datatype_size};

use super::roster::Roster;
use crate::{
    analyse::datatype_of_open_call,
    layout::{TargetMemory, datatype_name},
    observe::{DatatypeSnapshot, Snapshot},
};

/// Adds to what the tables say.
pub(super) fn complete(snapshot: &mut Snapshot, roster: &Roster) {
    for process in &mut snapshot.processes {
        let handles = process.threads.iter().filter_map(|thread| datatype_of_open_call(&thread.state, process));
        let mut handles: Vec<u64> = handles.collect();
        handles.sort_unstable();
        handles.dedup();
        if handles.is_empty() {
            continue;
        }
        let Some(memory) = roster.process(process.process).and_then(|process| TargetMemory::open(process).ok()) else {
            continue;
        };
        let read = |handle| DatatypeSnapshot {
            handle,
            name: datatype_name(&process.layout, handle, &memory),
            size: match datatype_size(&process.layout, handle, &memory) {
                Size::Known(size) => Some(size),
                Size::Unknown => None,
            },
        };
        process.datatypes = handles.into_iter().map(read).collect();
    }
}
