//! Processes: the allow-list and what is counted per process.

use bytemuck::{Pod, Zeroable};

use crate::{layer::EARLY_QUERIES, loss::LOSSES};

/// Phases that may be open at once in a process; deeper ones are not told apart from the innermost of these. A power of two, so
/// that an index is checked by a mask.
pub const PHASE_DEPTH: usize = 16;

/// Entry of the allow-list of thread groups.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Target {
    /// Process slot: the index of everything counted for this process image.
    pub process: u32,
    /// [`target_flags`], ORed.
    pub flags: u32,
    /// Start of the executable mapping of the MPI library when its targets were attached in mid-run, else 0.
    ///
    /// A call whose call site lies in there, without an outer call seen, is made by an MPI call that began before attach.
    pub library_start: u64,
    /// End of that mapping, exclusive.
    pub library_end: u64,
}

/// Bits of [`Target::flags`].
pub mod target_flags {
    /// Stays a target over exec, whatever the new program is called (chosen by pid).
    pub const FOLLOW_EXEC: u32 = 1 << 0;
}

/// Bits of [`ProcessCounters::entries_only`]. One word, because it is read at every entry.
pub mod entries_only {
    /// All calls.
    pub const ALL: u64 = 1 << 0;
    /// Those of functions with a level in [`LEVELS`](crate::tables::LEVELS) other than [`level::FULL`](super::level::FULL). Never taken
    /// back: calls that began while a function was reduced may return later.
    pub const REDUCED: u64 = 1 << 1;
}

/// How calls of a function are counted: values in [`LEVELS`](crate::tables::LEVELS).
pub mod level {
    /// From entry to return.
    pub const FULL: u64 = 0;
    /// At their entry.
    pub const ENTRIES: u64 = 1;
}

/// Counters of one process image.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct ProcessCounters {
    /// Thread group id in the initial pid namespace; 0: slot not in use.
    pub tgid: u32,
    /// Padding, zero.
    pub reserved: u32,
    /// When the process became a target in the kernel by exec (ns); 0 if the observer added it.
    pub exec_ns: u64,
    /// When a thread of it last ended, or it exec'ed another program (ns); 0 if neither has happened.
    pub last_end_ns: u64,
    /// Losses by cause, see [`crate::Loss`].
    pub losses: [u64; LOSSES],
    /// Calls made inside MPI by MPI, all functions.
    pub inner_calls: u64,
    /// Inner calls whose outer call began before attach.
    pub inner_calls_of_unseen: u64,
    /// Threads that entered MPI and have ended. What is said of all of them was added before it was raised, and what one of them
    /// has done ([`crate::EndedThread`]) is written down afterwards.
    pub ended_threads: u64,
    /// Completed calls of ended threads.
    pub ended_threads_calls: u64,
    /// Time in them, ns.
    pub ended_threads_time_ns: u64,
    /// How long they lived from their first call on, ns, summed.
    pub ended_threads_span_ns: u64,
    /// Calls that were open when their thread ended.
    pub open_at_end: u64,
    /// Time in them up to the end, ns.
    pub open_at_end_ns: u64,
    /// Communicators that were freed.
    pub communicators_freed: u64,
    /// Communicators that are not told apart, because there were too many.
    pub communicators_shared: u64,
    /// What calls are counted as now: bits of [`crate::phase::current`].
    pub current: u64,
    /// Which calls are counted at their entry and get no return probe: bits of [`entries_only`]. Written by the observer.
    pub entries_only: u64,
    /// Calls entered while the program had counting switched off; those made by MPI itself included.
    pub calls_off: u64,
    /// Since when it is off, ns, if it is.
    pub off_since_ns: u64,
    /// How long it was off before that, ns.
    pub off_ns: u64,
    /// When notice was last given that the program wants results written out, ns.
    pub flushed_ns: u64,
    /// Phases open, those included that are too deep to be remembered.
    pub phase_depth: u64,
    /// The numbers plus one of those that are remembered, outermost first; 0: there was no room for that phase.
    pub open_phases: [u64; PHASE_DEPTH],
    /// Calls that were numbered for the ring of recent ones.
    pub recent_calls: u64,
    /// Where local questions were asked that were counted before it was known where the process has language layers, which ask some
    /// of their own: see [`crate::layer::EarlyQuery`]. 0: nothing.
    pub early_queries: [u64; EARLY_QUERIES],
    /// Such questions for which there was no room there.
    pub more_early_queries: u64,
}

impl ProcessCounters {
    /// The word of [`Self::entries_only`].
    pub const ENTRIES_ONLY: usize = core::mem::offset_of!(Self, entries_only) / size_of::<u64>();

    pub const ZERO: Self = Self {
        tgid: 0,
        reserved: 0,
        exec_ns: 0,
        last_end_ns: 0,
        losses: [0; LOSSES],
        inner_calls: 0,
        inner_calls_of_unseen: 0,
        ended_threads: 0,
        ended_threads_calls: 0,
        ended_threads_time_ns: 0,
        ended_threads_span_ns: 0,
        open_at_end: 0,
        open_at_end_ns: 0,
        communicators_freed: 0,
        communicators_shared: 0,
        current: 0,
        entries_only: 0,
        calls_off: 0,
        off_since_ns: 0,
        off_ns: 0,
        flushed_ns: 0,
        phase_depth: 0,
        open_phases: [0; PHASE_DEPTH],
        recent_calls: 0,
        early_queries: [0; EARLY_QUERIES],
        more_early_queries: 0,
    };
}
