//! `opal_pointer_array_t`, by which Open MPI finds objects of a type by number.

use mpiprobe_common::layout::Memory;

use super::{super::TargetMemory, Target};

/// Offsets of the number of places and of the address of the array: the same in 4.1 and 5.0
/// (opal/class/opal_pointer_array.h).
const SIZE: u64 = 88;
pub(super) const ADDRESSES: u64 = 112;

/// Longer arrays are not believed.
const MAX: u32 = 1 << 20;

/// Numbered addresses of objects, some of them null.
pub(in super::super) struct PointerArray<'a> {
    memory: &'a TargetMemory,
    start: u64,
    pub(in super::super) size: u32,
}

impl<'a> PointerArray<'a> {
    pub(super) fn of(target: &Target<'a>, symbol: &'static str) -> Option<Self> {
        Self::at(target.memory, target.address(symbol).ok()?)
    }

    /// The array whose description is at `address`; `None` if there is none yet.
    pub(in super::super) fn at(memory: &'a TargetMemory, address: u64) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "an int is the lower half of the word")]
        let size = memory.word(address.checked_add(SIZE)?)? as u32;
        let start = memory.word(address.checked_add(ADDRESSES)?)?;
        (start != 0 && size <= MAX).then_some(Self { memory, start, size })
    }

    /// The object of that number; `None` if there is none.
    pub(in super::super) fn get(&self, index: u32) -> Option<u64> {
        if index >= self.size {
            return None;
        }
        self.memory.word(self.start.checked_add(u64::from(index) * 8)?).filter(|object| *object != 0)
    }

    pub(in super::super) fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.size).filter_map(|index| self.get(index))
    }
}
