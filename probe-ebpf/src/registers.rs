//! Registers of the probed thread, x86-64.

use aya_ebpf::bindings::pt_regs;

/// The probed thread's registers at a probe.
#[derive(Clone, Copy)]
pub struct Registers(*const pt_regs);

impl Registers {
    /// Of a program's context, which the kernel guarantees to be valid.
    #[inline(always)]
    pub fn of(context: *mut core::ffi::c_void) -> Self {
        Self(context.cast())
    }

    #[inline(always)]
    pub fn instruction_pointer(self) -> u64 {
        // SAFETY: the kernel passes a valid `pt_regs` as context of every uprobe program.
        unsafe { (*self.0).rip }
    }

    #[inline(always)]
    pub fn stack_pointer(self) -> u64 {
        // SAFETY: as in `instruction_pointer`.
        unsafe { (*self.0).rsp }
    }

    /// RBP, which functions leave as it was.
    #[inline(always)]
    pub fn frame_pointer(self) -> u64 {
        // SAFETY: as in `instruction_pointer`.
        unsafe { (*self.0).rbp }
    }

    /// What a function returns, as a number.
    #[inline(always)]
    pub fn result(self) -> u64 {
        // SAFETY: as in `instruction_pointer`.
        unsafe { (*self.0).rax }
    }

    /// Integer and pointer arguments 1 to 6 (System V ABI for x86-64, 3.2.3).
    #[inline(always)]
    pub fn arguments(self) -> [u64; 6] {
        // SAFETY: as in `instruction_pointer`.
        unsafe { [(*self.0).rdi, (*self.0).rsi, (*self.0).rdx, (*self.0).rcx, (*self.0).r8, (*self.0).r9] }
    }
}

/// What `ret` pops: at a return probe the stack pointer is this much above that at entry.
pub const RETURN_ADDRESS_BYTES: u64 = 8;

/// Whether a word on the stack is the address of the kernel's return trampoline.
///
/// The trampoline is at the beginning of a page of its own, the topmost that is free in user space (kernel/events/uprobes.c,
/// `xol_add_vma`): above the stack, or, without address randomisation, among the libraries. No return address of the program's
/// own is at the beginning of a page up there.
#[inline(always)]
pub fn is_return_trampoline(word: u64) -> bool {
    const LOWEST: u64 = 0x7000_0000_0000;
    const END: u64 = 1 << 47;
    word & 0xfff == 0 && word >= LOWEST && word < END
}
