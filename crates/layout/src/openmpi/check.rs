//! Whether a table of offsets is true of a process: predefined objects have properties that are known.

use mpiprobe_common::{
    Layout,
    layout::{
        Field, Memory, Side, Size, capability, comm, datatype_size, member_world_rank, status_bytes, status_source,
        status_tag,
    },
};

use super::{
    super::{Reason, names::datatype_name},
    DATATYPES, Offsets, PointerArray, Target,
};

/// More predefined datatypes than any release has.
pub(super) const MAX_DATATYPES: usize = 256;
/// How many members of `MPI_COMM_WORLD` are looked at, besides the process itself.
const MAX_MEMBERS: u32 = 64;

/// By name: which numbers they have differs.
const SIZES: [(&str, u64); 8] = [
    ("MPI_CHAR", 1),
    ("MPI_SHORT", 2),
    ("MPI_INT", 4),
    ("MPI_LONG", 8),
    ("MPI_DOUBLE", 8),
    ("MPI_C_DOUBLE_COMPLEX", 16),
    ("MPI_LONG_DOUBLE", 16),
    ("MPI_DOUBLE_INT", 12),
];

/// The predefined datatypes have their names and sizes.
pub(super) fn datatypes(layout: &Layout, target: &Target<'_>) -> Result<(), Reason> {
    let layout = Layout { known: layout.known | capability::DATATYPES, ..*layout };
    let table = PointerArray::of(target, DATATYPES).ok_or(Reason::NoTable("datatypes"))?;
    let mut left = SIZES.to_vec();
    for handle in table.iter().take(MAX_DATATYPES) {
        let Some(name) = datatype_name(&layout, handle, target.memory) else { continue };
        let Some(place) = left.iter().position(|(known, _)| *known == name) else { continue };
        let (name, size) = left.swap_remove(place);
        match datatype_size(&layout, handle, target.memory) {
            Size::Known(found) => Reason::unless(&format!("the size of {name}"), size, found)?,
            Size::Unknown => return Err(Reason::Unreadable("a datatype")),
        }
    }
    Reason::unless("the number of datatypes without a name", 0u64, left.len() as u64)
}

/// Whether `MPI_COMM_WORLD` has no group yet, by any table.
pub(super) fn is_unset(target: &Target<'_>, world: u64, tables: &[&Offsets]) -> bool {
    tables.first().is_some_and(|table| target.memory.word(world.wrapping_add(table.local_group())) == Some(0))
}

/// Rank and size of the predefined communicators, twice: by the communicator and by its group.
pub(super) fn communicators(layout: &Layout, target: &Target<'_>) -> Result<(), Reason> {
    let memory = target.memory;
    let layout = Layout { known: layout.known | capability::COMMUNICATORS, ..*layout };
    let world = comm(&layout, layout.constants.comm_world, memory).ok_or(Reason::Unreadable("MPI_COMM_WORLD"))?;
    let own = comm(&layout, layout.constants.comm_self, memory).ok_or(Reason::Unreadable("MPI_COMM_SELF"))?;
    target.expected.check(world.rank, world.size)?;
    let group_rank = Field { offset: 20, ..layout.communicators.size };
    let by_group =
        group_rank.read(layout.communicators.world, memory).ok_or(Reason::Unreadable("the group of MPI_COMM_WORLD"))?;
    Reason::unless("the rank in the group of MPI_COMM_WORLD", world.rank, by_group)?;
    Reason::unless("the rank in MPI_COMM_SELF", 0u32, own.rank)?;
    Reason::unless("the size of MPI_COMM_SELF", 1u32, own.size)?;
    Reason::unless("the context of MPI_COMM_WORLD", 0u64, world.context)?;
    Reason::unless("whether MPI_COMM_SELF has a context of its own", true, own.context != world.context)?;
    Reason::unless("the number of inter-communicators", 0u64, u64::from(world.is_inter) + u64::from(own.is_inter))
}

/// In `MPI_COMM_WORLD` ranks are world ranks. Sets the number of the process's own job.
pub(super) fn members(layout: &mut Layout, target: &Target<'_>) -> Result<(), Reason> {
    let memory = target.memory;
    let world = layout.constants.comm_world;
    let facts = comm(layout, world, memory).ok_or(Reason::Unreadable("MPI_COMM_WORLD"))?;
    layout.members.own_job = own_job(layout, target).ok_or(Reason::Unreadable("the process's own entry"))?;
    let layout = Layout { known: layout.known | capability::MEMBERS, ..*layout };
    for rank in (0..facts.size.min(MAX_MEMBERS)).chain([facts.rank, facts.size - 1]) {
        let found = member_world_rank(&layout, world, Side::Local, rank, memory)
            .ok_or(Reason::Unreadable("a member of MPI_COMM_WORLD"))?;
        Reason::unless("a rank of MPI_COMM_WORLD", rank, found)?;
    }
    let own = member_world_rank(&layout, layout.constants.comm_self, Side::Local, 0, memory)
        .ok_or(Reason::Unreadable("the member of MPI_COMM_SELF"))?;
    Reason::unless("the member of MPI_COMM_SELF", facts.rank, own)
}

/// The job of the only member of `MPI_COMM_SELF`.
fn own_job(layout: &Layout, target: &Target<'_>) -> Option<u32> {
    let (members, memory) = (&layout.members, target.memory);
    let group = memory.word(layout.communicators.own.wrapping_add(members.local.into()))?;
    let array = memory.word(group.wrapping_add(members.list.into()))?;
    let job = Field::at(members.job, 4).read(memory.word(array)?, memory)?;
    u32::try_from(job).ok()
}

/// The request that is always complete has the status of a receive from nobody.
pub(super) fn requests(layout: &Layout, target: &Target<'_>) -> Result<(), Reason> {
    let (constants, memory) = (&layout.constants, target.memory);
    let empty = constants.request_complete_first;
    let status = empty.checked_add(layout.requests.status.into()).ok_or(Reason::NoSymbol("ompi_request_empty"))?;
    let source = status_source(layout, status, memory);
    let is_empty = (source == Some(constants.any_source) || source == Some(constants.proc_null))
        && status_tag(layout, status, memory) == Some(constants.any_tag)
        && status_bytes(layout, status, memory) == Some(0);
    if is_empty { Ok(()) } else { Err(Reason::Unreadable("the empty status of a request")) }
}
