//! The BPF programs: one pair for all MPI functions, and two that watch processes come and go.
//!
//! What they write is defined in `mpiprobe_common`; what they attach to and when is decided by the daemon.
#![no_std]
#![no_main]
// Inline assembly for BPF is not stable; the compiler is told so for this crate alone (see ../bpf-build).
#![feature(asm_experimental_arch)]

mod atomic;
mod call;
mod inner;
mod lifecycle;
mod maps;
mod registers;
mod statistics;

use aya_ebpf::{
    EbpfContext as _,
    helpers::generated::{bpf_get_attach_cookie, bpf_get_func_ip},
    macros::{raw_tracepoint, uprobe, uretprobe},
    programs::{ProbeContext, RawTracePointContext, RetProbeContext},
};

/// Entry and return of every MPI function, kernel 6.13 and later: the kernel runs one program at both.
///
/// Returning 1 at the entry tells the kernel not to arm the return probe: processes that are no targets pay only half.
#[uprobe]
pub fn session(context: ProbeContext) -> u32 {
    let (function, entry) = session_hit(&context);
    let Some(registers) = registers::Registers::of(context.regs) else { return 0 };
    if entry {
        call::enter(&registers, function)
    } else {
        call::leave(&registers, function);
        0
    }
}

/// Entry of every MPI function where session probes are not available.
#[uprobe]
pub fn entry(context: ProbeContext) -> u32 {
    if let Some(registers) = registers::Registers::of(context.regs) {
        call::enter(&registers, cookie(context.as_ptr()));
    }
    0
}

/// Return of every MPI function where session probes are not available.
#[uretprobe]
pub fn leave(context: RetProbeContext) -> u32 {
    if let Some(registers) = registers::Registers::of(context.regs) {
        call::leave(&registers, cookie(context.as_ptr()));
    }
    0
}

/// Does nothing at entry and return: the least that any probe can cost, for calibration and benchmarks.
#[uprobe]
pub fn empty(_context: ProbeContext) -> u32 {
    0
}

/// A thread ends: fold its counts into its process.
#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub fn thread_exit(_context: RawTracePointContext) -> i32 {
    lifecycle::thread_exit();
    0
}

/// A process has a new program: it may become a target, stay one, or cease to be one.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn process_exec(context: RawTracePointContext) -> i32 {
    lifecycle::process_exec(&context);
    0
}

/// Function id, and whether this is the entry: at the return the instruction pointer is the caller's.
#[inline(always)]
fn session_hit(context: &ProbeContext) -> (u32, bool) {
    let raw = context.as_ptr();
    // SAFETY: both helpers take the program's own context, which `raw` is.
    let entry_address = unsafe { bpf_get_func_ip(raw) };
    let here = registers::Registers::of(context.regs).map_or(0, |registers| registers.instruction_pointer());
    (cookie(raw), here == entry_address)
}

/// The function id given when the probe was attached.
#[inline(always)]
fn cookie(context: *mut core::ffi::c_void) -> u32 {
    // SAFETY: the helper takes the program's own context, which the callers pass.
    unsafe { bpf_get_attach_cookie(context) as u32 }
}

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

// The helpers used are for GPL-compatible programs only.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
