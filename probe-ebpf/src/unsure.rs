//! Calls of which it is not known at once whether the open call makes them: on a stack above it, while its return probe is still there.
//!
//! They get no return probe, because that would be the end of the open call's (see [`crate::call::place`]). That the open call
//! returns says that it has made them; that it was left, or is open when its thread ends, says that they were the program's.

use mpiprobe_common::{Loss, ThreadState, thread::UnsureCalls};

use crate::{
    apart::given,
    statistics::{count_losses, is_chosen, record_untimed},
};

/// Such a call begins: an inner one, until the contrary is known. Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn enter_unsure_call(thread: *mut ThreadState, function: u32) -> u32 {
    given!(thread);
    thread.inner_calls += 1;
    if thread.unsure_calls == 0 {
        thread.unsure = ThreadState::ZERO.unsure;
    }
    thread.unsure_calls += 1;
    for known in &mut thread.unsure {
        if known.calls == 0 || (u32::from(known.function) == function && known.calls < u16::MAX) {
            *known = UnsureCalls { function: function as u16, calls: known.calls + 1 };
            break;
        }
    }
    0
}

/// The open call was left without a return: these were the program's own calls.
#[inline(always)]
pub fn settle(thread: &mut ThreadState) {
    if thread.unsure_calls != 0 {
        settle_unsure_calls(thread);
    }
}

/// Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn settle_unsure_calls(thread: *mut ThreadState) -> u32 {
    given!(thread);
    let mut unknown = thread.unsure_calls;
    thread.unsure_calls = 0;
    thread.inner_calls -= unknown;
    for known in thread.unsure {
        if known.calls == 0 {
            break;
        }
        let calls = u64::from(known.calls);
        unknown -= calls;
        if is_chosen(known.function.into()) {
            record_untimed(thread.process, known.function.into(), calls);
            thread.calls += calls;
        }
    }
    // Of which functions is not known.
    count_losses(thread.process, Loss::EntryWithoutReturn, unknown);
    0
}

/// Counts a call of the program's by its entry. Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn count_unsure_call(thread: *mut ThreadState, function: u32) -> u32 {
    given!(thread);
    if is_chosen(function) {
        record_untimed(thread.process, function, 1);
        thread.calls += 1;
    }
    0
}
