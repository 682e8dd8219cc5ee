//! Who a thread is, by the numbers that mpiprobe knows: those of the pid namespace that it runs in.

use aya_ebpf::{
    bindings::bpf_pidns_info,
    helpers::{
        bpf_get_current_pid_tgid, bpf_get_current_task, generated::bpf_get_ns_current_pid_tgid,
    },
};
use mpiprobe_common::config::Namespace;

use crate::{maps::configured, open_calls::word};

/// Of a thread that has no number there, or is in a namespace within: nobody is known by it.
pub const ELSEWHERE: u64 = u64::MAX;

/// Process and thread of the current thread, as `bpf_get_current_pid_tgid` has them.
#[inline(always)]
pub fn id() -> u64 {
    if is_initial() { bpf_get_current_pid_tgid() } else { id_in_namespace() }
}

/// Whether mpiprobe's numbers are the kernel's own: then the programs have nothing of what is below.
#[inline(always)]
pub fn is_initial() -> bool {
    configured::namespace().inode == 0
}

#[inline(never)]
fn id_in_namespace() -> u64 {
    let namespace = configured::namespace();
    let mut numbers = bpf_pidns_info { pid: 0, tgid: 0 };
    // SAFETY: writes into a local of the size given.
    let failed = unsafe {
        bpf_get_ns_current_pid_tgid(
            namespace.device.into(),
            namespace.inode.into(),
            &raw mut numbers,
            size_of::<bpf_pidns_info>() as u32,
        )
    };
    if failed != 0 { ELSEWHERE } else { u64::from(numbers.tgid) << 32 | u64::from(numbers.pid) }
}

/// The number of a task's process. `task` is the address of its `task_struct`; the current thread is in mpiprobe's namespace.
#[inline(always)]
pub fn process_of(task: u64) -> u32 {
    if is_initial() {
        word(task, configured::open_calls().task_tgid) as u32
    } else {
        number(word(task, configured::namespace().task_group_leader))
    }
}

/// The same as [`id`] of a task.
#[inline(always)]
pub fn id_of(task: u64) -> u64 {
    let thread = if is_initial() { word(task, configured::open_calls().task_pid) as u32 } else { number(task) };
    u64::from(process_of(task)) << 32 | u64::from(thread)
}

/// A task's number in the namespace of the current thread; 0: it is not within that.
#[inline(always)]
fn number(task: u64) -> u32 {
    let namespace = configured::namespace();
    // SAFETY: takes no arguments.
    let own = word(unsafe { bpf_get_current_task() }, namespace.task_thread_pid);
    let level = word(own, namespace.pid_level) as u32;
    let numbers = word(task, namespace.task_thread_pid);
    if (word(numbers, namespace.pid_level) as u32) < level {
        return 0;
    }
    word(numbers, namespace.pid_numbers + level * Namespace::NUMBER_BYTES) as u32
}
