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
