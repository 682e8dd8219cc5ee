//! Calls counted at their entry alone: how long they take is not known, nor what they move. In programs that return probes may harm all of
//! them are, and of functions whose calls would cost more than the observer may.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use mpiprobe_common::{FUNCTION_SLOTS, ThreadState, process::{entries_only, level}};

use crate::{
    apart::given,
    atomic::load,
    earlier::is_inside_earlier_call,
    call::{begin_change, end_change, is_in_library, read_return_address},
    maps::LEVELS,
    statistics::{is_chosen, record_untimed},
};

/// A function is entered; answers 0. Calls that MPI makes inside MPI are told by where they come from.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn count_entry(thread: *mut ThreadState, function: u32, stack_pointer: u64) -> u32 {
    given!(thread);
    if !is_chosen(function) {
        return 0;
    }
    if is_inner(thread, stack_pointer) {
        thread.inner_calls += 1;
        return 0;
    }
    begin_change(thread);
    thread.open.function_plus_1 = 0;
    thread.calls += 1;
    if thread.first_entry_ns == 0 {
        // SAFETY: takes no arguments.
        thread.first_entry_ns = unsafe { bpf_ktime_get_ns() };
    }
    end_change(thread);
    record_untimed(thread.process, function, 1);
    0
}

/// Whether a call of a function is counted in this way in a process with these bits of [`entries_only`].
#[inline(always)]
pub fn is_counted_by_entry(bits: u64, function: u32) -> bool {
    // SAFETY: map value pointer.
    let level = LEVELS.get_ptr(function & (FUNCTION_SLOTS - 1)).map_or(level::FULL, |level| unsafe { load(level) });
    bits & entries_only::ALL != 0 || level != level::FULL
}

/// A function is entered while others are counted at their entry alone, which are not known to be open: counts the call if one of them
/// has made it, which its return address tells. Answers 1 if so, else 0.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn enter_unseen_inner_call(thread: *mut ThreadState, stack_pointer: u64) -> u32 {
    given!(thread);
    if !is_inner(thread, stack_pointer) {
        return 0;
    }
    thread.inner_calls += 1;
    1
}

/// Whether a call is made inside another one, by where it comes from, or because it is known that the thread is in one since before it was
/// observed.
#[inline(always)]
fn is_inner(thread: &ThreadState, stack_pointer: u64) -> bool {
    is_in_library(thread.id, read_return_address(thread.process, stack_pointer))
        || thread.calls == 0 && is_inside_earlier_call(thread, stack_pointer) != 0
}
