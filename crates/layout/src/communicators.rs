//! The communicators that a process has, and who is in them.

use mpiprobe_common::{
    Layout,
    layout::{CommFacts, Side, comm, member_world_rank},
};

use super::{TargetMemory, blueprint::Registry, mpich, names::comm_name, openmpi};

/// One communicator of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Communicator {
    /// As the process passes it in calls.
    pub handle: u64,
    pub facts: CommFacts,
    pub name: Option<String>,
}

/// More communicators than any library can have at a time (contexts have 16 bits in most).
const MAX_COMMUNICATORS: usize = 1 << 16;
/// More processes than any job has.
const MAX_MEMBERS: u32 = 1 << 24;

/// All communicators that exist now and that the program can have a handle of, in no particular order.
///
/// What the library has made for its own use (for the processes of one node, say) is left out.
pub fn communicators(layout: &Layout, registry: Registry, memory: &TargetMemory) -> Vec<Communicator> {
    let handles = match registry {
        Registry::None => Vec::new(),
        Registry::OpenMpi { array } => openmpi::handles(array, layout, memory),
        Registry::Mpich => mpich::handles(layout, memory),
    };
    let known = handles.into_iter().take(MAX_COMMUNICATORS).filter_map(|handle| {
        let facts = comm(layout, handle, memory)?;
        Some(Communicator { handle, facts, name: comm_name(layout, handle, memory) })
    });
    known.collect()
}

/// The members of one group of the communicator `handle` as world ranks, in the order of their ranks in it. `None` within: a
/// process of another world. `None` if they are not known.
pub fn members(layout: &Layout, handle: u64, group: Side, memory: &TargetMemory) -> Option<Vec<Option<u32>>> {
    if !layout.knows(mpiprobe_common::layout::capability::MEMBERS) {
        return None;
    }
    let facts = comm(layout, handle, memory)?;
    let size = if facts.is_inter && group == Side::Remote { facts.remote_size } else { facts.size };
    let member = |rank| member_world_rank(layout, handle, group, rank, memory);
    Some((0..size.min(MAX_MEMBERS)).map(member).collect())
}
