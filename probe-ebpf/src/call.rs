//! Entry and return of a call: pairing, timing, the thread's state.

use aya_ebpf::helpers::{
    bpf_get_current_pid_tgid, bpf_ktime_get_ns,
    generated::bpf_probe_read_user,
};
use mpiprobe_common::{
    FUNCTION_SLOTS, Loss, OpenCall, Target, ThreadState,
    thread::REGISTER_ARGUMENTS,
};

use crate::{
    atomic::{add, hidden},
    inner,
    maps::{DESCRIPTORS, NEW_THREAD, TARGETS, THREADS, configured},
    registers::{RETURN_ADDRESS_BYTES, Registers, is_return_trampoline},
    statistics::{count_loss, process_counters, record},
};

/// The caller wants no return probe for this call.
const NO_RETURN: u32 = 1;
/// The caller wants the return probe.
const RETURN: u32 = 0;

/// A function is entered.
#[inline(always)]
pub fn enter(registers: &Registers, function: u32) -> u32 {
    let id = bpf_get_current_pid_tgid();
    let Some(thread) = thread_state(id) else { return NO_RETURN };
    // SAFETY: `thread` points to a live map value; only this thread writes it while it runs.
    let thread = unsafe { &mut *thread };
    let stack_pointer = registers.stack_pointer();

    if thread.open.function_plus_1 != 0 {
        if is_inside(thread, function, stack_pointer) {
            return inner::enter(thread, function, stack_pointer);
        }
        // The open call's frame is gone without a return.
        count_loss(thread.process, Loss::EntryWithoutReturn);
    }

    thread.sequence_begin += 1;
    thread.registers = registers.arguments();
    read_stack(thread, function, stack_pointer);
    if is_made_by_unseen_call(id, thread) {
        thread.open.function_plus_1 = 0;
        thread.sequence_end = thread.sequence_begin;
        return NO_RETURN;
    }
    thread.inner_depth = 0;
    thread.open.function_plus_1 = function + 1;
    thread.open.stack_pointer = stack_pointer;
    // Last, so that as little as possible of this program is in the measured time.
    // SAFETY: takes no arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    if thread.first_entry_ns == 0 {
        thread.first_entry_ns = now;
    }
    thread.open.started_ns = now;
    thread.sequence_end = thread.sequence_begin;
    RETURN
}

/// A function returns.
#[inline(always)]
pub fn leave(registers: &Registers, function: u32) {
    // First, for the same reason.
    // SAFETY: takes no arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    let id = bpf_get_current_pid_tgid();
    let Some(thread) = THREADS.get_ptr_mut(id) else {
        // The first that is seen of this thread is a return.
        count_unpaired_return(id);
        return;
    };
    // SAFETY: as in `enter`.
    let thread = unsafe { &mut *thread };
    let entry_stack_pointer = registers.stack_pointer() - RETURN_ADDRESS_BYTES;

    if thread.open.function_plus_1 == function + 1 && thread.open.stack_pointer == entry_stack_pointer {
        let ns = now - thread.open.started_ns;
        record(thread.process, function, ns);
        thread.sequence_begin += 1;
        thread.open.function_plus_1 = 0;
        thread.calls += 1;
        thread.time_ns += ns;
        thread.last_return_ns = now;
        thread.sequence_end = thread.sequence_begin;
    } else if thread.open.function_plus_1 != 0 && entry_stack_pointer <= thread.open.stack_pointer {
        inner::leave(thread, function, entry_stack_pointer, now);
    } else {
        count_loss(thread.process, Loss::ReturnWithoutEntry);
    }
}

/// The state of the current thread, made on its first entry; `None` if its process is no target or there is no room.
#[inline(always)]
fn thread_state(id: u64) -> Option<*mut ThreadState> {
    // Only threads of targets have a state, so in the common case this one look-up is also the check of the allow-list.
    match THREADS.get_ptr_mut(id) {
        Some(known) => Some(known),
        None => new_thread(id),
    }
}

#[inline(never)]
fn new_thread(id: u64) -> Option<*mut ThreadState> {
    let process = target(id)?.process;
    let template = NEW_THREAD.get_ptr(0)?;
    // SAFETY: map value pointer; the template is all zeroes and never written.
    if THREADS.insert(id, unsafe { &*template }, 0).is_err() {
        count_loss(process, Loss::ThreadTableFull);
        return None;
    }
    let thread = THREADS.get_ptr_mut(id)?;
    // SAFETY: map value pointer, just made by this thread.
    unsafe { (*thread).process = process };
    Some(thread)
}

/// The allow-list's entry for the process of a thread.
#[inline(always)]
pub fn target(id: u64) -> Option<Target> {
    let tgid = (id >> 32) as u32;
    // SAFETY: the value is copied at once; the daemon replaces it as a whole.
    unsafe { TARGETS.get(tgid) }.copied()
}

/// Whether a call is made inside the thread's open call, by where its frame is: the stack grows down.
#[inline(always)]
fn is_inside(thread: &ThreadState, function: u32, stack_pointer: u64) -> bool {
    let outer = &thread.open;
    if stack_pointer < outer.stack_pointer {
        // Below it, and not left meanwhile by other ways than a return (longjmp, an exception).
        returns_to_kernel(outer.stack_pointer)
    } else {
        // Same frame: a tail jump from one MPI function into another, or a new call after the open one was left.
        stack_pointer == outer.stack_pointer && outer.function_plus_1 != function + 1 && returns_to_kernel(stack_pointer)
    }
}

/// Whether the return address at `stack_pointer` is the kernel's trampoline: that of a call whose return probe is armed, or of
/// a function entered from such a call by a jump.
#[inline(always)]
pub fn returns_to_kernel(stack_pointer: u64) -> bool {
    let mut address = 0u64;
    // SAFETY: reads user memory by the helper made for that, into a local of the size given; 0 if it cannot be read.
    unsafe { bpf_probe_read_user((&raw mut address).cast(), 8, stack_pointer as *const _) };
    is_return_trampoline(address)
}

/// Reads the return address and, where the function has more than six arguments, the rest of them.
#[inline(always)]
fn read_stack(thread: &mut ThreadState, function: u32, stack_pointer: u64) {
    let arguments = DESCRIPTORS.get(function & (FUNCTION_SLOTS - 1)).map_or(0, |d| d.arguments as usize);
    let on_stack = arguments.saturating_sub(REGISTER_ARGUMENTS);
    // For the verifier, which must see the bound where the helper is called: the compiler knows no range of `bytes`.
    let bytes = hidden(8 * (1 + on_stack) as u64);
    if bytes > size_of_val(&thread.stack) as u64 {
        return;
    }
    // SAFETY: `bytes` is at most the size of `thread.stack`; the helper checks the user address.
    let result = unsafe { bpf_probe_read_user(thread.stack.as_mut_ptr().cast(), bytes as u32, stack_pointer as *const _) };
    if result != 0 {
        thread.stack[0] = 0;
        count_loss(thread.process, Loss::StackUnreadable);
    }
}

/// Whether the call comes from inside the MPI library although no outer call was seen: that one began before attach.
#[inline(always)]
fn is_made_by_unseen_call(id: u64, thread: &ThreadState) -> bool {
    // Once a call has been completed by the thread, every later outer call is seen.
    if thread.calls != 0 {
        return false;
    }
    let Some(target) = target(id) else { return false };
    let inside = thread.stack[0] >= target.library_start && thread.stack[0] < target.library_end;
    if inside && let Some(counters) = process_counters(thread.process) {
        // SAFETY: map value pointer.
        unsafe { add(&raw mut (*counters).inner_calls_of_unseen, 1) };
    }
    inside
}

/// Counts a return of a thread without a state, if its process is a target.
#[inline(never)]
fn count_unpaired_return(id: u64) {
    if let Some(target) = target(id) {
        count_loss(target.process, Loss::ReturnWithoutEntry);
    }
}

/// Whether inner calls are timed.
#[inline(always)]
pub fn nested() -> bool {
    configured::nested() != 0
}

/// Answer to the kernel for an inner call.
#[inline(always)]
pub fn inner_answer() -> u32 {
    if nested() { RETURN } else { NO_RETURN }
}

/// An open call.
#[inline(always)]
pub fn opened(function: u32, started_ns: u64, stack_pointer: u64) -> OpenCall {
    OpenCall { function_plus_1: function + 1, reserved: 0, started_ns, stack_pointer }
}
