//! The last calls of a process, as they were executed: a ring that is written to while somebody looks at it.
//!
//! Calls are numbered from 0 on ([`ProcessCounters::recent_calls`](crate::ProcessCounters::recent_calls)); the one of number n
//! is in entry n modulo [`RECENT_CALLS`] until another takes its place. Whoever writes an entry says so in its first word, and
//! whoever reads it looks at that word before and after: what is torn or overwritten is not believed, and what is missing
//! between two numbers is known to be.

use bytemuck::{Pod, Zeroable};

use crate::thread::REGISTER_ARGUMENTS;

/// Calls that a ring has room for; a power of two.
pub const RECENT_CALLS: u32 = 64;
/// Arguments of the longest list of an MPI function.
pub const RECENT_ARGUMENTS: usize = 13;

/// In [`RecentCall::state`]: the entry is being written.
pub const WRITING: u64 = 1 << 63;

/// A call that has returned.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct RecentCall {
    /// Number of the call plus one; 0: no call yet. With [`WRITING`]: what is below is not to be believed.
    pub state: u64,
    /// Function id.
    pub function: u32,
    /// Thread id.
    pub tid: u32,
    /// Entry, ns.
    pub started_ns: u64,
    /// Duration, ns.
    pub ns: u64,
    /// Return address.
    pub call_site: u64,
    /// What it has returned, as it is in the register.
    pub result: u64,
    /// How many of the arguments are known: those in registers, or all.
    pub known: u64,
    /// As they were at the entry: of an `int` only the low 32 bits count.
    pub arguments: [u64; RECENT_ARGUMENTS],
}

impl RecentCall {
    /// Number of the call; `None` of an entry that has none or is being written.
    pub const fn number(&self) -> Option<u64> {
        if self.state & WRITING == 0 { self.state.checked_sub(1) } else { None }
    }

    /// The arguments that are known.
    pub fn arguments(&self) -> &[u64] {
        let known = if self.known > REGISTER_ARGUMENTS as u64 { RECENT_ARGUMENTS } else { REGISTER_ARGUMENTS };
        self.arguments.get(..known).unwrap_or_default()
    }
}

/// Where the call of a number is in its ring.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "cut off on purpose; `try_from` is a branch in BPF")]
pub const fn entry_of(number: u64) -> u32 {
    number as u32 & (RECENT_CALLS - 1)
}

const _: () = assert!(RECENT_CALLS.is_power_of_two() && size_of::<RecentCall>().is_multiple_of(8));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_round_in_the_ring() {
        let last = u64::from(RECENT_CALLS) - 1;
        assert_eq!([0, last, last + 1, u64::MAX].map(entry_of), [0, RECENT_CALLS - 1, 0, RECENT_CALLS - 1]);
    }

    #[test]
    fn what_is_being_written_has_no_number() {
        let call = |state| RecentCall { state, ..RecentCall::default() };
        assert_eq!([0, 1, 65, WRITING + 65].map(|state| call(state).number()), [None, Some(0), Some(64), None]);
    }

    #[test]
    fn arguments_on_the_stack_are_known_or_not() {
        let call = |known| RecentCall { known, ..RecentCall::default() };
        assert_eq!([6, 13].map(|known| call(known).arguments().len()), [REGISTER_ARGUMENTS, RECENT_ARGUMENTS]);
    }
}
