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

/// Where objects of a library with integer handles may be found.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Search {
    /// Addresses in the file of data that functions which look objects up refer to.
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
/// Bytes from one datatype to the next, as far as that is believed.
const MOST_STRIDE: u64 = 1 << 14;

/// What was found at a place: values of [`look`].
pub mod found {
    pub const NOTHING: u32 = 0;
    /// The predefined communicators.
    pub const PREDEFINED: u32 = 1 << 0;
    /// The description of communicators.
    pub const COMMUNICATORS: u32 = 1 << 1;
    /// That of datatypes.
    pub const DATATYPES: u32 = 1 << 2;
}

/// Looks at one of the places of [`Search`], an address in the process, and completes `layout` by what is there.
#[inline(always)]
pub fn look<M: Memory>(search: &Search, place: u64, layout: &mut Layout, memory: &M) -> u32 {
    if is_first(search, place, memory) {
        set_predefined(search, place, layout);
        return found::PREDEFINED;
    }
    let at = |offset: u32, width: u32| integer(memory, place.wrapping_add(offset as u64), width).unwrap_or(0);
    let (kind, stride) = (at(search.kind, 4), at(search.stride_at, 4));
    // Described as empty, or as in use.
    if kind != COMMUNICATOR && kind != DATATYPE || at(8, 4) > 1 || stride == 0 || stride > MOST_STRIDE {
        // A variable that leads to the predefined ones.
        return match memory.word(place) {
            Some(start) if is_address(start) && is_first(search, start, memory) => {
                set_predefined(search, start, layout);
                found::PREDEFINED
            }
            _ => found::NOTHING,
        };
    }
    let direct = at(search.direct, 8);
    // An object says itself which it is.
    let first = 2 << 30 | kind << 26;
    if direct == 0 || integer(memory, direct, 4) != Some(first) {
        return found::NOTHING;
    }
    let is_communicator = kind == COMMUNICATOR;
    if is_communicator && stride != search.stride as u64 {
        return found::NOTHING;
    }
    let objects = if is_communicator { &mut layout.communicators.objects } else { &mut layout.datatypes.objects };
    *objects = Objects {
        kind: kind as u32,
        stride: stride as u32,
        direct,
        direct_count: at(search.direct_count, 4) as u32,
        indirect: place.wrapping_add(search.indirect as u64),
        block_mask: BLOCK_MASK,
        foreign_mask: 0,
        builtin: objects.builtin,
        builtin_count: objects.builtin_count,
    };
    if is_communicator { found::COMMUNICATORS } else { found::DATATYPES }
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

#[inline(always)]
fn set_predefined(search: &Search, start: u64, layout: &mut Layout) {
    layout.communicators.objects.builtin = start;
    layout.communicators.world = start;
    layout.communicators.own = start.wrapping_add(search.stride as u64);
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

/// Whether the predefined communicators are what they must be: rank and size of both, by what `layout` says of them.
#[inline(always)]
pub fn holds<M: Memory>(layout: &Layout, memory: &M) -> Option<bool> {
    let fields = &layout.communicators;
    let (world, own) = (fields.world, fields.own);
    let (rank, size) = (fields.rank.read(world, memory)?, fields.size.read(world, memory)?);
    let (own_rank, own_size) = (fields.rank.read(own, memory)?, fields.size.read(own, memory)?);
    let inter = fields.inter.read(world, memory)? | fields.inter.read(own, memory)?;
    let contexts_differ = fields.context.read(world, memory)? != fields.context.read(own, memory)?;
    let is_told = layout.told_size == 0 || (rank == layout.told_rank as u64 && size == layout.told_size as u64);
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
