//! What a library keeps of windows: who has them, and of groups that they are opened to.

use mpiprobe_common::{Layout, layout::handle_kind};

pub use super::found::Window;
use super::{Registry, TargetMemory, mpich, openmpi};

/// The window `handle`; `None` if it is not known who has it.
pub fn window(layout: &Layout, registry: Registry, handle: u64, memory: &TargetMemory) -> Option<Window> {
    let handle = layout.handle(handle);
    match (layout.handles, registry) {
        (handle_kind::POINTER, _) => openmpi::window(layout, handle, memory),
        (handle_kind::INTEGER | handle_kind::STANDARD_ABI, Registry::Mpich { windows }) => {
            mpich::window(layout, &windows, handle, memory)
        }
        _ => None,
    }
}

/// World ranks of the members of the group `handle`; `None`: not known, as of all groups in libraries that number their objects.
pub fn group(layout: &Layout, handle: u64, memory: &TargetMemory) -> Option<Vec<Option<u32>>> {
    (layout.handles == handle_kind::POINTER).then(|| openmpi::group(layout, handle, memory)).flatten()
}
