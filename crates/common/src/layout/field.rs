//! A number somewhere in an object.

use bytemuck::{Pod, Zeroable};

use super::Memory;
use super::memory::{integer, pointer};

/// Where a number stands in an object. Zeroed: nowhere.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Field {
    /// In bytes from the start of the object, or of the one that `via` leads to.
    pub offset: u32,
    /// If not 0: the number is in another object, whose address stands at this offset. (Nothing has a pointer at offset 0 that
    /// would be of use.)
    pub via: u16,
    /// 1, 2, 4 or 8 bytes; 0: there is no such field.
    pub width: u16,
}

impl Field {
    /// In the object itself.
    pub const fn at(offset: u32, width: u16) -> Self {
        Self { offset, via: 0, width }
    }

    /// In the object whose address stands at `via`.
    pub const fn through(via: u16, offset: u32, width: u16) -> Self {
        Self { offset, via, width }
    }

    /// The number, without sign.
    #[inline(always)]
    pub fn read<M: Memory>(&self, object: u64, memory: &M) -> Option<u64> {
        let base = if self.via == 0 { object } else { pointer(memory, object.wrapping_add(self.via as u64))? };
        integer(memory, base.wrapping_add(self.offset as u64), self.width as u32)
    }
}
