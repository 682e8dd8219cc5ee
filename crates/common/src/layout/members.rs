//! From a rank in a communicator to the rank in `MPI_COMM_WORLD`.

use bytemuck::{Pod, Zeroable};

use super::communicator::{comm, comm_object, is_inter, told};
use super::memory::{int, integer, is_address, pointer};
use super::{Layout, Memory, capability};

/// How a communicator keeps its members. The offsets mean what the [kind](member_kind) says of them; those it does not speak of
/// are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct MemberLayout {
    /// One of [`member_kind`].
    pub kind: u32,
    /// Where in a communicator the description of its own group stands, and that of the other group of an
    /// inter-communicator. (In an intra-communicator, `local` is used.)
    pub local: u32,
    pub remote: u32,
    /// If not 0: in an inter-communicator, the own group stands here instead of at `local`.
    pub local_of_inter: u32,
    pub mode: u32,
    pub list: u32,
    pub first: u32,
    pub step: u32,
    pub block: u32,
    pub world: u32,
    pub rank: u32,
    pub job: u32,
    /// Value of `job` of the processes whose ranks are ranks in this process's `MPI_COMM_WORLD`.
    pub own_job: u32,
    /// Padding, zero.
    pub reserved: u32,
}

/// Ways of keeping members.
pub mod member_kind {
    pub const UNKNOWN: u32 = 0;
    /// `local` and `remote` are where the address of a group stands. At `mode` it has flags, of which bit 2 says that at
    /// `list` stands the address of an array with the addresses of processes; a process has its world rank at `rank` and
    /// the number of its job at `job`. An address with bit 0 set is none, but has the job in bits 1–31 and the world rank in
    /// bits 32–63.
    pub const PROCESSES: u32 = 1;
    /// `local` and `remote` are where a map stands, whose `mode` says how world ranks follow from ranks: 0–1 they are the
    /// same; 2–3 plus `first`; 4–5 times `step` plus `first`; 6–7 in blocks of `block`, `step` apart, from `first` on; 8–9
    /// by the array of numbers whose address stands at `list`; 10 by the array of pairs (world, rank) whose address stands
    /// there. The map of one world has its number, 0 for the own one, at `world`.
    pub const MAP: u32 = 2;
    /// `local` and `remote` are where the address of a group stands. If the byte at `mode` is not 0, `list` is where the
    /// address of an array of 64-bit numbers stands, else ranks are times `step` plus `first`. Numbers from 2^32 on are not
    /// world ranks.
    pub const GROUP: u32 = 3;
}

/// Which group of a communicator a rank belongs to. In an intra-communicator both are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Local,
    Remote,
}

/// The world rank of the process that a call on the communicator `handle` names by `rank`: in an inter-communicator one of the
/// other group.
///
/// `None` if the process is of another world (spawned, or connected to), or if `rank` is none of the communicator's.
#[inline(always)]
pub fn world_rank<M: Memory>(layout: &Layout, handle: u64, rank: u32, memory: &M) -> Option<u32> {
    let world = layout.constants.comm_world;
    if world != 0 && layout.handle(handle) == world && layout.knows(capability::CONSTANTS) {
        // By definition, wherever the library keeps its members, and whether it has got them already.
        let size = comm(layout, handle, memory)?.size;
        return if rank < size { Some(rank) } else { None };
    }
    member_world_rank(layout, handle, Side::Remote, rank, memory)
}

/// The world rank of one member of the communicator `handle`.
#[inline(always)]
pub fn member_world_rank<M: Memory>(layout: &Layout, handle: u64, group: Side, rank: u32, memory: &M) -> Option<u32> {
    if !layout.knows(capability::COMMUNICATORS) {
        let facts = told(layout, handle)?;
        return if rank >= facts.size {
            None
        } else if facts.size == layout.told_size && layout.handle(handle) == layout.constants.comm_world {
            Some(rank)
        } else {
            Some(layout.told_rank)
        };
    }
    if !layout.knows(capability::MEMBERS) {
        return None;
    }
    let object = comm_object(layout, handle, memory)?;
    let fields = &layout.communicators;
    let is_inter = is_inter(layout, object, memory)?;
    let is_remote = is_inter && matches!(group, Side::Remote);
    let size = if is_remote { fields.remote_size.read(object, memory)? } else { fields.size.read(object, memory)? };
    // Also keeps what follows within arrays and products within 64 bits.
    if rank as u64 >= size || size > i32::MAX as u64 {
        return None;
    }
    let members = &layout.members;
    let offset = if is_remote {
        members.remote
    } else if is_inter && members.local_of_inter != 0 {
        members.local_of_inter
    } else {
        members.local
    };
    let place = object.wrapping_add(offset as u64);
    match members.kind {
        member_kind::PROCESSES => process_rank(layout, pointer(memory, place)?, rank as u64, memory),
        member_kind::MAP => mapped_rank(layout, place, rank, memory),
        member_kind::GROUP => group_rank(layout, pointer(memory, place)?, rank as u64, memory),
        _ => None,
    }
}

/// The world rank of one member of a group, by the group's own handle, where that is the address of what communicators lead to.
#[inline(always)]
pub fn group_member_world_rank<M: Memory>(layout: &Layout, group: u64, rank: u32, memory: &M) -> Option<u32> {
    let is_read = layout.knows(capability::MEMBERS) && layout.members.kind == member_kind::PROCESSES;
    if is_read { process_rank(layout, group, rank as u64, memory) } else { None }
}

/// Bit of a group's flags: its processes are in an array.
const DENSE: u64 = 1 << 2;

#[inline(always)]
fn process_rank<M: Memory>(layout: &Layout, group: u64, rank: u64, memory: &M) -> Option<u32> {
    let members = &layout.members;
    if integer(memory, group.wrapping_add(members.mode as u64), 4)? & DENSE == 0 {
        return None;
    }
    let array = pointer(memory, group.wrapping_add(members.list as u64))?;
    let process = memory.word(array.wrapping_add(rank * 8))?;
    let (job, rank) = if process & 1 != 0 {
        // Family in bits 16–31, number in the family in bits 1–15: a job is family << 16 | number.
        (process & 0xffff_0000 | process >> 1 & 0x7fff, process >> 32)
    } else if is_address(process) {
        let job = integer(memory, process.wrapping_add(members.job as u64), 4)?;
        (job, integer(memory, process.wrapping_add(members.rank as u64), 4)?)
    } else {
        return None;
    };
    if job == members.own_job as u64 { Some(rank as u32) } else { None }
}

#[inline(always)]
fn mapped_rank<M: Memory>(layout: &Layout, map: u64, rank: u32, memory: &M) -> Option<u32> {
    let members = &layout.members;
    let number = |offset: u32| int(memory, map.wrapping_add(offset as u64));
    let mode = number(members.mode)?;
    let wide = rank as i64;
    if mode == 10 {
        let list = pointer(memory, map.wrapping_add(members.list as u64))?;
        let pair = memory.word(list.wrapping_add(rank as u64 * 8))?;
        return if pair as u32 == 0 { non_negative((pair >> 32) as i32 as i64) } else { None };
    }
    // Even modes name their world, odd ones are of the own one.
    if mode & 1 == 0 && number(members.world)? != 0 {
        return None;
    }
    match mode {
        0 | 1 => Some(rank),
        2 | 3 => non_negative(wide + number(members.first)? as i64),
        4 | 5 => non_negative(wide * number(members.step)? as i64 + number(members.first)? as i64),
        6 | 7 => {
            let block = number(members.block)?;
            if block <= 0 {
                return None;
            }
            let gap = number(members.step)? as i64 - block as i64;
            non_negative((rank / block as u32) as i64 * gap + wide + number(members.first)? as i64)
        }
        8 | 9 => {
            let list = pointer(memory, map.wrapping_add(members.list as u64))?;
            non_negative(int(memory, list.wrapping_add(rank as u64 * 4))? as i64)
        }
        _ => None,
    }
}

#[inline(always)]
fn group_rank<M: Memory>(layout: &Layout, group: u64, rank: u64, memory: &M) -> Option<u32> {
    let members = &layout.members;
    let number = |offset: u32| memory.word(group.wrapping_add(offset as u64));
    let value = if integer(memory, group.wrapping_add(members.mode as u64), 1)? != 0 {
        let list = pointer(memory, group.wrapping_add(members.list as u64))?;
        memory.word(list.wrapping_add(rank * 8))?
    } else {
        number(members.first)?.wrapping_add(rank.wrapping_mul(number(members.step)?))
    };
    non_negative(value as i64)
}

/// A world rank is an `int` that is not negative.
#[inline(always)]
fn non_negative(value: i64) -> Option<u32> {
    if value >= 0 && value <= i32::MAX as i64 { Some(value as u32) } else { None }
}
