//! Open MPI: handles are addresses of objects, and the predefined ones are exported.
//!
//! An executable that names a predefined object has a copy of it (R_X86_64_COPY), and the library's own is dead. So the
//! addresses are taken from variables of the library, which lead to the live ones.

mod check;
mod constants;
mod offsets;
mod operations;
mod pointer_array;
mod predefined;
mod template;

use std::collections::HashSet;

use mpiprobe_common::{
    Layout,
    layout::{Memory, capability, handle_kind},
};
use offsets::{Offsets, TABLES};

use super::{
    Capability, Reason, Registry, TargetMemory,
    blueprint::{Findings, Target},
    version::nearest_first,
};
pub(super) use operations::{group, request, window};
pub(super) use pointer_array::PointerArray;
pub(super) use template::template;

const WORLD: &str = "ompi_mpi_comm_world_addr";
const SELF: &str = "ompi_mpi_comm_self_addr";
const COMMUNICATORS: &str = "ompi_mpi_communicators";
const DATATYPES: &str = "ompi_datatype_f_to_c_table";

/// Variables of the library that are looked up.
pub(super) const NAMES: &[&str] = &[
    WORLD,
    SELF,
    COMMUNICATORS,
    DATATYPES,
    "ompi_mpi_comm_null_addr",
    "ompi_request_null_addr",
    "ompi_request_empty",
    "ompi_message_f_to_c_table",
    "ompi_mpi_win_null_addr",
    "ompi_mpi_file_null_addr",
    "ompi_mpi_op_no_op_addr",
];

pub(super) fn find(target: &Target<'_>) -> Findings {
    let mut layout = Layout { handles: handle_kind::POINTER, ..Layout::default() };
    constants::fill(&mut layout, target);
    let mut found = Findings::of(&layout);
    let (world, own) = match predefined(target) {
        Ok(addresses) => addresses,
        Err(reason) => {
            for capability in
                [Capability::Datatypes, Capability::Communicators, Capability::Members, Capability::Requests]
            {
                found.missing.push((capability, reason.clone()));
            }
            return found;
        }
    };
    found.layout.known |= capability::CONSTANTS;
    found.layout.constants.comm_world = world;
    found.layout.constants.comm_self = own;

    if PointerArray::of(target, DATATYPES).is_none_or(|types| types.size == 0) {
        found.not_yet = true;
        return found;
    }
    let tables = nearest_first(TABLES, target.blueprint.version, |table| table.verified);
    found.registry = Registry::OpenMpi { array: target.address(COMMUNICATORS).unwrap_or(0) };
    let datatypes = first_that_fits(&mut found.layout, &tables, |layout, table| {
        layout.datatypes = table.datatypes();
        check::datatypes(layout, target)
    });
    if found.note(Capability::Datatypes, capability::DATATYPES, datatypes) {
        found.layout.predefined = predefined::datatypes(&found.layout, target);
    }
    // Messages are made ready after communicators: before, a message of nobody would pass for one of somebody.
    let lacks_messages = found.layout.constants.message_no_proc == 0 && target.address(constants::MESSAGES).is_ok();
    if lacks_messages || check::is_unset(target, world, &tables) {
        found.not_yet = true;
        return found;
    }
    let communicators = first_that_fits(&mut found.layout, &tables, |layout, table| {
        layout.communicators = table.communicators(world, own);
        layout.members = table.members();
        layout.requests = offsets::REQUESTS;
        check::communicators(layout, target)
    });
    if found.note(Capability::Communicators, capability::COMMUNICATORS, communicators) {
        let members = check::members(&mut found.layout, target);
        found.note(Capability::Members, capability::MEMBERS, members);
        let requests = check::requests(&found.layout, target);
        found.note(Capability::Requests, capability::REQUESTS, requests);
    } else {
        found.rest_on_communicators();
    }
    found
}

/// The live objects of `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
fn predefined(target: &Target<'_>) -> Result<(u64, u64), Reason> {
    let follow = |name| target.memory.word(target.address(name)?).ok_or(Reason::Unreadable(name));
    Ok((follow(WORLD)?, follow(SELF)?))
}

/// Leaves in `layout` the first table that passes; the error is that of the table that is closest to the library's version.
fn first_that_fits(
    layout: &mut Layout,
    tables: &[&'static Offsets],
    mut fits: impl FnMut(&mut Layout, &Offsets) -> Result<(), Reason>,
) -> Result<(), Reason> {
    let mut first = None;
    for table in tables {
        match fits(layout, table) {
            Ok(()) => return Ok(()),
            Err(reason) => first.get_or_insert(reason),
        };
    }
    Err(first.unwrap_or(Reason::UnknownImplementation))
}

/// Handles of all communicators in the array whose description is at `array`.
pub(super) fn handles(array: u64, layout: &Layout, memory: &TargetMemory) -> Vec<u64> {
    let Some(array) = PointerArray::at(memory, array) else { return Vec::new() };
    let mut found: Vec<u64> = array.iter().filter(|handle| *handle != layout.constants.comm_null).collect();
    // An inter-communicator has a communicator of its own group for collective operations, which is in the array as well.
    let hidden: HashSet<u64> = found.iter().filter_map(|handle| offsets::local_comm(layout, *handle, memory)).collect();
    found.retain(|handle| !hidden.contains(handle));
    found
}
