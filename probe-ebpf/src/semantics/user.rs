//! Memory of the process that makes the call.

use core::mem::MaybeUninit;

use aya_ebpf::helpers::generated::bpf_probe_read_user;
use mpiprobe_common::{
    Layout,
    layout::Memory,
};

/// The current process's memory.
#[derive(Clone, Copy)]
pub struct User;

impl Memory for User {
    #[inline(always)]
    fn word(&self, address: u64) -> Option<u64> {
        let mut word = 0u64;
        // SAFETY: reads user memory by the helper made for that, into a local of the size given.
        let result = unsafe { bpf_probe_read_user((&raw mut word).cast(), 8, address as *const _) };
        if result == 0 { Some(word) } else { None }
    }

    /// One read of the very bytes, whatever the width: the verifier would go through all ways from here on once for each width.
    #[inline(always)]
    fn integer(&self, address: u64, width: u32) -> Option<u64> {
        // Zeroed word by word: of an array, the compiler would make a loop over its bytes.
        let mut integer = MaybeUninit::<[u64; 2]>::uninit();
        let words = integer.as_mut_ptr().cast::<u64>();
        // SAFETY: the two words of the local.
        unsafe {
            words.write_volatile(0);
            words.add(1).write_volatile(0);
        }
        // Kernels that do not know that what is compared may be a copy of it see the mask.
        let width = width & 15;
        if width > 8 {
            return None;
        }
        // SAFETY: as above; the local has room for the most that the mask lets through.
        let (result, integer) = unsafe {
            (bpf_probe_read_user(words.cast(), width, address as *const _), words.read())
        };
        if result == 0 { Some(integer) } else { None }
    }
}

/// The handle in a variable of the program.
#[inline(always)]
pub fn handle_at(layout: &Layout, address: u64) -> Option<u64> {
    if layout.handle_width() == 4 {
        return int_at(address).map(|handle| handle as u32 as u64);
    }
    User.word(address)
}

/// An `int` in a variable of the program.
#[inline(always)]
pub fn int_at(address: u64) -> Option<i32> {
    let mut int = 0i32;
    // SAFETY: reads user memory by the helper made for that, into a local of the size given.
    let result = unsafe { bpf_probe_read_user((&raw mut int).cast(), 4, address as *const _) };
    if result == 0 { Some(int) } else { None }
}
