//! What is found of communicators, requests and windows, whatever the library.

use mpiprobe_common::{
    FoundOperation, FoundPeer, FoundProgress, FoundRequest, FoundTag, Layout,
    layout::{CommFacts, Side, comm, member_world_rank},
};
use mpiprobe_discover::printable;

use super::TargetMemory;

/// One communicator of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Communicator {
    /// As the process passes it in calls.
    pub handle: u64,
    pub facts: CommFacts,
    pub name: Option<String>,
}

/// More processes than any job has.
const MAX_MEMBERS: u32 = 1 << 24;

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

/// One of which nothing is known but that it is there.
pub(super) const NOTHING: FoundRequest = FoundRequest {
    operation: FoundOperation::Other,
    progress: FoundProgress::Active,
    is_persistent: false,
    communicator: None,
    peer: FoundPeer::Unknown,
    tag: FoundTag::Unknown,
    bytes: None,
};

/// A rank and a tag as a call was given them; `None` if they cannot be those of a message in a communicator of `size` ranks.
pub(super) fn ends(layout: &Layout, (peer, tag): (i32, i32), size: u32) -> Option<(FoundPeer, FoundTag)> {
    let constants = &layout.constants;
    let peer = match u32::try_from(peer) {
        Ok(rank) if rank < size => FoundPeer::Rank(rank),
        Err(_) if peer == constants.any_source => FoundPeer::Any,
        _ => return None,
    };
    let tag = match tag {
        0.. => FoundTag::Tag(tag),
        _ if tag == constants.any_tag => FoundTag::Any,
        _ => return None,
    };
    Some((peer, tag))
}

/// A window of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Given by the program, or by the library.
    pub name: Option<String>,
    /// The library's number for it, which all members have; `None`: not known.
    pub context: Option<u64>,
    /// World ranks of the members, in their order; `None` within: a process of another world.
    pub members: Vec<Option<u32>>,
}

/// More processes than any window has whose members are listed.
pub(super) const MAX_LISTED: u32 = 1 << 16;

pub(super) fn shown(name: Option<String>) -> Option<String> {
    name.filter(|name| !name.is_empty()).map(|name| printable(name.as_bytes()))
}
