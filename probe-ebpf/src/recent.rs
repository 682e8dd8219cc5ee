//! The last calls of each process, written down while somebody looks at them.

use core::ptr::write_volatile;

use mpiprobe_common::{
    ThreadState,
    tables::Word,
    recent::{RECENT_ARGUMENTS, RECENT_CALLS, WRITING, entry_of},
    thread::REGISTER_ARGUMENTS,
};

use crate::{
    apart::given,
    atomic::{barrier, compare_exchange, fetch_add, load},
    layers,
    maps::{CONTROL, RECENT, configured},
    registers::Registers,
    statistics::process_counters,
};

/// Whether somebody looks now.
#[inline(always)]
pub fn is_on() -> bool {
    if configured::recent() == 0 {
        return false;
    }
    // SAFETY: map value pointer.
    CONTROL.get_ptr(Word::Recent as u32).is_some_and(|word| unsafe { load(word) } != 0)
}

/// The thread's call has returned, `registers` being those after it.
#[inline(always)]
pub fn note(thread: &ThreadState, function: u32, registers: &Registers, ns: u64) {
    let call_site = layers::user_site(thread, registers);
    append_recent_call(thread, function, call_site, registers.result(), ns);
}

/// Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn append_recent_call(thread: *const ThreadState, function: u32, call_site: u64, result: u64, ns: u64) -> u32 {
    given!(thread);
    let Some(counters) = process_counters(thread.process) else { return 0 };
    // SAFETY: map value pointer.
    let number = unsafe { fetch_add(&raw mut (*counters).recent_calls, 1) };
    let Some(entry) = RECENT.get_ptr_mut(thread.process * RECENT_CALLS + entry_of(number)) else { return 0 };
    // SAFETY: map value pointer. What is not written here, its reader misses by its number.
    unsafe {
        let before = load(&raw const (*entry).state);
        // Another thread has been so slow that the ring has gone round meanwhile, or so quick that it has come round to here.
        if before > number || compare_exchange(&raw mut (*entry).state, before, WRITING | (number + 1)) != before {
            return 0;
        }
        (*entry).function = function;
        (*entry).tid = thread.id as u32;
        (*entry).started_ns = thread.open.started_ns;
        (*entry).ns = ns;
        (*entry).call_site = call_site;
        (*entry).result = result;
        (*entry).known = if thread.has_stack != 0 { RECENT_ARGUMENTS as u64 } else { REGISTER_ARGUMENTS as u64 };
        for (to, from) in (*entry).arguments.iter_mut().zip(&thread.arguments) {
            *to = *from;
        }
        barrier();
        write_volatile(&raw mut (*entry).state, number + 1);
    }
    0
}
