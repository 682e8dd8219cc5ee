//! The BPF programs: one pair for all MPI functions, and two that watch processes come and go.
//!
//! What they write is defined in `mpiprobe_common`; what they attach to and when is decided by the daemon.
#![no_std]
#![no_main]
// Inline assembly for BPF is not stable; the compiler is told so for this crate alone (see ../bpf-build).
#![feature(asm_experimental_arch)]

mod apart;
mod armed;
mod atomic;
mod call;
mod current;
mod earlier;
mod entries;
mod environment;
mod inner;
mod layers;
mod lifecycle;
mod maps;
mod semantics;
mod open_calls;
mod phases;
mod recent;
mod registers;
mod statistics;
mod thread;
mod tools;
mod traced;
mod unsure;

use core::ffi::c_void;

use aya_ebpf::{
    macros::{raw_tracepoint, uprobe, uretprobe},
    programs::{ProbeContext, RawTracePointContext, RetProbeContext},
};

use crate::{atomic::from_here_on, call::Outcome};

/// Entry and return of every MPI function, kernel 6.13 and later: the kernel runs one program at both.
///
/// Returning 1 at the entry tells the kernel not to arm the return probe: processes that are no targets pay only half.
/// Without aya's attribute, which makes a program that returns 0 whatever the function says.
#[unsafe(no_mangle)]
#[unsafe(link_section = "uprobe")]
pub extern "C" fn session(context: *mut c_void) -> u32 {
    answer::<false>(&ProbeContext::new(context))
}

#[inline(always)]
fn answer<const TRACED: bool>(context: &ProbeContext) -> u32 {
    // The compiler knows of some functions that they answer 0 or 1, the verifier does not: it wants to see that it is compared.
    let outcome = call::hit::<TRACED>(context);
    if from_here_on(outcome as u64) > Outcome::NoReturn as u64 {
        semantics::go_on(context, outcome);
        return Outcome::Return as u32;
    }
    outcome as u32
}

/// Entry of every MPI function where session probes are not available.
#[uprobe]
pub fn entry(context: ProbeContext) -> u32 {
    call::entry::<false>(&context);
    0
}

/// Return of every MPI function where session probes are not available.
#[uretprobe]
pub fn leave(context: RetProbeContext) -> u32 {
    let answer = call::leave::<false, true>(&context, current::id());
    semantics::go_on(&context, answer);
    0
}

/// Entry of the function that programs mark phases by, beside the others; may wait for memory.
#[uprobe]
pub fn make_resident(context: ProbeContext) -> u32 {
    phases::make_resident(&context);
    0
}

/// Entry of the functions by which processes begin to use MPI, beside the others, where whoever maps a library has the same return probes.
#[uprobe]
pub fn tell_of_newcomer(_context: ProbeContext) -> u32 {
    lifecycle::tell_of_newcomer();
    0
}

/// A place that calls return to which had begun before their process was observed.
#[uprobe]
pub fn note_return(context: ProbeContext) -> u32 {
    earlier::note_return(&context);
    0
}

/// Entry and return of every function of a tool, as `session`.
#[unsafe(no_mangle)]
#[unsafe(link_section = "uprobe")]
pub extern "C" fn tool_session(context: *mut c_void) -> u32 {
    tools::hit(&ProbeContext::new(context)) as u32
}

/// Entry of every function of a tool where session probes are not available.
#[uprobe]
pub fn tool_entry(context: ProbeContext) -> u32 {
    tools::entry(&context);
    0
}

/// Return of every function of a tool where session probes are not available.
#[uretprobe]
pub fn tool_leave(context: RetProbeContext) -> u32 {
    tools::leave(&context);
    0
}

/// Called at the end of a return: finds the flows of the call.
#[uprobe]
pub fn attribute(context: ProbeContext) -> u32 {
    semantics::attribute::<false>(&context);
    0
}

/// Called by that one as long as nothing is known of the process's library: finds its layout by what is known of others.
#[uprobe]
pub fn prepare(context: ProbeContext) -> u32 {
    semantics::prepare(&context);
    0
}

/// Called by that one if the call makes or names communicators: notes where they come from.
#[uprobe]
pub fn relate(context: ProbeContext) -> u32 {
    semantics::relate(&context);
    0
}

/// Called if a communicator is new, once for each member that is looked at.
#[uprobe]
pub fn look(context: ProbeContext) -> u32 {
    semantics::look(&context);
    0
}

/// Called by these: finds out what the call has moved.
#[uprobe]
pub fn measure(context: ProbeContext) -> u32 {
    semantics::measure::<false>(&context);
    0
}

/// Called by that one, and by itself, of a call with arrays of counts: adds them up.
#[uprobe]
pub fn sum(context: ProbeContext) -> u32 {
    semantics::sum::<false>(&context);
    0
}

/// Called by these, of a call that posts an operation: remembers it.
#[uprobe]
pub fn post(context: ProbeContext) -> u32 {
    semantics::post::<false>(&context);
    0
}

/// Called by these, of a call that completes or starts operations: finds out which.
#[uprobe]
pub fn settle(context: ProbeContext) -> u32 {
    semantics::settle::<false>(&context);
    0
}

/// Called by the former, and by itself: goes through those that are complete.
#[uprobe]
pub fn follow(context: ProbeContext) -> u32 {
    semantics::follow::<false>(&context);
    0
}

/// The same for receives from anybody, whose true source takes the verifier long.
#[uprobe]
pub fn follow_any(context: ProbeContext) -> u32 {
    semantics::follow_any::<false>(&context);
    0
}

/// The same for requests that are started.
#[uprobe]
pub fn start(context: ProbeContext) -> u32 {
    semantics::start::<false>(&context);
    0
}

/// Does nothing at entry and return: the least that any probe can cost, for calibration and benchmarks.
#[uprobe]
pub fn empty(_context: ProbeContext) -> u32 {
    0
}

/// Run for every thread of the system when somebody reads the iterator: notes where open calls were made from.
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/task")]
pub extern "C" fn locate_open_calls(context: *mut c_void) -> i32 {
    // SAFETY: `struct bpf_iter__task` (kernel/bpf/task_iter.c) is two pointers; the second one is to the task, or null at the end.
    let task = unsafe { *context.cast::<u64>().add(1) };
    if task != 0 {
        open_calls::locate(task);
    }
    0
}

/// A thread ends: fold its counts into its process.
#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub fn thread_exit(context: RawTracePointContext) -> i32 {
    lifecycle::thread_exit(&context);
    0
}

/// A process starts another one, which may belong to the job with it.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub fn process_fork(context: RawTracePointContext) -> i32 {
    lifecycle::process_fork(&context);
    0
}

/// A process has a new program: it may become a target, stay one, or cease to be one.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn process_exec(context: RawTracePointContext) -> i32 {
    lifecycle::process_exec(&context);
    0
}

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

// The helpers used are for GPL-compatible programs only.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
