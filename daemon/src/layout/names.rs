//! Names that programs and libraries give to objects.

use mpiprobe_common::Layout;
use mpiprobe_common::layout::{Memory, comm_object, datatype_object, name_kind};

use super::TargetMemory;
use crate::discover::printable;

/// No name is longer, in bytes (MPI_MAX_OBJECT_NAME is 64 or 128).
const MAX_NAME: u64 = 1024;

/// The name of a communicator, printable; `None` if it has none or none can be read.
pub fn comm_name(layout: &Layout, handle: u64, memory: &TargetMemory) -> Option<String> {
    let place = comm_object(layout, handle, memory)?.checked_add(layout.communicators.name.into())?;
    let name = match layout.communicators.name_kind {
        name_kind::INLINE => memory.text(place, layout.communicators.name_length.into()),
        name_kind::POINTER => memory.text(memory.word(place)?, MAX_NAME),
        _ => None,
    };
    shown(name)
}

/// The name of a datatype, printable; `None` if it has none or none can be read.
pub fn datatype_name(layout: &Layout, handle: u64, memory: &TargetMemory) -> Option<String> {
    let fields = &layout.datatypes;
    if fields.name == 0 {
        return None;
    }
    let place = datatype_object(layout, handle, memory)?.checked_add(fields.name.into())?;
    shown(memory.text(place, fields.name_length.into()))
}

fn shown(name: Option<String>) -> Option<String> {
    name.filter(|name| !name.is_empty()).map(|name| printable(name.as_bytes()))
}
