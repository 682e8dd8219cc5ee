//! Call sites of open calls, looked up when somebody asks instead of read at every entry: the kernel keeps the return address of a
//! call whose return probe is armed, because it has put another one onto the stack.

use aya_ebpf::helpers::generated::bpf_probe_read_kernel;
use mpiprobe_common::ThreadState;

use crate::{current, maps::configured, thread};

/// Return probes that may be armed in one thread at once (kernel: `MAX_URETPROBE_DEPTH`).
const MAX_DEPTH: usize = 64;

/// Notes the call site of the open call of a task's thread, if it has one. `task` is the address of its `task_struct`.
#[inline(always)]
pub fn locate(task: u64) {
    let Some(thread) = thread::find(current::id_of(task)) else { return };
    // SAFETY: map value pointer. The thread may be running: whatever is read twice may differ.
    unsafe { note(thread, word(task, configured::open_calls().task_utask)) };
}

/// # Safety
/// `thread` must point to a live map value.
#[inline(always)]
unsafe fn note(thread: *mut ThreadState, utask: u64) {
    // SAFETY: by contract.
    let (started_ns, stack_pointer, function) = unsafe { open(thread) };
    if function == 0 || utask == 0 {
        return;
    }
    let site = return_address(utask, stack_pointer);
    // Only if the same call has been open all the while.
    // SAFETY: by contract.
    unsafe {
        if site != 0 && open(thread) == (started_ns, stack_pointer, function) {
            (&raw mut (*thread).located_ns).write_volatile(0);
            (&raw mut (*thread).located_address).write_volatile(site);
            (&raw mut (*thread).located_ns).write_volatile(started_ns);
        }
    }
}

/// Entry of the open call, where the return address into the user's code is, and the function.
///
/// # Safety
/// As [`note`].
#[inline(always)]
unsafe fn open(thread: *const ThreadState) -> (u64, u64, u32) {
    // SAFETY: by contract.
    unsafe {
        (
            (&raw const (*thread).open.started_ns).read_volatile(),
            (&raw const (*thread).open.stack_pointer).read_volatile() + u64::from((&raw const (*thread).open.to_user).read_volatile()),
            (&raw const (*thread).open.function_plus_1).read_volatile(),
        )
    }
}

/// The return address that belongs at `stack_pointer`; 0 if no return probe is armed there.
#[inline(always)]
fn return_address(utask: u64, stack_pointer: u64) -> u64 {
    let offsets = configured::open_calls();
    let mut instance = word(utask, offsets.utask_return_instances);
    for _ in 0..MAX_DEPTH {
        if instance == 0 {
            break;
        }
        if word(instance, offsets.instance_stack) == stack_pointer {
            return word(instance, offsets.instance_return_address);
        }
        instance = word(instance, offsets.instance_next);
    }
    0
}

/// A word of kernel memory; 0 if it cannot be read.
#[inline(always)]
pub fn word(base: u64, offset: u32) -> u64 {
    let mut word = 0u64;
    let address = base + u64::from(offset);
    // SAFETY: reads kernel memory by the helper made for that, into a local of the size given.
    unsafe { bpf_probe_read_kernel((&raw mut word).cast(), 8, address as *const _) };
    word
}
