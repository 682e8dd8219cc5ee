//! Who is in a communicator, as far as its object says so directly.

use bytemuck::{Pod, Zeroable};

use super::objects::object;
use super::{Field, Layout, Memory, Objects, capability};

/// Where the facts stand in the object of a communicator.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct CommunicatorLayout {
    pub objects: Objects,
    /// Addresses of the objects of `MPI_COMM_WORLD` and `MPI_COMM_SELF`, whatever their handles are.
    pub world: u64,
    pub own: u64,
    pub rank: Field,
    pub size: Field,
    pub remote_size: Field,
    /// Not 0 under [`Self::inter_mask`]: an inter-communicator.
    pub inter: Field,
    pub context: Field,
    pub second_context: Field,
    pub inter_mask: u32,
    /// How the two make one number: [`context_kind`].
    pub context_kind: u32,
    /// How the name is kept: [`name_kind`].
    pub name_kind: u32,
    pub name: u32,
    /// How many characters the array has that the name is in.
    pub name_length: u32,
    /// Padding, zero.
    pub reserved: u32,
}

/// How the number that identifies a communicator's messages is made.
pub mod context_kind {
    /// The first field.
    pub const ONE: u32 = 0;
    /// The second field is the upper half.
    pub const UPPER: u32 = 1;
    /// The fields are the ids of sending and receiving, which differ in inter-communicators and are exchanged on the other
    /// side: together, in ascending order, they are the same for everybody.
    pub const PAIR: u32 = 2;
}

/// How an object keeps its name.
pub mod name_kind {
    pub const UNKNOWN: u32 = 0;
    /// An array of characters in the object.
    pub const INLINE: u32 = 1;
    /// The object has the address of the text.
    pub const POINTER: u32 = 2;
}

/// What the object of a communicator says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommFacts {
    /// The library's number for it. All members have the same one, but so may communicators that no process is a member of
    /// both of (the parts of one split): the members belong to its identity.
    pub context: u64,
    /// The process's rank in it, and the number of processes in the process's own group.
    pub rank: u32,
    pub size: u32,
    /// Processes in the other group of an inter-communicator; else 0.
    pub remote_size: u32,
    pub is_inter: bool,
}

/// The facts about the communicator `handle`; `None` for null, freed and unknown ones.
#[inline(always)]
pub fn comm<M: Memory>(layout: &Layout, handle: u64, memory: &M) -> Option<CommFacts> {
    match read(layout, handle, memory) {
        None => told(layout, handle),
        read => read,
    }
}

#[inline(always)]
fn read<M: Memory>(layout: &Layout, handle: u64, memory: &M) -> Option<CommFacts> {
    let object = comm_object(layout, handle, memory)?;
    let fields = &layout.communicators;
    let rank = fields.rank.read(object, memory)? as u32;
    let size = fields.size.read(object, memory)? as u32;
    if rank >= size || size > i32::MAX as u32 {
        return None;
    }
    let is_inter = is_inter(layout, object, memory)?;
    let remote_size = if is_inter { fields.remote_size.read(object, memory)? as u32 } else { 0 };
    let context = context(fields, object, is_inter, memory)?;
    Some(CommFacts { context, rank, size, remote_size, is_inter })
}

/// What is known of the predefined communicators without their objects. Both implementations that keep objects number
/// `MPI_COMM_WORLD` 0.
#[inline(always)]
pub(super) fn told(layout: &Layout, handle: u64) -> Option<CommFacts> {
    let handle = layout.handle(handle);
    if layout.told_rank >= layout.told_size || handle == 0 || layout.known & capability::CONSTANTS == 0 {
        return None;
    }
    let facts =
        CommFacts { context: 0, rank: layout.told_rank, size: layout.told_size, remote_size: 0, is_inter: false };
    if handle == layout.constants.comm_world {
        Some(facts)
    } else if handle == layout.constants.comm_self {
        Some(CommFacts { rank: 0, size: 1, ..facts })
    } else {
        None
    }
}

/// The address of the object of a communicator.
#[inline(always)]
pub fn comm_object<M: Memory>(layout: &Layout, handle: u64, memory: &M) -> Option<u64> {
    if !layout.knows(capability::COMMUNICATORS) {
        return None;
    }
    let handle = layout.handle(handle);
    if handle == layout.constants.comm_world {
        return Some(layout.communicators.world);
    }
    if handle == layout.constants.comm_self {
        return Some(layout.communicators.own);
    }
    if handle == layout.constants.comm_null {
        return None;
    }
    object(layout, &layout.communicators.objects, handle, memory)
}

#[inline(always)]
pub(super) fn is_inter<M: Memory>(layout: &Layout, object: u64, memory: &M) -> Option<bool> {
    let flags = layout.communicators.inter.read(object, memory)?;
    Some(flags & layout.communicators.inter_mask as u64 != 0)
}

#[inline(always)]
fn context<M: Memory>(fields: &CommunicatorLayout, object: u64, is_inter: bool, memory: &M) -> Option<u64> {
    let first = fields.context.read(object, memory)?;
    match fields.context_kind {
        context_kind::UPPER => Some(fields.second_context.read(object, memory)? << 32 ^ first),
        context_kind::PAIR if is_inter => {
            let second = fields.second_context.read(object, memory)?;
            let (low, high) = if first < second { (first, second) } else { (second, first) };
            Some(low << 32 | high & 0xffff_ffff)
        }
        _ => Some(first),
    }
}
