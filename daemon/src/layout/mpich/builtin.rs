//! The table of predefined communicators.

use mpiprobe_common::layout::Memory;

use super::allocator::Allocator;
use super::{COMM_BUILTIN, Target, scan};

/// `MPI_COMM_WORLD` and the next, `MPI_COMM_SELF`.
const WORLD: u32 = 0x4400_0000;

/// Its address; `None` as long as the library has not made them.
pub(super) fn find(target: &Target<'_>, communicators: &Allocator) -> Option<u64> {
    let stride = u64::from(communicators.objects().stride);
    let is_table = |address: u64| {
        let is_live = |index: u32| {
            let header = target.memory.word(address.checked_add(u64::from(index) * stride)?)?;
            Some(header & 0xffff_ffff == u64::from(WORLD + index) && header >> 32 != 0)
        };
        is_live(0) == Some(true) && is_live(1) == Some(true)
    };
    if let Ok(address) = target.address(COMM_BUILTIN) {
        return is_table(address).then_some(address);
    }
    let first = WORLD.to_le_bytes();
    scan::find(target, &target.blueprint.data.writable, 8, |address, bytes| {
        (bytes.starts_with(&first) && is_table(address)).then_some(address)
    })
}
