//! The threads of a rank: those that live, those that have ended, and the sums of those that are not remembered one by one.

use mpiprobe_common::EndedThread;

use super::self_cost::shares;
use crate::{
    model::{OtherThreads, ThreadLife, ThreadProfile},
    observe::{ProcessSnapshot, ThreadSnapshot},
};

/// All threads of a rank that have entered MPI. Their times are the rank's, no more and no less.
#[derive(Debug)]
pub(super) struct Threads {
    pub(super) rows: Vec<ThreadProfile>,
    pub(super) others: Option<OtherThreads>,
}

/// What is known of one thread, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    threads: u64,
    calls: u64,
    /// In completed calls, ns, as measured.
    time_ns: u64,
    /// In calls that have not returned, ns.
    open_ns: u64,
    wall_ns: u64,
}

impl Threads {
    /// Of so much time (ns), which is mpiprobe's own cost, each gets its share taken off.
    pub(super) fn of(tables: &ProcessSnapshot, self_cost_ns: u64, now_ns: u64) -> Self {
        let living =
            tables.threads.iter().map(|thread| (thread.tid, ThreadLife::Running, Part::living(thread, now_ns)));
        let ended = tables.ended_threads.iter().map(|thread| (thread.tid, ThreadLife::Ended, Part::ended(thread)));
        let known: Vec<_> = living.chain(ended).collect();
        let others = Part::others(tables);
        let bearers = known.iter().map(|(_, _, part)| part).chain([&others]);
        let costs = shares(self_cost_ns, bearers.map(|part| (part.calls, part.time_ns)));
        let rows = known.iter().zip(&costs).map(|((tid, state, part), cost)| ThreadProfile {
            tid: *tid,
            state: *state,
            calls: part.calls,
            mpi_ns: part.mpi_ns(*cost),
            wall_ns: part.wall_ns,
        });
        let cost_of_others = costs.last().copied().unwrap_or(0);
        Self { rows: rows.collect(), others: others.profile(cost_of_others) }
    }

    /// Time in MPI, ns.
    pub(super) fn mpi_ns(&self) -> u64 {
        let others = self.others.map_or(0, |others| others.mpi_ns);
        self.rows.iter().map(|thread| thread.mpi_ns).fold(others, u64::saturating_add)
    }
}

impl Part {
    fn living(thread: &ThreadSnapshot, now_ns: u64) -> Self {
        // As if it ended now.
        Self::ended(&EndedThread::of(&thread.state, now_ns))
    }

    fn ended(thread: &EndedThread) -> Self {
        Self {
            threads: 1,
            calls: thread.calls,
            time_ns: thread.time_ns,
            open_ns: thread.open_ns,
            wall_ns: thread.span_ns(),
        }
    }

    /// What is in the sums of all threads that have ended, and was done by none of those that are remembered.
    fn others(tables: &ProcessSnapshot) -> Self {
        let all = Self {
            threads: tables.counters.ended_threads,
            calls: tables.counters.ended_threads_calls,
            time_ns: tables.counters.ended_threads_time_ns,
            open_ns: tables.counters.open_at_end_ns,
            wall_ns: tables.counters.ended_threads_span_ns,
        };
        tables.ended_threads.iter().map(Self::ended).fold(all, Self::without)
    }

    fn without(self, one: Self) -> Self {
        Self {
            threads: self.threads.saturating_sub(one.threads),
            calls: self.calls.saturating_sub(one.calls),
            time_ns: self.time_ns.saturating_sub(one.time_ns),
            open_ns: self.open_ns.saturating_sub(one.open_ns),
            wall_ns: self.wall_ns.saturating_sub(one.wall_ns),
        }
    }

    /// ns.
    fn mpi_ns(&self, self_cost_ns: u64) -> u64 {
        self.time_ns.saturating_sub(self_cost_ns).saturating_add(self.open_ns)
    }

    fn profile(&self, self_cost_ns: u64) -> Option<OtherThreads> {
        let sums = OtherThreads {
            threads: self.threads,
            calls: self.calls,
            mpi_ns: self.mpi_ns(self_cost_ns),
            wall_ns: self.wall_ns,
        };
        // While a thread ends, what it has done may be known before it is known to have ended.
        (*self != Self::default()).then_some(sums)
    }
}
