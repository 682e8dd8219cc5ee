//! What a thread is doing now.

use bytemuck::{Pod, Zeroable};

use crate::{
    flow::{Completed, RECENT_FLOWS, RecentFlow, Summing},
    request::Following,
    trace::Unwritten,
};

/// Register arguments of the x86-64 System V calling convention.
pub const REGISTER_ARGUMENTS: usize = 6;
/// Room for the longest argument list of an MPI function, which has 13; a power of two, so that an index is checked by a mask.
pub const ARGUMENT_WORDS: usize = 16;
/// Inner calls whose entry is remembered at once (`--nested`); deeper ones are counted as lost.
pub const INNER_DEPTH: usize = 8;

/// Functions remembered of calls of which it is not known whether the open call makes them: see [`ThreadState::unsure`].
pub const UNSURE_FUNCTIONS: usize = 12;

/// Such calls of one function.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct UnsureCalls {
    pub function: u16,
    /// 0: this place is free.
    pub calls: u16,
}

/// A call that has not returned.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct OpenCall {
    /// Function id plus one; 0: no call is open.
    pub function_plus_1: u32,
    /// From `stack_pointer` to where the return address into the user's code is, bytes: 0 unless a tool's call is between, see
    /// [`crate::tool`]. [`Self::RETURNED`]: the call is being accounted for.
    pub to_user: u32,
    /// Entry, ns.
    pub started_ns: u64,
    /// Stack pointer at entry: where the return address is. Identifies the frame, so entry and return are paired exactly.
    pub stack_pointer: u64,
}

impl OpenCall {
    /// The call has returned and is in all sums; what is still to be found out is what it has moved. A process may be killed in
    /// that: the call does not count as open besides.
    pub const RETURNED: u32 = u32::MAX;
}

/// State of one live thread that has entered MPI since it is observed. One writer: the thread itself.
///
/// What every call touches comes first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
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
    /// Calls entered where the stack is higher than in the open call, whose return probe is still there: made by the open call on
    /// another stack, or by the program after it has left the open call without a return. They count as inner calls until it turns
    /// out that the open call was left. Beside the open call, because each call that begins sets it to 0.
    pub unsure_calls: u64,
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
    /// Arguments of the open (or last) call: of an `int` only the low 32 bits count. Those after the sixth only if
    /// they have been read, see `has_stack`.
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
    /// Number plus one of the slot's [`crate::CallCache`]; 0: none yet. Stays with the slot.
    pub call_cache_plus_1: u64,
    /// [`Self::unsure_calls`] by function, as far as there is room.
    pub unsure: [UnsureCalls; UNSURE_FUNCTIONS],
    /// Calls that were to be written to a ring and were not.
    pub unwritten: Unwritten,
    /// Not 0: the call that is being accounted for is written to a ring.
    pub is_traced: u32,
    /// Calls that were left without a return (`longjmp`, an exception). They have numbers like those that are written to a ring, so that
    /// they are missed there.
    pub left: u32,
    /// How many changes had not been written before it.
    pub unwritten_before: u64,
    /// Handle of the window or file that the open call was given to be freed; else whatever another call was given.
    pub freed: u64,
    /// Handle of the request of the operation that the call has posted that is being accounted for; 0: it has posted none that could be
    /// told from others. Of other calls, anything.
    pub posted: u64,
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
        unsure_calls: 0,
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
        call_cache_plus_1: 0,
        unsure: [UnsureCalls { function: 0, calls: 0 }; UNSURE_FUNCTIONS],
        unwritten: Unwritten::NONE,
        is_traced: 0,
        left: 0,
        unwritten_before: 0,
        freed: 0,
        posted: 0,
    };

    /// How many of its calls have numbers: those that were completed, and those that were left. That of the next one.
    pub const fn numbered_calls(&self) -> u64 {
        self.calls.wrapping_add(self.left as u64)
    }

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
        if self.open.to_user == OpenCall::RETURNED {
            return None;
        }
        self.open.function_plus_1.checked_sub(1)
    }
}

// Said to users (`--max-threads`) as 1.3 KiB.
const _: () = assert!(size_of::<ThreadState>() <= 1344 && size_of::<ThreadState>() > 1280);
