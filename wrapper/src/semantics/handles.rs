//! Which number stands for which handle.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Numbers of handles, each by its index, which is one less.
pub(super) struct Handles<const N: usize> {
    /// The handle that a number stands for now; 0: none.
    known: [AtomicU64; N],
    /// None from here on has ever been given out.
    used: AtomicU32,
    /// A thread is giving out a number.
    is_locked: AtomicBool,
}

impl<const N: usize> Handles<N> {
    pub(super) const fn new() -> Self {
        Self { known: [const { AtomicU64::new(0) }; N], used: AtomicU32::new(0), is_locked: AtomicBool::new(false) }
    }

    /// The number of a handle; 0: it has none.
    pub(super) fn find(&self, handle: u64) -> u32 {
        let used = self.used.load(Ordering::Acquire) as usize;
        let index = self.known.iter().take(used).position(|known| known.load(Ordering::Acquire) == handle);
        index.map_or(0, |index| index as u32 + 1)
    }

    /// The number of a handle, which `make` gives the index of if there is none yet; 0: there is no room. Several threads may come here
    /// with the same handle at once: they all get the same number.
    pub(super) fn find_or_make(&self, handle: u64, make: impl FnOnce() -> Option<u32>) -> u32 {
        // As short as a few dozen instructions, and never held when MPI or the program is called.
        while self.is_locked.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            crate::system::let_others_run();
        }
        let number = match self.find(handle) {
            0 => self.make(handle, make),
            known => known,
        };
        self.is_locked.store(false, Ordering::Release);
        number
    }

    fn make(&self, handle: u64, make: impl FnOnce() -> Option<u32>) -> u32 {
        let Some(index) = make() else { return 0 };
        let Some(place) = self.known.get(index as usize) else { return 0 };
        place.store(handle, Ordering::Release);
        self.used.fetch_max(index + 1, Ordering::AcqRel);
        index + 1
    }

    /// A handle means something else from now on. Gives the number that it had; 0: none.
    pub(super) fn forget(&self, handle: u64) -> u32 {
        let number = self.find(handle);
        if let Some(known) = self.known.get((number as usize).wrapping_sub(1)) {
            // Two threads may free what they think is theirs: the second one finds nothing.
            let _ = known.compare_exchange(handle, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{sync::Barrier, thread, vec::Vec};

    use super::*;

    #[test]
    fn threads_that_come_at_once_get_one_number() {
        const THREADS: usize = 4;
        const ROUNDS: u64 = 500;
        static HANDLES: Handles<1024> = Handles::new();
        static MADE: AtomicU32 = AtomicU32::new(0);
        let start = Barrier::new(THREADS);
        let numbers = || {
            let number = |round| {
                start.wait();
                HANDLES.find_or_make(0x1000 + round, || Some(MADE.fetch_add(1, Ordering::Relaxed)))
            };
            (0..ROUNDS).map(number).collect::<Vec<u32>>()
        };
        let all: Vec<Vec<u32>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(numbers)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(all.iter().all(|numbers| *numbers == all[0]));
        assert_eq!(MADE.load(Ordering::Relaxed), ROUNDS as u32);
    }

    #[test]
    fn a_handle_that_is_used_again_gets_another_number() {
        static HANDLES: Handles<4> = Handles::new();
        assert_eq!(HANDLES.find_or_make(7, || Some(0)), 1);
        assert_eq!(HANDLES.forget(7), 1);
        assert_eq!((HANDLES.find(7), HANDLES.forget(7)), (0, 0));
        assert_eq!(HANDLES.find_or_make(7, || Some(1)), 2);
        assert_eq!((HANDLES.find_or_make(8, || None), HANDLES.find_or_make(8, || Some(4))), (0, 0));
    }
}
