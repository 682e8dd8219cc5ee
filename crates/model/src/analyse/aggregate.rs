//! Statistics of several processes or functions together.

use std::{collections::BTreeMap, sync::Arc};

use mpiprobe_common::FunctionStats;
use mpiprobe_functions::Group;

use super::{SelfCost, flows, names, percentile::Durations};
use crate::{FunctionRow, GroupRow, GroupTraffic, Rates};

/// What rows are shares of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Base {
    /// Wall time of all threads in MPI, ns.
    pub(super) thread_wall_ns: u64,
    /// Time in MPI, ns.
    pub(super) mpi_ns: u64,
    /// Whether it was asked what calls have moved.
    pub(super) traffic: bool,
}

impl Base {
    pub(super) fn wall_percent(self, ns: u64) -> f64 {
        percent(ns, self.thread_wall_ns)
    }

    pub(super) fn mpi_percent(self, ns: u64) -> f64 {
        percent(ns, self.mpi_ns)
    }
}

/// 0 of nothing is 0.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Calls of one function: completed and open.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    pub(super) stats: Arc<FunctionStats>,
    /// Of the time in completed calls, what is mpiprobe's own.
    self_cost_ns: u64,
    /// Not returned yet: their number, and the time in them.
    pub(super) open: u64,
    pub(super) open_ns: u64,
    /// Had begun before the observation did: their number, and the time since then in those that have returned.
    pub(super) began_before: u64,
    pub(super) began_before_ns: u64,
}

impl Default for Calls {
    fn default() -> Self {
        Self::completed(Arc::new(FunctionStats::ZERO), SelfCost::default())
    }
}

impl Calls {
    /// Completed ones of one process.
    pub(super) fn completed(stats: Arc<FunctionStats>, self_cost: SelfCost) -> Self {
        let self_cost_ns = self_cost.within(timed(&stats), stats.time_ns);
        Self { stats, self_cost_ns, open: 0, open_ns: 0, began_before: 0, began_before_ns: 0 }
    }

    /// Completed, without mpiprobe's own cost, ns.
    fn completed_ns(&self) -> u64 {
        self.stats.time_ns.saturating_sub(self.self_cost_ns)
    }

    /// What was taken off, ns.
    pub(super) fn self_cost_ns(&self) -> u64 {
        self.self_cost_ns
    }

    /// Completed, open, and in those that had begun before, ns.
    pub(super) fn time_ns(&self) -> u64 {
        self.completed_ns().saturating_add(self.open_ns).saturating_add(self.began_before_ns)
    }

    pub(super) fn add(&mut self, other: &Self) {
        Arc::make_mut(&mut self.stats).merge(&other.stats);
        self.self_cost_ns = self.self_cost_ns.saturating_add(other.self_cost_ns);
        self.open = self.open.saturating_add(other.open);
        self.open_ns = self.open_ns.saturating_add(other.open_ns);
        self.began_before = self.began_before.saturating_add(other.began_before);
        self.began_before_ns = self.began_before_ns.saturating_add(other.began_before_ns);
    }

    /// How much there was in a second of this wall time (ns).
    pub(super) fn rates(&self, wall_ns: u64) -> Rates {
        Rates::of(self.stats.calls, self.stats.sent.bytes, self.stats.received.bytes, wall_ns)
    }

    pub(super) fn row(&self, function: u32, base: Base, rates: Rates) -> FunctionRow {
        let stats = &self.stats;
        let durations = Durations::of(stats);
        FunctionRow {
            name: names::name(function),
            group: names::group(function).title(),
            calls: stats.calls,
            untimed_calls: stats.untimed,
            estimated: None,
            time_ns: self.completed_ns(),
            self_cost_ns: self.self_cost_ns,
            mean_ns: if timed(stats) == 0 { 0.0 } else { self.completed_ns() as f64 / timed(stats) as f64 },
            min_ns: stats.min_ns().unwrap_or(0),
            max_ns: stats.max_ns,
            p50_ns: durations.p50_ns,
            p90_ns: durations.p90_ns,
            p99_ns: durations.p99_ns,
            durations: durations.octaves,
            rates,
            traffic: base.traffic.then(|| flows::of_function(stats)),
            open_calls: self.open,
            open_ns: self.open_ns,
            began_before: self.began_before,
            began_before_ns: self.began_before_ns,
            wall_percent: base.wall_percent(self.time_ns()),
            mpi_percent: base.mpi_percent(self.time_ns()),
        }
    }
}

/// Calls of which it is known how long they took.
fn timed(stats: &FunctionStats) -> u64 {
    stats.calls.saturating_sub(stats.untimed)
}

/// Function id → calls.
pub(super) type ByFunction = BTreeMap<u32, Calls>;

/// The calls of one group.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfGroup {
    calls: u64,
    untimed_calls: u64,
    /// Completed and open, ns.
    pub(super) time_ns: u64,
    traffic: GroupTraffic,
}

impl OfGroup {
    pub(super) fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.untimed_calls = self.untimed_calls.saturating_add(other.untimed_calls);
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
        let (all, more) = (&mut self.traffic, &other.traffic);
        all.sent_bytes = all.sent_bytes.saturating_add(more.sent_bytes);
        all.received_bytes = all.received_bytes.saturating_add(more.received_bytes);
        all.received_at_most_bytes = all.received_at_most_bytes.saturating_add(more.received_at_most_bytes);
        all.calls_of_unknown_bytes = all.calls_of_unknown_bytes.saturating_add(more.calls_of_unknown_bytes);
    }

    /// How much there was in a second of this wall time (ns).
    pub(super) fn rates(&self, wall_ns: u64) -> Rates {
        Rates::of(self.calls, self.traffic.sent_bytes, self.traffic.received_bytes, wall_ns)
    }

    pub(super) fn row(&self, group: Group, base: Base, rates: Rates) -> GroupRow {
        GroupRow {
            group: group.title(),
            calls: self.calls,
            untimed_calls: self.untimed_calls,
            time_ns: self.time_ns,
            rates,
            traffic: base.traffic.then_some(self.traffic),
            wall_percent: base.wall_percent(self.time_ns),
            mpi_percent: base.mpi_percent(self.time_ns),
        }
    }
}

/// Groups of functions, in the order of reports.
pub(super) fn groups(functions: &ByFunction) -> BTreeMap<Group, OfGroup> {
    let mut groups: BTreeMap<Group, OfGroup> = BTreeMap::new();
    for (&function, calls) in functions {
        let stats = &calls.stats;
        groups.entry(names::group(function)).or_default().add(&OfGroup {
            calls: stats.calls,
            untimed_calls: stats.untimed,
            time_ns: calls.time_ns(),
            traffic: GroupTraffic {
                sent_bytes: stats.sent.bytes,
                received_bytes: stats.received.bytes,
                received_at_most_bytes: stats.received_at_most,
                calls_of_unknown_bytes: stats.unknown,
            },
        });
    }
    groups
}
