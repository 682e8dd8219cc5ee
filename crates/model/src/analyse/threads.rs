//! The threads of a rank: those that live, those that have ended, and the sums of those that are not remembered one by one.

use mpiprobe_common::EndedThread;
use mpiprobe_observe::{ProcessSnapshot, ThreadSnapshot};

use super::self_cost::shares;
use crate::{OtherThreads, ThreadLife, ThreadProfile};

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

#[cfg(test)]
mod tests {
    use mpiprobe_common::{ProcessCounters, ThreadState, thread::OpenCall};

    use super::*;

    fn process(
        threads: Vec<ThreadSnapshot>,
        ended_threads: Vec<EndedThread>,
        counters: &ProcessCounters,
    ) -> ProcessSnapshot {
        ProcessSnapshot { counters: *counters, threads, ended_threads, ..ProcessSnapshot::empty(1) }
    }

    /// One thread that is in a call, two with the same id that have ended, one after the other, and two that are in the sums only.
    fn several() -> ProcessSnapshot {
        let open = OpenCall { function_plus_1: 1, started_ns: 900, ..OpenCall::default() };
        let state = ThreadState { id: 7, calls: 4, time_ns: 400, first_entry_ns: 100, open, ..ThreadState::ZERO };
        let ended = |ended_ns, open_ns| EndedThread {
            ended_ns,
            tid: 8,
            left: 0,
            calls: 2,
            time_ns: 50,
            first_entry_ns: 200,
            open_ns,
            ..EndedThread::default()
        };
        let sums = ProcessCounters {
            ended_threads: 4,
            ended_threads_calls: 6,
            ended_threads_time_ns: 110,
            ended_threads_span_ns: 350,
            open_at_end: 2,
            open_at_end_ns: 35,
            ..ProcessCounters::ZERO
        };
        let living = ThreadSnapshot { tid: 7, slot: 0, state };
        process(vec![living], vec![ended(300, 0), ended(400, 30)], &sums)
    }

    #[test]
    fn those_that_live_and_those_that_have_ended_and_the_rest_are_all() {
        let threads = Threads::of(&several(), 0, 1000);
        let row = |tid, state, calls, mpi_ns, wall_ns| ThreadProfile { tid, state, calls, mpi_ns, wall_ns };
        let expected = [
            row(7, ThreadLife::Running, 4, 500, 900),
            row(8, ThreadLife::Ended, 2, 50, 100),
            row(8, ThreadLife::Ended, 2, 80, 200),
        ];
        assert_eq!(threads.rows, expected);
        assert_eq!(threads.others, Some(OtherThreads { threads: 2, calls: 2, mpi_ns: 15, wall_ns: 50 }));
        assert_eq!(threads.mpi_ns(), 645);
    }

    #[test]
    fn what_is_taken_off_all_is_taken_off_them() {
        for cost_ns in 0..=510 {
            assert_eq!(Threads::of(&several(), cost_ns, 1000).mpi_ns(), 645 - cost_ns);
        }
        // Calls that have not returned have no cost yet.
        assert_eq!(Threads::of(&several(), u64::MAX, 1000).mpi_ns(), 135);
    }

    #[test]
    fn records_that_contradict_the_sums_are_no_reason_to_panic() {
        let huge = EndedThread {
            ended_ns: u64::MAX,
            tid: u32::MAX,
            left: 0,
            calls: u64::MAX,
            time_ns: u64::MAX,
            first_entry_ns: 1,
            open_ns: u64::MAX,
            ..EndedThread::default()
        };
        let threads = Threads::of(&process(Vec::new(), vec![huge; 3], &ProcessCounters::ZERO), u64::MAX, 5);
        assert_eq!((threads.rows.len(), threads.others, threads.mpi_ns()), (3, None, u64::MAX));
    }
}
