//! Names that programs and libraries give to objects.

use mpiprobe_common::{
    Layout,
    layout::{Memory, comm_object, datatype_object, name_kind},
};
use mpiprobe_discover::printable;

use super::{TargetMemory, predefined_name};

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

/// What the library itself says of a communicator by a name of its own making: how it was made, such as `split` (`comm` if it does
/// not say), and whether that was from `MPI_COMM_WORLD`.
///
/// Open MPI calls them `MPI COMMUNICATOR 5 SPLIT FROM 0`, by contexts, or `MPI_COMMUNICATOR 5`. The context of the world is
/// never used for another one.
pub fn made_up(name: &str) -> Option<(String, bool)> {
    let rest = name.strip_prefix("MPI COMMUNICATOR ").or_else(|| name.strip_prefix("MPI_COMMUNICATOR "))?;
    let origin = rest.split_once(' ').and_then(|(_, origin)| origin.split_once(" FROM "));
    Some(origin.map_or_else(|| ("comm".to_owned(), false), |(how, from)| (how.to_lowercase(), from == "0")))
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

/// Where predefined objects that are addressed by their handles keep their names, bytes from their beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct NamePlaces {
    datatype: Option<u64>,
    op: Option<u64>,
}

impl NamePlaces {
    /// Where an object of each kind that is known has what can be nothing but its name.
    pub fn of(layout: &Layout, memory: &TargetMemory) -> Self {
        let constants = &layout.constants;
        Self { datatype: name_in(constants.datatype_null, memory), op: name_in(constants.no_op, memory) }
    }

    /// The name of a predefined datatype; `None`: it is none.
    pub fn datatype(&self, handle: u64, memory: &TargetMemory) -> Option<&'static str> {
        predefined_at(handle.checked_add(self.datatype?)?, memory)
    }

    /// The name of a predefined operation; `None`: it is none.
    pub fn op(&self, handle: u64, memory: &TargetMemory) -> Option<&'static str> {
        predefined_at(handle.checked_add(self.op?)?, memory)
    }
}

fn name_in(object: u64, memory: &TargetMemory) -> Option<u64> {
    /// Predefined objects are at least so large.
    const OBJECT: u64 = 512;
    const PREFIX: &[u8] = b"MPI_";
    if object == 0 {
        return None;
    }
    let bytes = memory.bytes(object..object.checked_add(OBJECT)?)?;
    let place = bytes.windows(PREFIX.len()).position(|window| window == PREFIX)?;
    u64::try_from(place).ok()
}

fn predefined_at(place: u64, memory: &TargetMemory) -> Option<&'static str> {
    predefined_name(&memory.text(place, MAX_NAME)?)
}

fn shown(name: Option<String>) -> Option<String> {
    name.filter(|name| !name.is_empty()).map(|name| printable(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::made_up;

    #[test]
    fn names_that_the_library_has_made_up_say_where_from() {
        assert_eq!(made_up("MPI COMMUNICATOR 5 SPLIT FROM 0"), Some(("split".to_owned(), true)));
        assert_eq!(made_up("MPI COMMUNICATOR 8 DUP FROM 10"), Some(("dup".to_owned(), false)));
        assert_eq!(made_up("MPI_COMMUNICATOR 9"), Some(("comm".to_owned(), false)));
        assert_eq!(made_up("rows of MPI COMMUNICATOR 5 SPLIT FROM 0"), None);
    }
}
