//! Threads that have ended, one by one, as far as there is room.

use bytemuck::{Pod, Zeroable};

use crate::{ThreadState, trace::Unwritten};

/// Threads of a process image that have ended and are remembered one by one, besides its first thread: those that ended first. Of
/// further ones there are the sums in [`crate::ProcessCounters`] only.
pub const ENDED_THREADS: u32 = 256;
/// Places for their records: that of the first thread is the first one.
pub const ENDED_THREAD_PLACES: u32 = ENDED_THREADS + 1;

/// What a thread has done that has ended. Also in the sums of [`crate::ProcessCounters`], to which it was added before.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct EndedThread {
    /// When it ended, ns; 0: there is no record. Comes first and is written last.
    pub ended_ns: u64,
    /// Thread id.
    pub tid: u32,
    /// See [`ThreadState::left`].
    pub left: u32,
    /// Completed outermost calls.
    pub calls: u64,
    /// Time in them, ns.
    pub time_ns: u64,
    /// First entry seen, ns.
    pub first_entry_ns: u64,
    /// Time in the call that was open at the end, ns.
    pub open_ns: u64,
    /// Calls that were to be written to a ring and were not.
    pub unwritten: Unwritten,
}

/// Which record of an ended thread it is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct EndedThreadKey {
    /// Process slot.
    pub process: u32,
    /// Below [`ENDED_THREAD_PLACES`].
    pub place: u32,
}

impl EndedThread {
    /// Of a thread that ends now.
    #[expect(clippy::cast_possible_truncation, reason = "the thread's id is the lower half")]
    pub const fn of(thread: &ThreadState, ended_ns: u64) -> Self {
        Self {
            ended_ns,
            tid: thread.id as u32,
            left: thread.left,
            calls: thread.calls,
            time_ns: thread.time_ns,
            first_entry_ns: thread.first_entry_ns,
            open_ns: if thread.open_function().is_none() { 0 } else { ended_ns.saturating_sub(thread.open.started_ns) },
            unwritten: thread.unwritten,
        }
    }

    /// See [`ThreadState::numbered_calls`].
    pub const fn numbered_calls(&self) -> u64 {
        self.calls.wrapping_add(self.left as u64)
    }

    /// How long it lived from its first call on, ns.
    pub const fn span_ns(&self) -> u64 {
        if self.first_entry_ns == 0 { 0 } else { self.ended_ns.saturating_sub(self.first_entry_ns) }
    }

    /// Where the record of a thread goes, by [`ThreadState::id`], before which `number` threads of its process have ended.
    /// `None`: nowhere, because there are too many. The first thread lives longest as a rule and has a place for itself.
    #[expect(clippy::cast_possible_truncation, reason = "limited before")]
    pub const fn place(id: u64, number: u64) -> Option<u32> {
        if id >> 32 == id & 0xffff_ffff {
            Some(0)
        } else if number < ENDED_THREADS as u64 {
            Some(number as u32 + 1)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenCall;

    #[test]
    fn the_first_thread_always_has_a_place_and_shares_it_with_none() {
        let (first, other) = (7 << 32 | 7, 7 << 32 | 8);
        assert_eq!((EndedThread::place(first, 0), EndedThread::place(first, u64::MAX)), (Some(0), Some(0)));
        assert_eq!(EndedThread::place(other, 0), Some(1));
        let last = u64::from(ENDED_THREADS) - 1;
        assert_eq!(EndedThread::place(other, last), Some(ENDED_THREAD_PLACES - 1));
        assert_eq!(EndedThread::place(other, last + 1), None);
    }

    #[test]
    fn a_call_that_is_open_at_the_end_counts_up_to_it() {
        let mut state =
            ThreadState { id: 7 << 32 | 8, calls: 3, time_ns: 40, first_entry_ns: 100, ..ThreadState::ZERO };
        let expected =
            EndedThread { ended_ns: 180, tid: 8, calls: 3, time_ns: 40, first_entry_ns: 100, ..EndedThread::default() };
        let ended = EndedThread::of(&state, 180);
        assert_eq!((ended, ended.span_ns()), (expected, 80));
        state.open = OpenCall { function_plus_1: 1, started_ns: 150, ..OpenCall::default() };
        assert_eq!(EndedThread::of(&state, 180).open_ns, 30);
        // It had returned, and was only being accounted for.
        state.open.to_user = OpenCall::RETURNED;
        assert_eq!((EndedThread::of(&state, 180).open_ns, state.open_function()), (0, None));
        // It has entered no call that counts.
        state.first_entry_ns = 0;
        assert_eq!(EndedThread::of(&state, 180).span_ns(), 0);
    }
}
