//! Memory of the process that makes the call.

use aya_ebpf::helpers::generated::bpf_probe_read_user;
use mpiprobe_common::layout::Memory;

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
}
