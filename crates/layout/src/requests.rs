//! What a library keeps of requests that are under way: whom a message is from, with which tag, over which communicator.
//!
//! None of this is part of any interface, and it differs with the network that is used. So nothing is believed that the object does
//! not say twice, or that does not lead to another object which says what it is.

use mpiprobe_common::{
    FoundProgress, FoundRequest, Layout,
    layout::{handle_kind, is_complete_request},
};

use super::{Communicator, TargetMemory, found::NOTHING, mpich, openmpi};

/// What the library keeps of the request `handle`; `None`: that is not known. `communicators`: those of the process.
pub fn request(
    layout: &Layout,
    handle: u64,
    communicators: &[Communicator],
    memory: &TargetMemory,
) -> Option<FoundRequest> {
    let handle = layout.handle(handle);
    if is_complete_request(layout, handle) {
        return Some(FoundRequest { progress: FoundProgress::Complete, ..NOTHING });
    }
    match layout.handles {
        handle_kind::POINTER => openmpi::request(layout, handle, memory),
        handle_kind::INTEGER | handle_kind::STANDARD_ABI => mpich::request(layout, handle, communicators, memory),
        _ => None,
    }
}
