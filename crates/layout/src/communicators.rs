//! The communicators that a process has, and who is in them.

use mpiprobe_common::{Layout, layout::comm};

pub use super::found::{Communicator, members};
use super::{TargetMemory, blueprint::Registry, mpich, names::comm_name, openmpi};

/// More communicators than any library can have at a time (contexts have 16 bits in most).
const MAX_COMMUNICATORS: usize = 1 << 16;

/// All communicators that exist now and that the program can have a handle of, in no particular order.
///
/// What the library has made for its own use (for the processes of one node, say) is left out.
pub fn communicators(layout: &Layout, registry: Registry, memory: &TargetMemory) -> Vec<Communicator> {
    let handles = match registry {
        Registry::None => Vec::new(),
        Registry::OpenMpi { array } => openmpi::handles(array, layout, memory),
        Registry::Mpich { .. } => mpich::handles(layout, memory),
    };
    let known = handles.into_iter().take(MAX_COMMUNICATORS).filter_map(|handle| {
        let facts = comm(layout, handle, memory)?;
        Some(Communicator { handle, facts, name: comm_name(layout, handle, memory) })
    });
    known.collect()
}
