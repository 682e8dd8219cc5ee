//! Calls that had begun when the observation of their process did, and what is watched of them.

use bytemuck::{Pod, Zeroable};

/// Such a call, as the daemon has found it on its thread's stack.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct EarlierCall {
    /// Where on the stack its return address is.
    pub return_slot: u64,
    pub return_address: u64,
    /// Not 0: the thread was seen in it after the place that it returns to had a probe, so whatever the thread calls is inside it until
    /// its return is noted.
    pub is_confirmed: u64,
}

/// Threads that are watched at once, all processes together.
pub const EARLIER_CALLS: u32 = 4096;
