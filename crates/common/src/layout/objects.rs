//! From a handle to the object it stands for.

use bytemuck::{Pod, Zeroable};

use super::memory::{integer, is_address, pointer};
use super::{Layout, Memory};

/// What handles are.
pub mod handle_kind {
    pub const UNKNOWN: u32 = 0;
    /// Addresses of objects.
    pub const POINTER: u32 = 1;
    /// MPICH's 32-bit numbers: bits 31–30 say where the object is (1 builtin, 2 direct, 3 indirect), bits 29–26 of what
    /// type it is, the rest is its index.
    pub const INTEGER: u32 = 2;
    /// The MPI 5.0 ABI: numbers below [`ABI_HANDLES`](super::super::ABI_HANDLES) for what is predefined, else addresses.
    pub const STANDARD_ABI: u32 = 3;
}

/// Where a library of integer handles keeps its objects of one type. Means nothing for other libraries.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Objects {
    /// Bits 29–26 of a handle.
    pub kind: u32,
    /// From one object to the next, in bytes.
    pub stride: u32,
    /// Address of the first predefined object, and how many there are.
    pub builtin: u64,
    pub builtin_count: u32,
    pub direct_count: u32,
    /// Address of the first object of the fixed table.
    pub direct: u64,
    /// Address of the variable that holds the address of an array of addresses of further tables, which are made as needed.
    pub indirect: u64,
    /// The number of a further table in a handle, shifted down by 12.
    pub block_mask: u32,
    /// A handle with one of these bits leads into tables that are not described here.
    pub foreign_mask: u32,
}

impl Objects {
    /// No tables: handles are addresses, or nothing is known.
    pub const NONE: Self = Self {
        kind: 0,
        stride: 0,
        builtin: 0,
        builtin_count: 0,
        direct_count: 0,
        direct: 0,
        indirect: 0,
        block_mask: 0,
        foreign_mask: 0,
    };
}

const BUILTIN: u32 = 1;
const DIRECT: u32 = 2;
const INDIRECT: u32 = 3;

/// The address of the object that `handle` (a register's or variable's content) stands for.
#[inline(always)]
pub fn object<M: Memory>(layout: &Layout, objects: &Objects, handle: u64, memory: &M) -> Option<u64> {
    if layout.handles != handle_kind::INTEGER {
        return if layout.handles != handle_kind::UNKNOWN && is_address(handle) { Some(handle) } else { None };
    }
    let handle = handle as u32;
    if handle >> 26 & 0xf != objects.kind {
        return None;
    }
    let stride = objects.stride as u64;
    let index = handle & 0x03ff_ffff;
    match handle >> 30 {
        BUILTIN if objects.builtin != 0 && index < objects.builtin_count => {
            Some(objects.builtin.wrapping_add(index as u64 * stride))
        }
        DIRECT if objects.direct != 0 && index < objects.direct_count => {
            Some(objects.direct.wrapping_add(index as u64 * stride))
        }
        INDIRECT if objects.indirect != 0 && handle & objects.foreign_mask == 0 => {
            let table = pointer(memory, objects.indirect)?;
            let block = (handle >> 12 & objects.block_mask) as u64;
            let block = pointer(memory, table.wrapping_add(block * 8))?;
            let object = block.wrapping_add((handle & 0xfff) as u64 * stride);
            // How many there are is not known: an object says itself which one it is.
            let own = integer(memory, object, 4)?;
            if own == handle as u64 { Some(object) } else { None }
        }
        _ => None,
    }
}
