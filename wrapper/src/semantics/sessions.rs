//! The program's sessions: one that has begun and not ended can be asked which processes there are, where there is no `MPI_COMM_WORLD`.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{
    arguments::{Arguments, handle_at},
    library,
};

/// Sessions at once; further ones are not known.
const ROOM: usize = 8;

/// Handles plus one; 0: free.
static LIVE: [AtomicU64; ROOM] = [const { AtomicU64::new(0) }; ROOM];

/// `MPI_Session_init(info, errhandler, &session)` has succeeded.
pub(super) fn begin(arguments: Arguments) {
    replace(0, handle_plus_1(arguments.word(2)));
}

/// `MPI_Session_finalize(&session)` is entered: the session is not to be asked any more.
pub(super) fn end(arguments: Arguments) {
    replace(handle_plus_1(arguments.word(0)), 0);
}

/// One that is live.
pub(super) fn any() -> Option<u64> {
    LIVE.iter().find_map(|live| live.load(Ordering::Acquire).checked_sub(1))
}

/// By the address of the handle; 0: it cannot be read.
fn handle_plus_1(address: u64) -> u64 {
    library::known().and_then(|library| handle_at(&library.layout, address)).map_or(0, |handle| handle.wrapping_add(1))
}

fn replace(old: u64, new: u64) {
    if old != new {
        let _ = LIVE.iter().find(|live| live.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok());
    }
}
