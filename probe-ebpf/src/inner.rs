//! Calls that MPI makes inside MPI: counted apart from the program's own, timed only if asked for.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use mpiprobe_common::{InnerKey, InnerStats, Loss, OpenCall, ThreadState, thread::INNER_DEPTH};

use crate::{
    apart::given,
    armed,
    atomic::{add, from_here_on},
    call::{Outcome, may_return_to_kernel, nested, opened, returns_to_kernel},
    maps::INNER,
    statistics::count_loss,
};

/// An inner call begins.
#[inline(always)]
pub fn enter(thread: &mut ThreadState, function: u32, stack_pointer: u64) -> Outcome {
    thread.inner_calls += 1;
    if nested() && push_inner_call(thread, function, stack_pointer) != 0 { Outcome::Return } else { Outcome::NoReturn }
}

/// An inner call returns.
#[inline(always)]
pub fn leave(thread: &mut ThreadState, function: u32, stack_pointer: u64, now: u64) {
    if nested() {
        pop_inner_call(thread, function, stack_pointer, now);
    }
}

/// Answers 1 if the return is to be seen, else 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn push_inner_call(thread: *mut ThreadState, function: u32, stack_pointer: u64) -> u32 {
    given!(thread);
    let mut depth = thread.inner_depth as usize;
    let jumped = returns_to_kernel(stack_pointer);
    // Frames below this one, or in its place, were left without a return.
    for _ in 0..INNER_DEPTH {
        match innermost(thread, depth) {
            // On another stack, or left: its return probe must not be lost as long as that is not known.
            Some(call) if call.stack_pointer < stack_pointer && may_return_to_kernel(call.stack_pointer) => {
                count_loss(thread.process, Loss::InnerTooDeep);
                return 0;
            }
            Some(call) if call.stack_pointer < stack_pointer || (call.stack_pointer == stack_pointer && !jumped) => {
                depth -= 1;
                count_loss(thread.process, Loss::EntryWithoutReturn);
            }
            _ => break,
        }
    }
    if armed::is_in_the_way(stack_pointer) {
        count_loss(thread.process, Loss::InnerTooDeep);
        return 0;
    }
    if depth >= INNER_DEPTH {
        count_loss(thread.process, Loss::InnerTooDeep);
        return 1;
    }
    let Some(free) = thread.inner.get_mut(masked(depth)) else { return 1 };
    // SAFETY: takes no arguments.
    *free = opened(function, unsafe { bpf_ktime_get_ns() }, stack_pointer);
    thread.inner_depth = depth as u8 + 1;
    1
}

/// Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn pop_inner_call(thread: *mut ThreadState, function: u32, stack_pointer: u64, now: u64) -> u32 {
    given!(thread);
    let depth = thread.inner_depth as usize;
    let Some(call) = innermost(thread, depth) else { return 0 };
    // Not the innermost one kept: a call that was too deep to be kept, already counted as such.
    if call.function_plus_1 != function + 1 || call.stack_pointer != stack_pointer {
        return 0;
    }
    thread.inner_depth = depth as u8 - 1;
    let key = InnerKey {
        process: thread.process,
        outer: (thread.open.function_plus_1 - 1) as u16,
        inner: function as u16,
    };
    let Some(stats) = stats(&key) else {
        count_loss(thread.process, Loss::InnerTableFull);
        return 0;
    };
    // SAFETY: map value pointer.
    unsafe {
        add(&raw mut (*stats).calls, 1);
        add(&raw mut (*stats).time_ns, now - call.started_ns);
    }
    0
}

/// The innermost of `depth` calls; `None` if there is none. `get` instead of an index: BPF cannot panic.
#[inline(always)]
fn innermost(thread: &ThreadState, depth: usize) -> Option<OpenCall> {
    let index = depth.wrapping_sub(1);
    if index >= INNER_DEPTH {
        return None;
    }
    thread.inner.get(masked(index)).copied()
}

/// An index below [`INNER_DEPTH`] in a way that the verifier sees: older kernels do not know that what was compared may be a copy of
/// the register that becomes the index.
#[inline(always)]
fn masked(index: usize) -> usize {
    from_here_on(index as u64) as usize & (INNER_DEPTH - 1)
}

#[inline(always)]
fn stats(key: &InnerKey) -> Option<*mut InnerStats> {
    if let Some(known) = INNER.get_ptr_mut(key) {
        return Some(known);
    }
    // BPF_NOEXIST: another thread may have made it meanwhile; what counts is that it is there now.
    let _ = INNER.insert(key, InnerStats { calls: 0, time_ns: 0 }, 1);
    INNER.get_ptr_mut(key)
}
