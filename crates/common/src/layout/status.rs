//! What a status says, and that of a completed request. Statuses are variables of the program: their layout is part of the library's
//! binary interface.

use bytemuck::{Pod, Zeroable};

use super::memory::{int, integer};
use super::objects::object;
use super::{Layout, Memory, Objects, capability};
use crate::peer;

/// Where the facts stand in an `MPI_Status`, in bytes from its start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct StatusLayout {
    /// From one status of an array to the next.
    pub size: u32,
    /// All three are of type `int`.
    pub source: u32,
    pub tag: u32,
    pub error: u32,
    /// The number of bytes received.
    pub bytes: u32,
    /// How that is written: [`byte_count`].
    pub byte_count: u32,
    /// Where it stands whether the operation was cancelled, an `int`; used with [`byte_count::WORD`].
    pub cancelled: u32,
    /// Padding, zero.
    pub reserved: u32,
}

/// Ways of writing the number of bytes.
pub mod byte_count {
    /// 64 bits.
    pub const WORD: u32 = 0;
    /// The lower 32 bits, then 32 bits of which the lowest says whether the operation was cancelled and the others are the
    /// upper part.
    pub const SPLIT: u32 = 1;
}

/// Bytes received, according to the status at `address`.
#[inline(always)]
pub fn status_bytes<M: Memory>(layout: &Layout, address: u64, memory: &M) -> Option<u64> {
    if !layout.knows(capability::CONSTANTS) {
        return None;
    }
    let place = address.wrapping_add(layout.status.bytes as u64);
    if layout.status.byte_count == byte_count::WORD {
        return memory.word(place);
    }
    let low = integer(memory, place, 4)?;
    let high = integer(memory, place.wrapping_add(4), 4)?;
    Some(low | high >> 1 << 32)
}

/// Whether the operation was cancelled, according to the status at `address`.
#[inline(always)]
pub fn status_cancelled<M: Memory>(layout: &Layout, address: u64, memory: &M) -> Option<bool> {
    if !layout.knows(capability::CONSTANTS) {
        return None;
    }
    if layout.status.byte_count == byte_count::WORD {
        return Some(int(memory, address.wrapping_add(layout.status.cancelled as u64))? != 0);
    }
    Some(integer(memory, address.wrapping_add(layout.status.bytes as u64 + 4), 4)? & 1 != 0)
}

/// Rank of the sender in the communicator of the receive.
#[inline(always)]
pub fn status_source<M: Memory>(layout: &Layout, address: u64, memory: &M) -> Option<i32> {
    if !layout.knows(capability::CONSTANTS) {
        return None;
    }
    int(memory, address.wrapping_add(layout.status.source as u64))
}

/// Who a completed receive from anybody was from, according to the status that it was given: a rank, or one of [`peer`].
#[inline(always)]
pub fn status_partner<M: Memory>(layout: &Layout, address: u64, memory: &M) -> i32 {
    if address == layout.constants.status_ignore {
        return peer::ANY;
    }
    match status_source(layout, address, memory) {
        Some(rank) if rank >= 0 => rank,
        Some(rank) if rank == layout.constants.proc_null => peer::NULL,
        _ => peer::UNKNOWN,
    }
}

#[inline(always)]
pub fn status_tag<M: Memory>(layout: &Layout, address: u64, memory: &M) -> Option<i32> {
    if !layout.knows(capability::CONSTANTS) {
        return None;
    }
    int(memory, address.wrapping_add(layout.status.tag as u64))
}

/// The error of the operation, which is set if the call has returned `MPI_ERR_IN_STATUS`.
#[inline(always)]
pub fn status_error<M: Memory>(layout: &Layout, address: u64, memory: &M) -> Option<i32> {
    if !layout.knows(capability::CONSTANTS) {
        return None;
    }
    int(memory, address.wrapping_add(layout.status.error as u64))
}

/// Where a request keeps its status.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct RequestLayout {
    pub objects: Objects,
    /// In bytes from the start of the object; of the form of the program's own statuses.
    pub status: u32,
    /// Padding, zero.
    pub reserved: u32,
}

/// Address of the status that the library has written into the request `handle`, for `status_bytes` and the like.
///
/// It stays readable after the call that has completed the request and freed it, until the library uses the object for another
/// operation: so the number of bytes and the source can be had even if the caller has passed `MPI_STATUS_IGNORE`.
#[inline(always)]
pub fn request_status<M: Memory>(layout: &Layout, handle: u64, memory: &M) -> Option<u64> {
    let handle = layout.handle(handle);
    if !layout.knows(capability::REQUESTS)
        || handle == layout.constants.request_null
        || is_complete_request(layout, handle)
    {
        return None;
    }
    let object = object(layout, &layout.requests.objects, handle, memory)?;
    Some(object.wrapping_add(layout.requests.status as u64))
}

/// Whether the request is one of those shared by operations that were complete at once.
#[inline(always)]
pub fn is_complete_request(layout: &Layout, handle: u64) -> bool {
    let handle = layout.handle(handle);
    layout.constants.request_complete_first <= handle && handle <= layout.constants.request_complete_last
}
