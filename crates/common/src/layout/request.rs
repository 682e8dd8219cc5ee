//! What is left of a completed request.

use bytemuck::{Pod, Zeroable};

use super::objects::object;
use super::{Layout, Memory, Objects, capability};

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
