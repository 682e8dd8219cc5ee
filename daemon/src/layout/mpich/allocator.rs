//! `MPIR_Object_alloc_t`: which objects of a type there are, and where.

use mpiprobe_common::layout::{Memory, Objects};

use super::super::TargetMemory;
use super::scan;
use super::{Reason, Target};

pub(super) const COMMUNICATORS: &str = "MPIR_Comm_mem";
pub(super) const DATATYPES: &str = "MPIR_Datatype_mem";
pub(super) const REQUESTS: &str = "MPIR_Request_mem";

/// Types of objects, by their number in handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Communicator = 1,
    Datatype = 3,
    Request = 11,
}

/// What a library says of its objects of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allocator {
    pub(super) kind: Kind,
    /// Where it says so.
    address: u64,
    /// Objects have been made.
    pub(super) initialised: bool,
    stride: u32,
    direct: u64,
    direct_count: u32,
    /// MPICH 5 has one field more.
    is_late: bool,
}

/// In bytes, without what follows the last field of interest.
const SIZE: u64 = 64;
/// Offset of the address of the array of further tables, and of their number.
const INDIRECT: u64 = 16;
const INDIRECT_COUNT: u64 = 24;
/// An object has at least a handle, a count and something else. The largest have some thousand bytes.
const STRIDES: std::ops::RangeInclusive<u32> = 32..=65536;
const MAX_DIRECT: u32 = 1 << 16;
/// HANDLE_NUM_BLOCKS, and the number of objects in each at most.
const MAX_BLOCKS: u32 = 8192;
const MAX_BLOCK: u32 = 4096;

impl Allocator {
    pub(super) fn find(target: &Target<'_>, kind: Kind) -> Result<Self, Reason> {
        let (symbol, what) = match kind {
            Kind::Communicator => (COMMUNICATORS, "communicators"),
            Kind::Datatype => (DATATYPES, "datatypes"),
            Kind::Request => (REQUESTS, "requests"),
        };
        if let Ok(address) = target.address(symbol) {
            let bytes = target.memory.bytes(address..address.saturating_add(SIZE));
            return bytes.and_then(|bytes| Self::parse(target, kind, address, &bytes)).ok_or(Reason::NoTable(what));
        }
        // The description of requests is made at run time, the others by the linker.
        let data = match kind {
            Kind::Request => &target.blueprint.data.writable,
            _ => &target.blueprint.data.initialised,
        };
        scan::find(target, data, SIZE, |address, bytes| Self::parse(target, kind, address, bytes))
            .ok_or(Reason::NoTable(what))
    }

    /// Whether `bytes` at `address` are a description of objects of type `kind`.
    fn parse(target: &Target<'_>, kind: Kind, address: u64, bytes: &[u8]) -> Option<Self> {
        let half = |at: usize| bytes.get(at..)?.first_chunk().map(|half| u32::from_le_bytes(*half));
        let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word));
        let (early, late) = ((half(36)?, half(40)?), (half(40)?, half(44)?));
        let is = |(number, stride): (u32, u32)| number == kind as u32 && STRIDES.contains(&stride) && stride % 8 == 0;
        let is_late = !is(early);
        let (_, stride) = Some(if is_late { late } else { early }).filter(|pair| is(*pair))?;
        let (direct, direct_count, initialised) = (word(48)?, half(56)?, half(8)? != 0);
        let end = direct.checked_add(u64::from(stride) * u64::from(direct_count))?;
        let of_file = direct.wrapping_sub(target.bias)..end.wrapping_sub(target.bias);
        let is_table = (1..=MAX_DIRECT).contains(&direct_count)
            && target.blueprint.data.writable.iter().any(|data| data.start <= of_file.start && of_file.end <= data.end);
        let found = Self { kind, address, initialised, stride, direct, direct_count, is_late };
        (is_table && half(8)? <= 1 && found.is_numbered(target.memory)).then_some(found)
    }

    /// Objects say which they are, once they have been made.
    fn is_numbered(&self, memory: &TargetMemory) -> bool {
        (0..self.direct_count.min(2)).all(|index| {
            let own = memory.word(self.direct.wrapping_add(u64::from(index) * u64::from(self.stride)));
            let expected = 2 << 30 | (self.kind as u64) << 26 | u64::from(index);
            own.is_some_and(|own| if self.initialised { own & 0xffff_ffff == expected } else { own == 0 })
        })
    }

    /// Without the predefined objects, which are described nowhere.
    pub(super) fn objects(&self) -> Objects {
        // Requests have several such tables, and bits in their handles to say which: only the first is described here.
        let (block_mask, foreign_mask) = match (self.kind, self.is_late) {
            (Kind::Request, false) => (0xff, 0x03f0_0000),
            (Kind::Request, true) => (0x1fff, 0x0200_0000),
            _ => (0x3fff, 0),
        };
        Objects {
            kind: self.kind as u32,
            stride: self.stride,
            direct: self.direct,
            direct_count: self.direct_count,
            indirect: self.address.wrapping_add(INDIRECT),
            block_mask,
            foreign_mask,
            ..Objects::default()
        }
    }
}

/// Addresses of all objects in the tables that are in use, without predefined ones.
pub(super) fn live_objects(objects: &Objects, memory: &TargetMemory) -> Vec<u64> {
    let stride = u64::from(objects.stride);
    let at = |table: u64, index: u32| table.wrapping_add(u64::from(index) * stride);
    let mut found: Vec<u64> = (0..objects.direct_count.min(MAX_DIRECT))
        .map(|index| (at(objects.direct, index), 2 << 30 | objects.kind << 26 | index))
        .filter(|(object, handle)| is_live(*object, *handle, memory))
        .map(|(object, _)| object)
        .collect();
    let count = memory.word(objects.indirect.wrapping_add(INDIRECT_COUNT - INDIRECT)).unwrap_or(0) & 0xffff_ffff;
    let Some(table) = memory.word(objects.indirect).filter(|table| *table != 0) else { return found };
    for block in 0..u32::try_from(count).unwrap_or(0).min(MAX_BLOCKS) {
        let Some(start) = memory.word(table.wrapping_add(u64::from(block) * 8)) else { break };
        // How many there are in a block is not written down everywhere: they are numbered without a gap.
        for index in 0..MAX_BLOCK {
            let (object, handle) = (at(start, index), 3 << 30 | objects.kind << 26 | block << 12 | index);
            if memory.word(object).is_none_or(|header| header & 0xffff_ffff != u64::from(handle)) {
                break;
            }
            if is_live(object, handle, memory) {
                found.push(object);
            }
        }
    }
    found
}

/// The object has the handle, and somebody refers to it.
fn is_live(object: u64, handle: u32, memory: &TargetMemory) -> bool {
    memory.word(object).is_some_and(|header| header & 0xffff_ffff == u64::from(handle) && header >> 32 != 0)
}
