//! What the kernel puts in place of a return address while a return probe is armed.

/// Whether a word on the stack is the address of the kernel's return trampoline.
///
/// The trampoline is at the beginning of a page of its own, the topmost that is free in user space (kernel/events/uprobes.c,
/// `xol_add_vma`): above the stack, or, without address randomisation, among the libraries. With page tables of five levels (Intel from Ice
/// Lake, AMD from Zen 4 on) user space ends at 2^56 bytes instead of 2^47: it is far above all else then. No return address of the
/// program's own is at the beginning of a page up there.
#[inline(always)]
pub fn is_return_trampoline(word: u64) -> bool {
    const LOWEST: u64 = 0x7000_0000_0000;
    const END: u64 = 1 << 56;
    const PAGE: u64 = 4096;
    word.is_multiple_of(PAGE) && (LOWEST..END).contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_above_the_stack_or_at_the_end_of_user_space() {
        // As kernels have placed it: 6.18 and 6.1, page tables of four levels; among the libraries; 6.12, five levels.
        for address in [0x7fff_ffff_e000, 0x7ffc_1f3f_d000, 0x7f12_3456_7000, 0x00ff_ffff_ffff_e000] {
            assert!(is_return_trampoline(address), "{address:#x}");
        }
        // Return addresses of a program and of a library, no address, the kernel's.
        for address in [0x5555_5555_5189, 0x7f12_3456_7abc, 0, 0xffff_ffff_ff60_0000, 0x5555_5555_5000] {
            assert!(!is_return_trampoline(address), "{address:#x}");
        }
    }
}
