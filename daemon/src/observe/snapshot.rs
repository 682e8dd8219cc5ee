//! What the tables say at one moment.

use mpiprobe_common::{Communicator, Flow, FunctionStats, InnerStats, ProcessCounters, ThreadState};

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

/// One process image.
#[derive(Clone, Debug)]
pub struct ProcessSnapshot {
    /// Process slot.
    pub process: u32,
    pub counters: ProcessCounters,
    /// By function id.
    pub functions: Vec<(u32, FunctionStats)>,
    pub threads: Vec<ThreadSnapshot>,
    /// What was moved, in no order.
    pub flows: Vec<Flow>,
    /// By number.
    pub communicators: Vec<(u32, Communicator)>,
    /// (outer, inner) function ids.
    pub inner: Vec<((u16, u16), InnerStats)>,
}

/// A live thread that has entered MPI.
#[derive(Clone, Copy, Debug)]
pub struct ThreadSnapshot {
    pub tid: u32,
    /// Where its state is.
    pub slot: usize,
    pub state: ThreadState,
}

impl ProcessSnapshot {
    /// Time in MPI of all threads, ns: completed calls, and open ones up to `now_ns`.
    pub fn mpi_ns(&self, now_ns: u64) -> u64 {
        let ended = self.counters.ended_threads_time_ns + self.counters.open_at_end_ns;
        let live = self.threads.iter().map(|thread| thread.state.time_ns + thread.open_ns(now_ns));
        live.fold(ended, u64::saturating_add)
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
        if self.state.open.function_plus_1 == 0 { 0 } else { now_ns.saturating_sub(self.state.open.started_ns) }
    }
}
