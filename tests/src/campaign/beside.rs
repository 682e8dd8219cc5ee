//! Somebody else who uses all processors.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

/// Does `what` while so many threads compute.
pub(super) fn beside<T>(threads: usize, what: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    spin_loop();
                }
            });
        }
        // Also if it panics: whoever waits for the threads would wait for ever.
        let ends = Ends(&is_over);
        let done = what();
        drop(ends);
        done
    })
}

/// As many as there are processors.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
