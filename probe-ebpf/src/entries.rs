//! Calls counted at their entry alone, in programs that return probes may harm: how long they take is not known, nor what they move.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use mpiprobe_common::ThreadState;

use crate::{
    apart::given,
    call::{begin_change, end_change, is_in_library, read_return_address},
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
    let caller = read_return_address(thread.process, stack_pointer);
    if is_in_library(thread.id, caller) {
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
