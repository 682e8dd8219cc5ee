//! The last calls of the process, written down while an observer looks at them.

use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use mpiprobe_common::{
    file::RECENT_REGION,
    recent::{RECENT_ARGUMENTS, WRITING, entry_of},
};

use crate::{
    entry::{DESCRIPTORS, Frame},
    file, header, layers,
    message::SavedErrno,
    process,
    semantics::argument,
    thread::Local,
};

/// Whether somebody looks now. Nobody has to say that he does not any more: he may have been killed.
#[inline]
pub(crate) fn is_on(now_ns: u64) -> bool {
    let until = header::recent_until().map_or(0, |until| until.load(Ordering::Relaxed));
    until != 0 && now_ns <= until
}

/// The thread's open call returns, by the trampoline of `frame`.
///
/// # Safety
/// `local` must be the thread's own, `frame` the trampoline's.
#[cold]
#[inline(never)]
pub(crate) unsafe fn note(local: *mut Local, frame: *mut Frame, function: u32, ns: u64) {
    let _errno = SavedErrno::save();
    let Some(counters) = process::counters() else { return };
    // SAFETY: a word of the mapped counters.
    let number =
        unsafe { AtomicU64::from_ptr(&raw mut (*counters.as_ptr()).recent_calls) }.fetch_add(1, Ordering::Relaxed);
    // What is not written here, its reader misses by its number.
    let Some(entry) = file::place(RECENT_REGION, entry_of(number)) else { return };
    let entry = entry.as_ptr();
    // SAFETY: a word of the file, and an entry of it that is ours while it says so; the thread's own state.
    unsafe {
        let word = AtomicU64::from_ptr(&raw mut (*entry).state);
        let before = word.load(Ordering::Relaxed);
        // Another thread has been so slow that the ring has gone round meanwhile, or so quick that it has come round to here.
        if before > number
            || word.compare_exchange(before, WRITING | (number + 1), Ordering::AcqRel, Ordering::Relaxed).is_err()
        {
            return;
        }
        let state = (*local).state;
        (*entry).function = function;
        (*entry).tid = (*state).id as u32;
        (*entry).started_ns = (*state).open.started_ns;
        (*entry).ns = ns;
        (*entry).call_site = layers::user_site(frame);
        (*entry).result = (*frame).result;
        (*entry).known = RECENT_ARGUMENTS as u64;
        let count = DESCRIPTORS.get(function as usize).map_or(0, |descriptor| descriptor.arguments);
        for (position, to) in (0..count).zip(&mut (*entry).arguments) {
            *to = argument(frame, position);
        }
        compiler_fence(Ordering::SeqCst);
        word.store(number + 1, Ordering::Release);
    }
}
