//! Whether what was found is true of a process: predefined objects have properties that are known.

use mpiprobe_common::{
    Layout,
    layout::{Field, Side, capability, comm, member_world_rank},
};

use super::{super::Reason, Target};

/// Types of value and index, which are objects: the first of the table, in this order.
const PAIRS: [(&str, u64); 5] = [
    ("MPI_FLOAT_INT", 8),
    ("MPI_DOUBLE_INT", 12),
    ("MPI_LONG_INT", 12),
    ("MPI_SHORT_INT", 6),
    ("MPI_LONG_DOUBLE_INT", 20),
];
const MAX_MEMBERS: u32 = 64;

/// The predefined types that are objects have their sizes.
pub(super) fn datatypes(layout: &Layout, target: &Target<'_>) -> Result<(), Reason> {
    let objects = &layout.datatypes.objects;
    for (index, (name, expected)) in PAIRS.iter().enumerate() {
        let object = objects.direct.wrapping_add(index as u64 * u64::from(objects.stride));
        let found = layout.datatypes.size.read(object, target.memory).ok_or(Reason::Unreadable("a datatype"))?;
        Reason::unless(&format!("the size of {name}"), *expected, found)?;
    }
    Ok(())
}

/// Rank and size of the predefined communicators. `Ok(false)`: they are not there yet.
pub(super) fn communicators(layout: &Layout, target: &Target<'_>) -> Result<bool, Reason> {
    let memory = target.memory;
    let layout = Layout { known: layout.known | capability::COMMUNICATORS, ..*layout };
    let fields = &layout.communicators;
    if fields.size.read(fields.world, memory) == Some(0) {
        return Ok(false);
    }
    let world = comm(&layout, layout.constants.comm_world, memory).ok_or(Reason::Unreadable("MPI_COMM_WORLD"))?;
    let own = comm(&layout, layout.constants.comm_self, memory).ok_or(Reason::Unreadable("MPI_COMM_SELF"))?;
    target.expected.check(world.rank, world.size)?;
    Reason::unless("the rank in MPI_COMM_SELF", 0u32, own.rank)?;
    Reason::unless("the size of MPI_COMM_SELF", 1u32, own.size)?;
    Reason::unless("the number of inter-communicators", 0u64, u64::from(world.is_inter) + u64::from(own.is_inter))?;
    let contexts = |field: &Field| Some((field.read(fields.world, memory)?, field.read(fields.own, memory)?));
    let (received, sent) = (contexts(&fields.context), contexts(&fields.second_context));
    if received.is_none() || received != sent || world.context == own.context {
        return Err(Reason::Unreadable("the contexts of MPI_COMM_WORLD and MPI_COMM_SELF"));
    }
    Ok(true)
}

/// In `MPI_COMM_WORLD` ranks are world ranks.
pub(super) fn members(layout: &Layout, target: &Target<'_>) -> Result<(), Reason> {
    let memory = target.memory;
    let layout = Layout { known: layout.known | capability::MEMBERS, ..*layout };
    let world = layout.constants.comm_world;
    let facts = comm(&layout, world, memory).ok_or(Reason::Unreadable("MPI_COMM_WORLD"))?;
    for rank in (0..facts.size.min(MAX_MEMBERS)).chain([facts.rank, facts.size - 1]) {
        let found = member_world_rank(&layout, world, Side::Local, rank, memory)
            .ok_or(Reason::Unreadable("a member of MPI_COMM_WORLD"))?;
        Reason::unless("a rank of MPI_COMM_WORLD", rank, found)?;
    }
    let own = member_world_rank(&layout, layout.constants.comm_self, Side::Local, 0, memory)
        .ok_or(Reason::Unreadable("the member of MPI_COMM_SELF"))?;
    Reason::unless("the member of MPI_COMM_SELF", facts.rank, own)
}

/// Of communicators that the program has made: the process is the one in them that the launcher says it is. `false`: there is
/// none, or not enough is known to tell.
pub(super) fn communicators_of_session(layout: &Layout, target: &Target<'_>) -> bool {
    let memory = target.memory;
    let (Some(rank), Some(size)) = (target.expected.rank, target.expected.size) else { return false };
    let layout = Layout { known: layout.known | capability::COMMUNICATORS | capability::MEMBERS, ..*layout };
    let made = super::handles_made(&layout, memory);
    let is_right = |handle: &u64| {
        let facts = comm(&layout, *handle, memory).filter(|facts| facts.size <= size);
        facts.and_then(|facts| member_world_rank(&layout, *handle, Side::Local, facts.rank, memory)) == Some(rank)
    };
    !made.is_empty() && made.iter().all(is_right)
}
