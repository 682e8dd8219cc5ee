//! Where communicators come from that have no number yet: those that are still being made, until they are used.

use core::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, Ordering},
};

use mpiprobe_common::flow::{Degrees, Origin};

/// Communicators at once; of further ones it is not known where they come from.
const ROOM: usize = 256;

struct Origins {
    is_locked: AtomicBool,
    /// Handles, 0: free, and what is known of each.
    entries: UnsafeCell<[(u64, Origin); ROOM]>,
}

// SAFETY: the entries are those of the thread that has the lock.
unsafe impl Sync for Origins {}

const NOWHERE: Origin = Origin { made_by_plus_1: 0, parent: 0, made_ns: 0, degrees: Degrees::new(0, 0, 0) };

static ORIGINS: Origins = Origins { is_locked: AtomicBool::new(false), entries: UnsafeCell::new([(0, NOWHERE); ROOM]) };

/// Does something with the entries, as the only thread: as short as some hundred instructions.
fn with<T>(what: impl FnOnce(&mut [(u64, Origin); ROOM]) -> T) -> T {
    while ORIGINS.is_locked.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
        crate::system::let_others_run();
    }
    // SAFETY: the lock is taken.
    let done = what(unsafe { &mut *ORIGINS.entries.get() });
    ORIGINS.is_locked.store(false, Ordering::Release);
    done
}

/// Keeps it until the communicator is used or freed.
pub(super) fn keep(handle: u64, origin: Origin) {
    with(|entries| {
        let known = entries.iter().position(|(known, _)| *known == handle);
        let place = known.or_else(|| entries.iter().position(|(known, _)| *known == 0));
        if let Some(entry) = place.and_then(|place| entries.get_mut(place)) {
            *entry = (handle, origin);
        }
    });
}

/// What was kept.
pub(super) fn find(handle: u64) -> Option<Origin> {
    with(|entries| entries.iter().find(|(known, _)| *known == handle && handle != 0).map(|(_, origin)| *origin))
}

/// Takes out what was kept.
pub(super) fn take(handle: u64) -> Option<Origin> {
    with(|entries| {
        let (known, origin) = entries.iter_mut().find(|(known, _)| *known == handle && handle != 0)?;
        *known = 0;
        Some(*origin)
    })
}
