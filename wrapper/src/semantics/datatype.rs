//! Sizes of datatypes: asked once for each, until one is freed.

use mpiprobe_common::layout::{Size, builtin_size};

use super::{Call, communicator::epoch};

/// Sizes that a thread remembers; a power of two.
const REMEMBERED: usize = 16;

/// Of one thread.
#[repr(C)]
pub(crate) struct Sizes([CachedSize; REMEMBERED]);

/// Zeroed: nothing.
#[repr(C)]
#[derive(Clone, Copy)]
struct CachedSize {
    handle: u64,
    size: u64,
    /// Plus one.
    epoch: u64,
}

/// Size of a datatype, bytes.
#[inline]
pub(super) fn size(call: &Call<'_>, datatype: u64) -> Option<u64> {
    let layout = &call.library.layout;
    let handle = layout.handle(datatype);
    if let Size::Known(size) = builtin_size(layout, handle) {
        return Some(size);
    }
    if handle == layout.constants.datatype_null {
        return None;
    }
    let epoch = u64::from(epoch()) + 1;
    // SAFETY: the thread's own.
    let known = unsafe { (*call.local).sizes.0.get_mut((handle >> 4 ^ handle >> 12) as usize & (REMEMBERED - 1)) }?;
    if known.handle == handle && known.epoch == epoch {
        return Some(known.size);
    }
    let size = call.library.size_of(handle)?;
    *known = CachedSize { handle, size, epoch };
    Some(size)
}
