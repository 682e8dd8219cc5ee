//! The same work on many things, by several threads.

use std::{num::NonZero, thread};

/// How many threads are worth it on this machine.
pub fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Does something to each item, which is told its index. Fewer threads are used where there are few items; the calling one is one of them.
pub(crate) fn for_each<T: Send>(threads: usize, items: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
    let threads = threads.clamp(1, items.len().max(1));
    if threads == 1 {
        items.iter_mut().enumerate().for_each(|(index, item)| work(index, item));
        return;
    }
    let share = items.len().div_ceil(threads);
    let work = &work;
    let (own, others) = items.split_at_mut(share);
    thread::scope(|scope| {
        for (part, items) in (1..).zip(others.chunks_mut(share)) {
            scope.spawn(move || {
                items.iter_mut().enumerate().for_each(|(index, item)| work(part * share + index, item));
            });
        }
        own.iter_mut().enumerate().for_each(|(index, item)| work(index, item));
    });
}
