//! Sizes of datatypes.

use bytemuck::{Pod, Zeroable};

use super::objects::object;
use super::{ABI_HANDLES, Field, Layout, Memory, Objects, abi_datatype_size, capability, handle_kind};

/// How the size of a datatype is found: from its handle where that is possible, else from its object.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct DatatypeLayout {
    pub objects: Objects,
    /// Bytes of data in one element, as MPI_Type_size gives it.
    pub size: Field,
    /// Where the object keeps its name, an array of characters; 0: unknown.
    pub name: u32,
    /// How many characters that array has.
    pub name_length: u32,
}

/// The size of a datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Bytes of data, as MPI_Type_size gives it.
    Known(u64),
    Unknown,
}

/// Bytes of data in one element of the datatype `handle`.
#[inline(always)]
pub fn datatype_size<M: Memory>(layout: &Layout, handle: u64, memory: &M) -> Size {
    if let Size::Known(size) = builtin_size(layout, handle) {
        return Size::Known(size);
    }
    let Some(object) = datatype_object(layout, handle, memory) else { return Size::Unknown };
    match layout.datatypes.size.read(object, memory) {
        // The library's own type is signed: a negative size is no datatype's.
        Some(size) if size >> 63 == 0 => Size::Known(size),
        _ => Size::Unknown,
    }
}

/// Of a predefined datatype whose size follows from its handle: no memory is read.
#[inline(always)]
pub fn builtin_size(layout: &Layout, handle: u64) -> Size {
    if !layout.knows(capability::BUILTIN_SIZES) {
        return Size::Unknown;
    }
    match layout.handles {
        // MPICH: bits 31–26 say "builtin datatype", bits 15–8 are its size.
        handle_kind::INTEGER if handle as u32 >> 26 == 0x13 => Size::Known(handle >> 8 & 0xff),
        handle_kind::STANDARD_ABI if handle < ABI_HANDLES => match abi_datatype_size(handle) {
            Some(size) => Size::Known(size),
            None => Size::Unknown,
        },
        _ => Size::Unknown,
    }
}

/// Whether a datatype is known to be predefined: then its handle never means another one.
#[inline(always)]
pub fn is_predefined(layout: &Layout, handle: u64) -> bool {
    let [own, program] = &layout.predefined;
    own.contains(handle) || program.contains(handle) || matches!(builtin_size(layout, handle), Size::Known(_))
}

/// The address of the object of a datatype.
#[inline(always)]
pub fn datatype_object<M: Memory>(layout: &Layout, handle: u64, memory: &M) -> Option<u64> {
    if !layout.knows(capability::DATATYPES) || layout.handle(handle) == layout.constants.datatype_null {
        return None;
    }
    object(layout, &layout.datatypes.objects, handle, memory)
}
