//! What a thread is doing now.

use crate::{
    flow::{Completed, RECENT_FLOWS, RecentFlow, Summing},
    request::Following,
};

/// Register arguments of the x86-64 System V calling convention.
pub const REGISTER_ARGUMENTS: usize = 6;
/// Room for the longest argument list of an MPI function, which has 13; a power of two, so that an index is checked by a mask.
pub const ARGUMENT_WORDS: usize = 16;
/// Inner calls whose entry is remembered at once (`--nested`); deeper ones are counted as lost.
pub const INNER_DEPTH: usize = 8;
/// Threads of a process image that have ended and are remembered one by one, besides its first thread: those that ended first. Of
/// further ones there are the sums in [`crate::ProcessCounters`] only.
pub const ENDED_THREADS: u32 = 256;
/// Places for their records: that of the first thread is the first one.
pub const ENDED_THREAD_PLACES: u32 = ENDED_THREADS + 1;

/// A call that has not returned.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenCall {
    /// Function id plus one; 0: no call is open.
    pub function_plus_1: u32,
    /// From `stack_pointer` to where the return address into the user's code is, bytes: 0 unless a tool's call is between, see
    /// [`crate::tool`].
    pub to_user: u32,
    /// Entry, ns.
    pub started_ns: u64,
    /// Stack pointer at entry: where the return address is. Identifies the frame, so entry and return are paired exactly.
    pub stack_pointer: u64,
}

/// State of one live thread that has entered MPI since it is observed. One writer: the thread itself.
///
/// What every call touches comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ThreadState {
    /// Thread group and thread id as `bpf_get_current_pid_tgid` gives them; 0: the slot is free.
    pub id: u64,
    /// Odd while the state is being changed, and another number afterwards.
    pub sequence: u64,
    /// Process slot.
    pub process: u32,
    /// Calls open inside the outermost one (`--nested` only).
    pub inner_depth: u8,
    /// Not 0: the arguments on the stack of the open (or last) call have been read.
    pub has_stack: u8,
    /// Calls of tools open around it, see [`crate::tool`].
    pub tools_open: u16,
    /// The outermost open call.
    pub open: OpenCall,
    /// Where byte 0 of the file with the thread's probes would be, were all of it mapped like its code; 0: not known.
    pub text_base: u64,
    /// From there to the end of the code, bytes; `u64::MAX` if the code is in several places.
    pub text_size: u64,
    /// Completed outermost calls of this thread.
    pub calls: u64,
    /// Time in them, ns.
    pub time_ns: u64,
    /// First entry seen, ns: before that the thread's state is unknown.
    pub first_entry_ns: u64,
    /// Return of the last completed call, ns.
    pub last_return_ns: u64,
    /// Return address of the open (or last) call; 0 where it was not read at the entry.
    pub return_address: u64,
    /// Calls made by MPI itself inside outermost ones.
    pub inner_calls: u64,
    /// Return address of the call that was entered at `located_ns`, as found later. Written by whoever looked for it, not by
    /// the thread; never more than one at a time.
    pub located_address: u64,
    /// Entry of that call, ns.
    pub located_ns: u64,
    /// Frame pointer (RBP) at the entry of the open (or last) call: the caller's.
    pub frame_pointer: u64,
    /// Arguments of the open (or last) call: of an `int` only the low 32 bits count. Those after the sixth only if the function
    /// moves data.
    pub arguments: [u64; ARGUMENT_WORDS],
    /// The call that is being accounted for.
    pub completed: Completed,
    /// What is to be added up of it.
    pub summing: Summing,
    /// The requests that the call has completed, or started.
    pub following: Following,
    /// Where the latest flows are.
    pub recent_flows: [RecentFlow; RECENT_FLOWS],
    /// Inner calls that have not returned, outermost first.
    pub inner: [OpenCall; INNER_DEPTH],
    /// Number plus one of the slot's [`crate::Recalled`]; 0: none yet. Stays with the slot.
    pub recalled_plus_1: u64,
    /// Padding, zero.
    pub reserved: [u64; 6],
}

const _: () = assert!(size_of::<ThreadState>().is_multiple_of(64), "no padding: the words are copied one by one");

impl ThreadState {
    pub const ZERO: Self = Self {
        id: 0,
        sequence: 0,
        process: 0,
        inner_depth: 0,
        has_stack: 0,
        tools_open: 0,
        open: OpenCall { function_plus_1: 0, to_user: 0, started_ns: 0, stack_pointer: 0 },
        text_base: 0,
        text_size: 0,
        calls: 0,
        time_ns: 0,
        first_entry_ns: 0,
        last_return_ns: 0,
        return_address: 0,
        inner_calls: 0,
        located_address: 0,
        located_ns: 0,
        frame_pointer: 0,
        arguments: [0; ARGUMENT_WORDS],
        completed: Completed::NONE,
        summing: Summing::NONE,
        following: Following::NONE,
        recent_flows: [RecentFlow { call_site: 0, communicator: 0, peer: 0, function_plus_1: 0, epoch: 0, flow: 0 };
            RECENT_FLOWS],
        inner: [OpenCall { function_plus_1: 0, to_user: 0, started_ns: 0, stack_pointer: 0 }; INNER_DEPTH],
        recalled_plus_1: 0,
        reserved: [0; 6],
    };

    /// Whether it is not being changed.
    pub const fn is_settled(&self) -> bool {
        self.sequence.is_multiple_of(2)
    }

    /// Where the open call was made from: its return address, if that is known.
    pub const fn call_site(&self) -> Option<u64> {
        let located = self.located_ns == self.open.started_ns && self.located_address != 0;
        let site = if located { self.located_address } else { self.return_address };
        if site == 0 { None } else { Some(site) }
    }

    /// Function id of the outermost open call.
    pub const fn open_function(&self) -> Option<u32> {
        self.open.function_plus_1.checked_sub(1)
    }
}

// Said to users (`--max-threads`) as 1.25 KiB.
const _: () = assert!(size_of::<ThreadState>() <= 1280 && size_of::<ThreadState>() > 1024);

/// What a thread has done that has ended. Also in the sums of [`crate::ProcessCounters`], to which it was added before.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedThread {
    /// When it ended, ns; 0: there is no record. Comes first and is written last.
    pub ended_ns: u64,
    /// Thread id.
    pub tid: u32,
    /// Padding, zero.
    pub reserved: u32,
    /// Completed outermost calls.
    pub calls: u64,
    /// Time in them, ns.
    pub time_ns: u64,
    /// First entry seen, ns.
    pub first_entry_ns: u64,
    /// Time in the call that was open at the end, ns.
    pub open_ns: u64,
}

/// Which record of an ended thread it is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
            reserved: 0,
            calls: thread.calls,
            time_ns: thread.time_ns,
            first_entry_ns: thread.first_entry_ns,
            open_ns: if thread.open.function_plus_1 == 0 { 0 } else { ended_ns.saturating_sub(thread.open.started_ns) },
        }
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
        // It has entered no call that counts.
        state.first_entry_ns = 0;
        assert_eq!(EndedThread::of(&state, 180).span_ns(), 0);
    }
}
