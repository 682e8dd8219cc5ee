//! `MPIR_Object_alloc_t`: which objects of a type there are, and where.

use mpiprobe_common::layout::{Memory, Objects};

use super::{
    super::TargetMemory,
    Reason, Target,
    predefined::{PAIRS, TableLocation},
    scan,
};

pub(super) const COMMUNICATORS: &str = "MPIR_Comm_mem";
pub(super) const DATATYPES: &str = "MPIR_Datatype_mem";
pub(super) const WINDOWS: &str = "MPIR_Win_mem";
pub(super) const REQUESTS: &str = "MPIR_Request_mem";

/// Types of objects, by their number in handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Communicator = 1,
    Datatype = 3,
    Window = 8,
    Request = 11,
}

/// What a library says of its objects of one type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allocator {
    pub(super) kind: ObjectKind,
    /// Where it says so.
    address: u64,
    pub(super) stride: u32,
    /// The fixed table; 0: predefined objects apart, there are only further tables.
    direct: u64,
    direct_count: u32,
    form: &'static Form,
}

/// Where in the description what stands. The list of free objects at 0, whether there are any at 8, the address of the array of
/// further tables at 16 and their number at 24 are the same in all.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) kind: usize,
    pub(super) stride: usize,
    pub(super) direct: usize,
    pub(super) direct_count: usize,
    /// In handles of requests: the number of a further table, and bits that say that it is one of another description.
    pub(super) request_block_mask: u32,
    pub(super) request_foreign_mask: u32,
}

static FORMS: [Form; 3] = [
    // MPICH 4
    Form {
        kind: 36,
        stride: 40,
        direct: 48,
        direct_count: 56,
        request_block_mask: 0xff,
        request_foreign_mask: 0x03f0_0000,
    },
    // MPICH 5
    Form {
        kind: 40,
        stride: 44,
        direct: 48,
        direct_count: 56,
        request_block_mask: 0x1fff,
        request_foreign_mask: 0x0200_0000,
    },
    // Intel MPI 2021
    Form {
        kind: 28,
        stride: 32,
        direct: 40,
        direct_count: 48,
        request_block_mask: 0xff,
        request_foreign_mask: 0x03f0_0000,
    },
];

impl Form {
    /// That of a release.
    pub(super) fn of(is_intel: bool, major: u32) -> &'static Self {
        let [four, five, intel] = &FORMS;
        if is_intel {
            intel
        } else if major >= 5 {
            five
        } else {
            four
        }
    }
}

/// In bytes, without what follows the last field of interest.
const SIZE: u64 = 64;
/// Offset of the address of the array of further tables, and of their number.
pub(super) const INDIRECT: u64 = 16;
const INDIRECT_COUNT: u64 = 24;
const MAX_DIRECT: u32 = 1 << 16;
/// HANDLE_NUM_BLOCKS, and the number of objects in each at most.
const MAX_BLOCKS: u32 = 8192;
const MAX_BLOCK: u32 = 4096;

impl Allocator {
    /// The description of objects that are `stride` bytes apart; if that is not known, of those that have a fixed table.
    pub(super) fn find(target: &Target<'_>, kind: ObjectKind, stride: Option<u32>) -> Result<Self, Reason> {
        let (symbol, what) = match kind {
            ObjectKind::Communicator => (COMMUNICATORS, "communicators"),
            ObjectKind::Datatype => (DATATYPES, "datatypes"),
            ObjectKind::Window => (WINDOWS, "windows"),
            ObjectKind::Request => (REQUESTS, "requests"),
        };
        if let Ok(address) = target.address(symbol) {
            let bytes = target.memory.bytes(address..address.saturating_add(SIZE));
            return bytes
                .and_then(|bytes| Self::parse(target, kind, stride, address, &bytes))
                .ok_or(Reason::NoTable(what));
        }
        // The description of requests is made at run time, the others by the linker.
        let data = match kind {
            ObjectKind::Request => &target.blueprint.data.writable,
            _ => &target.blueprint.data.initialised,
        };
        scan::find(target, data, SIZE, |address, bytes| Self::parse(target, kind, stride, address, bytes))
            .ok_or(Reason::NoTable(what))
    }

    /// Whether `bytes` at `address` are a description of objects of type `kind`.
    fn parse(target: &Target<'_>, kind: ObjectKind, stride: Option<u32>, address: u64, bytes: &[u8]) -> Option<Self> {
        let found = FORMS.iter().filter_map(|form| Self::of_form(target, kind, address, bytes, form));
        found.into_iter().find(|found| stride.map_or(found.direct_count > 0, |stride| found.stride == stride))
    }

    fn of_form(target: &Target<'_>, kind: ObjectKind, address: u64, bytes: &[u8], form: &'static Form) -> Option<Self> {
        let half = |at: usize| bytes.get(at..)?.first_chunk().map(|half| u32::from_le_bytes(*half));
        let word = |at: usize| bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word));
        let stride = half(form.stride)?;
        if half(form.kind)? != kind as u32 || half(8)? > 1 {
            return None;
        }
        let initialised = half(8)? == 1;
        let (direct, direct_count) = (word(form.direct)?, half(form.direct_count)?);
        let found = Self { kind, address, stride, direct, direct_count, form };
        // Nothing has been made: nothing is free, no further tables are there.
        let is_empty =
            word(0)? == 0 && word(INDIRECT.try_into().ok()?)? == 0 && half(INDIRECT_COUNT.try_into().ok()?)? == 0;
        let has_no_table = direct == 0 && direct_count == 0;
        let is_plausible = (initialised || is_empty)
            && (has_no_table || found.is_in_data(target) && found.is_numbered(target.memory, initialised));
        is_plausible.then_some(found)
    }

    /// The fixed table is a variable of the library.
    fn is_in_data(&self, target: &Target<'_>) -> bool {
        let length = u64::from(self.stride) * u64::from(self.direct_count);
        let start = self.direct.wrapping_sub(target.bias);
        let Some(end) = start.checked_add(length) else { return false };
        let writable = &target.blueprint.data.writable;
        (1..=MAX_DIRECT).contains(&self.direct_count)
            && writable.iter().any(|data| data.start <= start && end <= data.end)
    }

    /// Objects say which they are, once they have been made.
    fn is_numbered(&self, memory: &TargetMemory, initialised: bool) -> bool {
        (0..self.direct_count.min(2)).all(|index| {
            let own = memory.word(self.direct.wrapping_add(u64::from(index) * u64::from(self.stride)));
            let expected = 2 << 30 | (self.kind as u64) << 26 | u64::from(index);
            own.is_some_and(|own| own & 0xffff_ffff == expected || !initialised && own == 0)
        })
    }

    /// The fixed table of datatypes begins with predefined ones, and may have no others: then it is not described.
    pub(super) fn with_pairs(self, pairs: TableLocation) -> Self {
        let direct_count = if self.direct == pairs.start { self.direct_count } else { PAIRS.count };
        Self { direct: pairs.start, direct_count, ..self }
    }

    /// Without the predefined objects, which are described nowhere.
    pub(super) fn objects(&self) -> Objects {
        // Requests have several such descriptions, and bits in their handles to say which: this is the first.
        let (block_mask, foreign_mask) = match self.kind {
            ObjectKind::Request => (self.form.request_block_mask, self.form.request_foreign_mask),
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
