//! What the tables say at one moment.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use mpiprobe_common::{
    Communicator, CommunicatorName, EndedThread, Flow, FoundRequest, FunctionStats, InnerStats, Layout, Phase,
    ProcessCounters, RecentCall, Request, ThreadState, ToolCallKey, ToolCallStats, ToolKey, ToolStats,
    phase::current,
    thread::{ARGUMENT_WORDS, REGISTER_ARGUMENTS},
};
use mpiprobe_discover::printable;

use crate::call_before::BeganBefore;

/// All observed processes at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// When it was begun, ns.
    pub taken_ns: u64,
    pub processes: Vec<ProcessSnapshot>,
    /// Probe hits that the kernel did not pass on; `None`: it does not tell.
    pub missed_hits: Option<u64>,
    /// Processes that matched but found no free slot.
    pub processes_without_slot: u64,
    /// Notices dropped that belong to no process.
    pub events_dropped: u64,
}

/// Statistics by function id. They are large, and shared by whoever adds them up.
pub type ByFunction = Vec<(u32, Arc<FunctionStats>)>;

/// One process image.
#[derive(Clone, Debug)]
pub struct ProcessSnapshot {
    /// Process slot.
    pub process: u32,
    pub counters: ProcessCounters,
    /// How its MPI library lays out its objects; zeroed where that is not known.
    pub layout: Layout,
    /// By function id; in all phases, and in none.
    pub functions: ByFunction,
    /// In the order of their first opening.
    pub phases: Vec<PhaseSnapshot>,
    /// Alive.
    pub threads: Vec<ThreadSnapshot>,
    /// As far as they are remembered one by one, in the order of their ends; the sums in `counters` are of all that have ended.
    pub ended_threads: Vec<EndedThread>,
    /// What was moved, in no order.
    pub flows: Vec<Flow>,
    /// By number. Further ones, for which there is no room, are [`SHARED`] in flows.
    pub communicators: Vec<CommunicatorSnapshot>,
    /// Operations under way, in no order.
    pub requests: Vec<PendingRequest>,
    /// Datatypes of open calls, where somebody has read in the process's memory what they are.
    pub datatypes: Vec<DatatypeSnapshot>,
    /// Requests that open calls wait for, where somebody has read them in the process's memory.
    pub awaited: Vec<AwaitedRequests>,
    /// Windows of open calls, likewise.
    pub windows: Vec<WindowSnapshot>,
    /// Groups that open calls over windows were given.
    pub groups: Vec<GroupSnapshot>,
    /// (outer, inner) function ids.
    pub inner: Vec<((u16, u16), InnerStats)>,
    pub tools: ToolsSnapshot,
    /// The last calls; `None`: nobody wants to see them.
    pub recent: Option<RecentSnapshot>,
    /// What had begun before the observation did; `None`: nobody has looked.
    pub began_before: Option<BeganBefore>,
}

/// The last calls of a process.
#[derive(Clone, Debug, Default)]
pub struct RecentSnapshot {
    /// In the order of their numbers; those whose numbers are missing between were not seen.
    pub calls: Vec<RecentCall>,
    /// What gives their arguments meaning; zeroed where that is not known.
    pub layout: Layout,
    /// Names of predefined objects by handles that are addresses, as far as they were read.
    pub names: HashMap<u64, &'static str>,
    /// Why there are none.
    pub why_not: Option<String>,
}

/// What a process's calls through tools came to, in no order.
#[derive(Clone, Debug, Default)]
pub struct ToolsSnapshot {
    /// Calls that have entered tools.
    pub calls: Vec<(ToolKey, ToolStats)>,
    /// Calls that tools have made themselves.
    pub own: Vec<(ToolCallKey, ToolCallStats)>,
}

/// A phase that a process has opened.
#[derive(Clone, Debug)]
pub struct PhaseSnapshot {
    pub phase: Phase,
    /// By function id, of calls completed in it.
    pub functions: ByFunction,
}

/// In place of the number of a communicator: one of those that are not told apart.
pub const SHARED: u32 = u32::MAX;

/// A communicator that a process has used or made.
#[derive(Clone, Debug, Default)]
pub struct CommunicatorSnapshot {
    pub number: u32,
    pub facts: Communicator,
    /// Given by the program while it was observed, or else what the library knows; may be empty.
    pub name: String,
    /// Where it was not seen to be made, but the library says how: `split`, and whether it was made from the world.
    pub made: Option<(String, bool)>,
    /// World ranks of the members, where somebody has read them from the process's memory.
    pub members: Option<Arc<Members>>,
}

impl CommunicatorSnapshot {
    /// A name as it is in a table: up to the first NUL, printable, for other users have written it.
    pub fn name_of(name: &CommunicatorName) -> String {
        printable(name.text.split(|&byte| byte == 0).next().unwrap_or_default())
    }
}

/// A datatype that an open call was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatatypeSnapshot {
    pub handle: u64,
    /// Given by the program or the library; `None`: it has none, or it is not known.
    pub name: Option<String>,
    /// Bytes of data in one element; `None`: not known.
    pub size: Option<u64>,
}

/// The requests that a thread's open call waits for; those that are null are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AwaitedRequests {
    pub tid: u32,
    pub requests: Vec<AwaitedRequest>,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedRequest {
    pub handle: u64,
    /// What the library keeps of it; `None`: that is not known.
    pub found: Option<FoundRequest>,
}

/// A window that an open call was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowSnapshot {
    pub handle: u64,
    /// Given by the program or the library; `None`: it has none, or it is not known.
    pub name: Option<String>,
    /// The library's number for it, which all members have; `None`: not known.
    pub context: Option<u64>,
    /// World ranks by rank; `None` for a process of another world.
    pub members: Arc<Vec<Option<u32>>>,
}

/// A group that an open call was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupSnapshot {
    pub handle: u64,
    /// World ranks by rank; `None` for a process of another world.
    pub members: Arc<Vec<Option<u32>>>,
}

/// World ranks by rank; `None` for a process of another world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    pub own: Vec<Option<u32>>,
    /// Of the other group of an inter-communicator.
    pub remote: Vec<Option<u32>>,
}

/// A live thread that has entered MPI.
#[derive(Clone, Copy, Debug)]
pub struct ThreadSnapshot {
    pub tid: u32,
    /// Where its state is.
    pub slot: usize,
    pub state: ThreadState,
}

/// What a call was given, as words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentWords {
    pub words: [u64; ARGUMENT_WORDS],
    /// Whether those on the stack are known, too.
    pub has_stack: bool,
}

impl ArgumentWords {
    pub fn of(state: &ThreadState) -> Self {
        Self { words: state.arguments, has_stack: state.has_stack != 0 }
    }

    /// Those that are known.
    pub fn known(&self) -> &[u64] {
        let known = if self.has_stack { ARGUMENT_WORDS } else { REGISTER_ARGUMENTS };
        self.words.get(..known).unwrap_or(&self.words)
    }
}

/// An operation under way.
#[derive(Clone, Copy, Debug)]
pub struct PendingRequest {
    pub request: Request,
    pub handle: u64,
    /// Rank in `MPI_COMM_WORLD` of whom it receives from, else of whom it sends to; or one of [`mpiprobe_common::flow::peer`].
    pub peer: i32,
}

impl ProcessSnapshot {
    /// Of a process that has done nothing.
    pub fn empty(process: u32) -> Self {
        Self {
            process,
            counters: ProcessCounters::ZERO,
            layout: Layout::default(),
            functions: Vec::new(),
            phases: Vec::new(),
            threads: Vec::new(),
            ended_threads: Vec::new(),
            flows: Vec::new(),
            communicators: Vec::new(),
            requests: Vec::new(),
            datatypes: Vec::new(),
            awaited: Vec::new(),
            windows: Vec::new(),
            groups: Vec::new(),
            inner: Vec::new(),
            tools: ToolsSnapshot::default(),
            recent: None,
            began_before: None,
        }
    }

    /// How long the program had counting switched off, ns.
    pub fn off_ns(&self, now_ns: u64) -> u64 {
        let counters = &self.counters;
        let is_off = counters.current & current::OFF != 0;
        let since = if is_off { now_ns.saturating_sub(counters.off_since_ns) } else { 0 };
        counters.off_ns.saturating_add(since)
    }

    /// How long the open call of a thread has been open, as far as it was observed, ns; 0 without one.
    pub fn open_ns(&self, tid: u32, now_ns: u64) -> u64 {
        let thread = self.threads.iter().find(|thread| thread.tid == tid);
        let before = self.open_before(tid).map(|call| call.time_ns(now_ns));
        before.or_else(|| Some(thread?.open_ns(now_ns))).unwrap_or(0)
    }

    /// How long threads have lived since their first call, ns, summed.
    pub fn thread_span_ns(&self, now_ns: u64) -> u64 {
        let first = self.threads.iter().map(|thread| thread.state.first_entry_ns).filter(|&ns| ns > 0);
        let live = first.map(|ns| now_ns.saturating_sub(ns));
        live.fold(self.counters.ended_threads_span_ns, u64::saturating_add)
    }
}

impl ThreadSnapshot {
    /// How long its open call has been open, ns; 0 without one.
    pub fn open_ns(&self, now_ns: u64) -> u64 {
        if self.state.open_function().is_none() { 0 } else { now_ns.saturating_sub(self.state.open.started_ns) }
    }
}

/// `CLOCK_MONOTONIC`, ns: what `bpf_ktime_get_ns` gives inside the kernel.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// In the order of their ends.
pub fn by_end(mut ended: Vec<EndedThread>) -> Vec<EndedThread> {
    ended.sort_by_key(|thread| (thread.ended_ns, thread.tid));
    ended
}

/// Those that are still alive. One that has ended between two looks was seen alive first and is remembered afterwards, and must not
/// count twice. Another thread may have got its id, but not the time of its first call.
pub fn alive(mut threads: Vec<ThreadSnapshot>, ended: &[EndedThread]) -> Vec<ThreadSnapshot> {
    let gone: HashSet<(u32, u64)> = ended.iter().map(|thread| (thread.tid, thread.first_entry_ns)).collect();
    threads.retain(|thread| !gone.contains(&(thread.tid, thread.state.first_entry_ns)));
    threads
}

#[cfg(test)]
mod tests {
    use mpiprobe_common::ThreadState;

    use super::*;

    fn thread(tid: u32, first_entry_ns: u64) -> ThreadSnapshot {
        ThreadSnapshot { tid, slot: 0, state: ThreadState { first_entry_ns, ..ThreadState::ZERO } }
    }

    #[test]
    fn a_thread_that_ends_meanwhile_counts_once_and_one_with_its_id_is_another() {
        let ended = [EndedThread { tid: 7, first_entry_ns: 100, ended_ns: 200, ..EndedThread::default() }];
        let left = alive(vec![thread(7, 100), thread(7, 300), thread(8, 100)], &ended);
        let left: Vec<_> = left.iter().map(|thread| (thread.tid, thread.state.first_entry_ns)).collect();
        assert_eq!(left, [(7, 300), (8, 100)]);
    }
}
