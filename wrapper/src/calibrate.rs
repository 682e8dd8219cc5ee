//! What counting a call costs here: measured once, on a function that does nothing, with tables that nobody reads.

use core::{arch::naked_asm, ffi::c_void};

use crate::{
    clock::{Clock, monotonic_ns},
    entry::ENTRIES,
    local,
    thread::{Local, scratch},
};

/// Calls of a batch, and batches: the quickest is the one that nothing disturbed.
const CALLS: u32 = 64;
const BATCHES: u32 = 5;

/// ns, times 1024.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// Added to a call.
    pub(crate) call: u64,
    /// The part of it between the two time stamps.
    pub(crate) inside: u64,
}

/// Measures; the current thread has no slot yet.
pub(crate) fn measure() -> Option<Cost> {
    let mut scratch = scratch()?;
    // SAFETY: the scratch is ours until it is dropped.
    let local: *mut Local = unsafe { scratch.local.as_mut() };
    let before = local::get();
    local::set(local);
    // SAFETY: as above.
    unsafe { (*local).clock = Clock::for_calibration() };
    let (mut counted, mut bare, mut inside) = (u64::MAX, u64::MAX, u64::MAX);
    for _ in 0..BATCHES {
        // SAFETY: as above; both functions take no arguments.
        unsafe {
            let time = (*(*local).state).time_ns;
            counted = least(counted, batch(count_nothing));
            inside = least(inside, (*(*local).state).time_ns - time);
            bare = least(bare, batch(nothing));
        }
    }
    local::set(before);
    let per_call = |ns: u64| ns * 1024 / u64::from(CALLS);
    Some(Cost { call: per_call(counted.saturating_sub(bare)), inside: per_call(inside) })
}

/// Nanoseconds that so many calls take.
fn batch(function: unsafe extern "C" fn()) -> u64 {
    let start = monotonic_ns();
    for _ in 0..CALLS {
        // SAFETY: by contract of the callers, a function without arguments.
        unsafe { core::hint::black_box(function)() };
    }
    monotonic_ns() - start
}

fn least(one: u64, other: u64) -> u64 {
    if one < other { one } else { other }
}

/// The function called in [`count_nothing`].
pub(crate) fn target() -> *mut c_void {
    nothing as *const () as *mut c_void
}

#[unsafe(naked)]
unsafe extern "C" fn nothing() {
    naked_asm!("xor eax, eax", "ret")
}

/// An entry point like those of MPI's functions, beyond their list.
#[unsafe(naked)]
unsafe extern "C" fn count_nothing() {
    naked_asm!(
        "mov r11d, {index}",
        "jmp mpiprobe_through_0",
        index = const ENTRIES,
    )
}
