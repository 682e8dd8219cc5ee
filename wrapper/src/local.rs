//! What a thread finds without asking anybody: one word of thread-local storage.
//!
//! In the initial-exec model, which a preloaded library may use: its place is fixed when the program starts, so that reading it is
//! two instructions, allocates nothing and is safe in signal handlers.

use core::arch::{global_asm, naked_asm};

use crate::thread::Local;

global_asm!(
    r#"
        .section .tbss, "awT", @nobits
        .globl mpiprobe_local
        .hidden mpiprobe_local
        .type mpiprobe_local, @tls_object
        .size mpiprobe_local, 16
        .p2align 3
    mpiprobe_local:
        .zero 16
        .text
    "#
);

/// Sets what [`crate::call::enter`] and [`crate::call::leave`] are given in this thread.
pub(crate) fn set(local: *mut Local) {
    // SAFETY: stores a word at a place that only this thread knows.
    unsafe { store(local) }
}

/// The same, read.
pub(crate) fn get() -> *mut Local {
    // SAFETY: reads the word that `set` has written, or zero.
    unsafe { load() }
}

/// Marks the thread as being inside the wrapper's slow parts; tells whether it was already, as in a signal handler.
pub(crate) fn begin_slow() -> bool {
    // SAFETY: swaps the second word.
    unsafe { swap_slow(1) != 0 }
}

/// The thread has left them.
pub(crate) fn end_slow() {
    // SAFETY: as above.
    unsafe {
        swap_slow(0);
    }
}

#[unsafe(naked)]
unsafe extern "C" fn store(local: *mut Local) {
    naked_asm!("mov rax, [rip + mpiprobe_local@gottpoff]", "mov fs:[rax], rdi", "ret",)
}

#[unsafe(naked)]
unsafe extern "C" fn load() -> *mut Local {
    naked_asm!("mov rax, [rip + mpiprobe_local@gottpoff]", "mov rax, fs:[rax]", "ret",)
}

#[unsafe(naked)]
unsafe extern "C" fn swap_slow(value: u64) -> u64 {
    naked_asm!("mov rcx, [rip + mpiprobe_local@gottpoff]", "mov rax, fs:[rcx + 8]", "mov fs:[rcx + 8], rdi", "ret",)
}
