//! What is known of the layout of a library before a process is looked at: from its file, or from another process that has mapped
//! the same file. All but where the library lies, which a program in the kernel learns with the first call.
//!
//! What a template gives is checked on the process's predefined communicators before it is believed.

use bytemuck::{Pod, Zeroable};

use super::memory::{integer, is_address, pointer};
use super::{Layout, Memory, Objects, member_kind};

/// Words of a [`Layout`].
pub const LAYOUT_WORDS: usize = size_of::<Layout>() / 8;

const _: () = assert!(size_of::<Layout>().is_multiple_of(8));

/// How a word of a process's layout follows from the template's: values of [`Template::rules`].
pub mod rule {
    /// It is the same.
    pub const GIVEN: u32 = 0;
    /// It is an address: the template has that in the file.
    pub const ADDRESS: u32 = 1;
    /// It is what stands in the variable at that address.
    pub const VARIABLE: u32 = 2;
    /// It is an element of the table whose address stands there; the number of the element is in the upper sixteen bits.
    pub const ELEMENT: u32 = 3;
    /// It stays what it is.
    pub const KEPT: u32 = 4;
}

/// The bits of a word under [`rule::ELEMENT`] that are the address.
pub const ELEMENT_SHIFT: u32 = 48;

/// Where objects of a library that numbers them (MPICH and its descendants) may be found.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Search {
    /// Addresses in the file of data that functions which look objects up refer to: what is sought, or a variable that leads there.
    pub places: [u64; SEARCHED],
    pub count: u32,
    /// From one communicator to the next, bytes; 0: nothing is to be searched.
    pub stride: u32,
    /// Handle of the first predefined communicator, which its object begins with.
    pub first: u32,
    /// In the description of objects: offset of the number of their type, of the bytes from one to the next, of the address of their
    /// table and of how many are in it.
    pub kind: u32,
    pub stride_at: u32,
    pub direct: u32,
    pub direct_count: u32,
    /// Offset of the address of further tables.
    pub indirect: u32,
    /// Which requests are complete from the start: one of [`complete`].
    pub complete: u32,
    /// In handles of requests: the bits for the number of a further table, and those which say that another description is theirs.
    pub request_block_mask: u32,
    pub request_foreign_mask: u32,
    /// Padding, zero.
    pub reserved: u32,
}

/// Which requests are complete from the start, where handles are addresses: values of [`Search::complete`].
pub mod complete {
    /// It is not to be found out.
    pub const GIVEN: u32 = 0;
    /// Those of a table, one for each kind of operation.
    pub const PREDEFINED: u32 = 1;
    /// Those that the library makes before all others, and keeps.
    pub const FIRST: u32 = 2;
}

/// How many places are looked at, at most.
pub const SEARCHED: usize = 24;

/// The layout of a library, without knowing where it is mapped.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Template {
    /// [`Layout::known`] is what is known once the predefined communicators are there.
    pub layout: Layout,
    /// A [`rule`] for each word of it.
    pub rules: [u32; LAYOUT_WORDS.next_multiple_of(2)],
    /// Address of the file's code, less its offset in the file.
    pub code: u64,
    /// What of it is known before, ORed capabilities.
    pub early: u32,
    /// Padding, zero.
    pub reserved: u32,
    pub search: Search,
}

/// The word of a process's layout that `value`, a template's, stands for; `None` if it is not there yet. `bias` is what has to be added
/// to addresses of the file.
#[inline(always)]
pub fn resolve<M: Memory>(rule: u32, value: u64, bias: u64, memory: &M) -> Option<u64> {
    match rule {
        rule::ADDRESS => Some(value.wrapping_add(bias)),
        rule::VARIABLE => pointer(memory, value.wrapping_add(bias)),
        rule::ELEMENT => {
            let table = pointer(memory, (value & ((1 << ELEMENT_SHIFT) - 1)).wrapping_add(bias))?;
            pointer(memory, table.wrapping_add((value >> ELEMENT_SHIFT) * 8))
        }
        _ => Some(value),
    }
}

/// Types of objects by their number in handles.
const COMMUNICATOR: u64 = 1;
const DATATYPE: u64 = 3;
const REQUEST: u64 = 11;
/// Bytes from one object to the next, as far as that is believed: datatypes and requests have some hundred.
const LEAST_STRIDE: u64 = 64;
const MOST_STRIDE: u64 = 1 << 14;
/// Handle of the first datatype of a value and an index, and how many there are.
const FIRST_PAIR: u32 = 0x8c00_0000;
const PAIRS: u32 = 5;
/// Handle of the first request that is complete from the start, and how many there are where they have a table, at least and at most: one for
/// each kind of operation, of which later releases have more.
const FIRST_COMPLETE: u32 = 0x6c00_0000;
const COMPLETE: u32 = 9;
const MOST_COMPLETE: u32 = 16;
/// The same of a library that makes them itself (Intel MPI).
const MADE: u32 = 4;

/// What was found at a place: values of [`look`], ORed.
pub mod found {
    pub const NOTHING: u32 = 0;
    /// The predefined communicators.
    pub const PREDEFINED: u32 = 1 << 0;
    /// The description of communicators.
    pub const COMMUNICATORS: u32 = 1 << 1;
    /// That of datatypes.
    pub const DATATYPES: u32 = 1 << 2;
    /// The same, which does not say where the predefined ones are.
    pub const DATATYPES_APART: u32 = 1 << 3;
    /// The datatypes of a value and an index, the first of those that are in a table.
    pub const PAIRS: u32 = 1 << 4;
    /// The description of requests.
    pub const REQUESTS: u32 = 1 << 5;
    /// The requests that are complete from the start.
    pub const COMPLETE: u32 = 1 << 6;
}

/// Looks at one of the places of [`Search`], an address in the process, and completes `layout` by what is there.
#[inline(always)]
pub fn look<M: Memory>(search: &Search, place: u64, layout: &mut Layout, memory: &M) -> u32 {
    if is_first(search, place, memory) {
        layout.communicators.objects.builtin = place;
        layout.communicators.world = place;
        layout.communicators.own = place.wrapping_add(search.stride as u64);
        return found::PREDEFINED;
    }
    let header = memory.word(place).unwrap_or(0);
    if header as u32 == FIRST_PAIR && header >> 32 != 0 {
        // Where their description knows better, it says so.
        if layout.datatypes.objects.direct == 0 {
            layout.datatypes.objects.direct = place;
            layout.datatypes.objects.direct_count = PAIRS;
        }
        return found::PAIRS;
    }
    if header as u32 == FIRST_COMPLETE && search.complete == complete::PREDEFINED {
        layout.constants.request_complete_first = place;
        return found::COMPLETE;
    }
    look_at_description(search, place, layout, memory)
}

#[inline(always)]
fn look_at_description<M: Memory>(search: &Search, place: u64, layout: &mut Layout, memory: &M) -> u32 {
    let at = |offset: u32, width: u32| integer(memory, place.wrapping_add(offset as u64), width).unwrap_or(0);
    let (kind, stride, count) = (at(search.kind, 4), at(search.stride_at, 4), at(search.direct_count, 4) as u32);
    let is_known = kind == COMMUNICATOR || kind == DATATYPE || kind == REQUEST;
    // Described as empty, or as in use.
    if !is_known || at(8, 4) > 1 || !(LEAST_STRIDE..=MOST_STRIDE).contains(&stride) || stride & 7 != 0 {
        return found::NOTHING;
    }
    let direct = at(search.direct, 8);
    let is_apart = kind == DATATYPE && direct == 0 && count == 0;
    // An object says itself which it is.
    let is_numbered = direct != 0 && integer(memory, direct, 4) == Some(2 << 30 | kind << 26);
    if !is_apart && !is_numbered || kind == COMMUNICATOR && stride != search.stride as u64 {
        return found::NOTHING;
    }
    let is_request = kind == REQUEST;
    let objects = if kind == COMMUNICATOR {
        &mut layout.communicators.objects
    } else if is_request {
        &mut layout.requests.objects
    } else {
        &mut layout.datatypes.objects
    };
    objects.kind = kind as u32;
    objects.stride = stride as u32;
    objects.indirect = place.wrapping_add(search.indirect as u64);
    objects.block_mask = if is_request { search.request_block_mask } else { BLOCK_MASK };
    objects.foreign_mask = if is_request { search.request_foreign_mask } else { 0 };
    if is_apart {
        return found::DATATYPES_APART;
    }
    objects.direct = direct;
    objects.direct_count = count;
    match kind {
        COMMUNICATOR => found::COMMUNICATORS,
        REQUEST => found::REQUESTS,
        _ => found::DATATYPES,
    }
}

/// Where a variable leads that is at one of the places; `None`: nowhere.
#[inline(always)]
pub fn led_to<M: Memory>(place: u64, memory: &M) -> Option<u64> {
    memory.word(place).filter(|&address| is_address(address))
}

/// What was [`found`] at all places together; `None`: it is not enough to understand a process by.
#[inline(always)]
pub fn judge<M: Memory>(search: &Search, seen: u32, layout: &mut Layout, memory: &M) -> Option<u32> {
    const APART: u32 = found::DATATYPES_APART | found::PAIRS;
    if seen & found::PREDEFINED == 0 {
        return None;
    }
    if search.complete != complete::GIVEN {
        set_complete(search, seen, layout, memory)?;
    }
    Some(if seen & APART == APART { seen | found::DATATYPES } else { seen })
}

/// The requests that are complete from the start, whose handles are addresses.
#[inline(always)]
fn set_complete<M: Memory>(search: &Search, seen: u32, layout: &mut Layout, memory: &M) -> Option<()> {
    if seen & found::REQUESTS == 0 {
        return None;
    }
    if search.complete == complete::FIRST {
        let Objects { direct: first, stride, .. } = layout.requests.objects;
        let last = first.wrapping_add((MADE - 1) as u64 * stride as u64);
        let header = memory.word(last)?;
        // Somebody refers to it.
        if header as u32 != (2 << 30 | (REQUEST as u32) << 26) + MADE - 1 || header >> 32 == 0 {
            return None;
        }
        (layout.constants.request_complete_first, layout.constants.request_complete_last) = (first, last);
        return Some(());
    }
    let (first, stride) = (layout.constants.request_complete_first, layout.requests.objects.stride as u64);
    let place = |index: u32| first.wrapping_add(index as u64 * stride);
    let is = |index: u32| integer(memory, place(index), 4) == Some((FIRST_COMPLETE + index) as u64);
    if seen & found::COMPLETE == 0 || !is(1) || !is(COMPLETE - 1) {
        return None;
    }
    let mut count = COMPLETE;
    while count < MOST_COMPLETE && is(count) {
        count += 1;
    }
    layout.constants.request_complete_last = place(count - 1);
    Some(())
}

/// Of communicators and datatypes in handles.
const BLOCK_MASK: u32 = 0x3fff;

/// Whether the predefined communicators are at an address: each begins with its handle, and somebody refers to it.
#[inline(always)]
fn is_first<M: Memory>(search: &Search, place: u64, memory: &M) -> bool {
    let is = |address: u64, handle: u32| {
        memory.word(address).is_some_and(|header| header as u32 == handle && header >> 32 != 0)
    };
    is(place, search.first) && is(place.wrapping_add(search.stride as u64), search.first + 1)
}

/// Sets the number of the process's own job, where members are told by that.
#[inline(always)]
pub fn find_own_job<M: Memory>(layout: &mut Layout, memory: &M) -> Option<()> {
    let members = &layout.members;
    if members.kind != member_kind::PROCESSES {
        return Some(());
    }
    let group = pointer(memory, layout.communicators.own.wrapping_add(members.local as u64))?;
    let array = pointer(memory, group.wrapping_add(members.list as u64))?;
    let process = pointer(memory, array)?;
    layout.members.own_job = integer(memory, process.wrapping_add(members.job as u64), 4)? as u32;
    Some(())
}

/// Whether a library may have a process at this place in `MPI_COMM_WORLD`, whose launcher has told one; a size of 0: it has told none.
/// A process that another MPI's launcher has started is alone in its world.
#[inline(always)]
pub const fn may_be_place(rank: u32, size: u32, told_rank: u32, told_size: u32) -> bool {
    told_size == 0 || (rank == told_rank && size == told_size) || (rank == 0 && size == 1)
}

/// Whether the predefined communicators are what they must be: rank and size of both, by what `layout` says of them.
#[inline(always)]
pub fn holds<M: Memory>(layout: &Layout, memory: &M) -> Option<bool> {
    let fields = &layout.communicators;
    let (world, own) = (fields.world, fields.own);
    let (rank, size) = (fields.rank.read(world, memory)?, fields.size.read(world, memory)?);
    let (own_rank, own_size) = (fields.rank.read(own, memory)?, fields.size.read(own, memory)?);
    let inter = fields.inter.read(world, memory)? | fields.inter.read(own, memory)?;
    let contexts_differ = fields.context.read(world, memory)? != fields.context.read(own, memory)?;
    let is_told = may_be_place(rank as u32, size as u32, layout.told_rank, layout.told_size);
    Some(
        rank < size
            && i32::try_from(size).is_ok()
            && own_rank == 0
            && own_size == 1
            && inter & fields.inter_mask as u64 == 0
            && contexts_differ
            && is_told,
    )
}
