//! Which thread this is, without asking the kernel: a program that has confined itself may start threads, which is more than ask for
//! their own number.
//!
//! Locks that may be taken twice by the same thread have its number in them. Where exactly, C libraries do not say: it is looked for
//! when the process makes its first call, when the kernel may be asked.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::{imports, system};

/// Bytes of a lock, or more, in all C libraries.
const LOCK: usize = 128;

/// This process, and where in a lock the thread's number is, words from its beginning; 0: nobody knows.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static PLACE: AtomicU32 = AtomicU32::new(0);

/// To be called once, before any thread is asked for.
pub(crate) fn start() {
    PROCESS.store(system::process_id(), Ordering::Relaxed);
    let this = system::thread_id();
    let place = locked().and_then(|lock| lock.iter().position(|&word| word == this));
    PLACE.store(place.unwrap_or(0) as u32, Ordering::Relaxed);
}

/// Process and thread, in one number.
pub(crate) fn of_thread() -> u64 {
    let place = PLACE.load(Ordering::Relaxed) as usize;
    let by_lock = if place == 0 { None } else { locked().and_then(|lock| lock.get(place).copied()) };
    let thread = by_lock.filter(|&thread| thread != 0).unwrap_or_else(system::thread_id);
    (PROCESS.load(Ordering::Relaxed) as u64) << 32 | thread as u64
}

/// What is in a lock that this thread has taken.
fn locked() -> Option<[u32; LOCK / 4]> {
    let mut lock = [0u64; LOCK / 8];
    let lock = lock.as_mut_ptr();
    let mut words = [0; LOCK / 4];
    let look = || {
        for (word, to) in words.iter_mut().enumerate() {
            // SAFETY: within the lock.
            *to = unsafe { lock.cast::<u32>().add(word).read_volatile() };
        }
    };
    // SAFETY: memory that is large enough, aligned, and nobody else's.
    let is_taken = unsafe { imports::with_lock(lock.cast(), look) };
    is_taken.then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_told_apart_without_the_kernel() {
        start();
        assert_ne!(PLACE.load(Ordering::Relaxed), 0);
        let one = of_thread();
        assert_eq!(one as u32, system::thread_id());
        let other = std::thread::spawn(|| (of_thread(), system::thread_id())).join().unwrap();
        assert_eq!((other.0 as u32, other.0 >> 32), (other.1, one >> 32));
    }
}
