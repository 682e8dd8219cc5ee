//! The one thing a reader needs from outside, and numbers in it.

use bytemuck::{Pod, Zeroable};

/// The memory of the process that a [`Layout`](super::Layout) belongs to.
pub trait Memory {
    /// The 8 bytes at `address`, little-endian; `None` if they cannot be read. The address is a multiple of 8 unless a
    /// program has put its own variables elsewhere.
    fn word(&self, address: u64) -> Option<u64>;

    /// An integer of `width` bytes (1, 2, 4 or 8), without sign; `None` for other widths.
    ///
    /// Narrow ones are cut out of the aligned word around them, which is in the same page: reading 8 bytes from where 4 are wanted
    /// could reach into a page that is not there.
    #[inline(always)]
    fn integer(&self, address: u64, width: u32) -> Option<u64> {
        if width == 8 {
            return self.word(address);
        }
        let mask = match width {
            1 => 0xff,
            2 => 0xffff,
            4 => 0xffff_ffff,
            _ => return None,
        };
        let into = address & 7;
        // What straddles two words is nothing that a compiler has laid out.
        if into + width as u64 > 8 {
            return None;
        }
        let word = self.word(address & !7)?;
        Some(word >> (into * 8) & mask)
    }
}

impl<M: Memory + ?Sized> Memory for &M {
    #[inline(always)]
    fn word(&self, address: u64) -> Option<u64> {
        (**self).word(address)
    }

    #[inline(always)]
    fn integer(&self, address: u64, width: u32) -> Option<u64> {
        (**self).integer(address, width)
    }
}

/// An integer of `width` bytes (1, 2, 4 or 8), without sign; `None` for other widths.
#[inline(always)]
pub(super) fn integer<M: Memory>(memory: &M, address: u64, width: u32) -> Option<u64> {
    memory.integer(address, width)
}

/// A signed `int`.
#[inline(always)]
pub(super) fn int<M: Memory>(memory: &M, address: u64) -> Option<i32> {
    integer(memory, address, 4).map(|value| value as i32)
}

/// A pointer that may be followed: neither null nor a small number, within the user half of the address space.
#[inline(always)]
pub(super) fn pointer<M: Memory>(memory: &M, address: u64) -> Option<u64> {
    match memory.word(address) {
        Some(value) if is_address(value) => Some(value),
        _ => None,
    }
}

/// Whether a value may be an address of a process on Linux: above the first page, below 2^47 or 2^56 (five-level paging).
#[inline(always)]
pub(super) fn is_address(value: u64) -> bool {
    (4096..1 << 56).contains(&value)
}

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
