//! What was found, as data.

use std::cmp::Reverse;

use hashbrown::HashMap;
use mpiprobe_model::{
    Activity, CauseRow, ClockQuality, CriticalPath, DelayRow, ImbalanceRow, PathRow, PendingEnds, UnmatchedEnds,
    WaitRow, WaitSite, WaitStates, WaitingThread,
};
use mpiprobe_trace::{Definitions, Losses};

use super::{
    cells::{Cell, NO_CALL, Place},
    log::Log,
    path::PathTime,
    totals::{CauseKey, Counts, RowKey, Totals},
};
use crate::matching::Unmatched;

/// What is on the critical path of one kind.
#[derive(Clone, Copy, Debug)]
struct OnPath {
    ns: u64,
    /// Of a thread what has taken most, by which the kind is shown; of those that took the same the one that comes first in the program,
    /// whichever was found first.
    dearest: (u64, Reverse<Activity>),
}

/// Causes of a wait that are named.
const MOST_CAUSES: usize = 16;

/// All that a replay has found out.
pub(super) struct Outcome<'a> {
    pub(super) definitions: &'a Definitions,
    pub(super) places: &'a [Place],
    pub(super) cells: &'a [Cell],
    pub(super) logs: &'a [Log],
    pub(super) totals: &'a Totals,
    pub(super) path: Option<&'a PathTime>,
    pub(super) counts: Counts,
    pub(super) unmatched: Unmatched,
    pub(super) clocks: ClockQuality,
    /// The index of each place's site; set here.
    pub(super) sites: Vec<u32>,
}

pub(super) fn result(outcome: &mut Outcome<'_>) -> WaitStates {
    let sites = outcome.number_sites();
    let Outcome { definitions, counts, logs, .. } = *outcome;
    let is_call = |cell: u32| matches!(outcome.cells.get(cell as usize), Some(Cell::Calling(_)));
    let unmatched = outcome.unmatched();
    WaitStates {
        from_ns: counts.from_ns.unwrap_or(0),
        until_ns: counts.until_ns,
        is_short: false,
        calls: counts.calls,
        open_calls: counts.open_calls,
        total_ns: logs.iter().map(Log::recorded_ns).sum(),
        mpi_ns: logs.iter().map(|log| log.calling_ns(is_call)).sum(),
        complete: unmatched.is_empty(),
        pending: PendingEnds::default(),
        own_cpu_ns: None,
        threads: threads(definitions),
        call_sites: sites.iter().map(|place| site(place, definitions)).collect(),
        waits: outcome.waits(),
        delays: outcome.delays(),
        critical_path: outcome.path.map(|path| outcome.critical_path(path)),
        unmatched,
        clocks: ClockQuality {
            violations: counts.violations,
            worst_violation_ns: counts.worst_violation_ns,
            unsure_waits: counts.unsure,
            unsure_ns: counts.unsure_ns,
            ..outcome.clocks.clone()
        },
    }
}

fn threads(definitions: &Definitions) -> Vec<WaitingThread> {
    let mut of_process = vec![0u32; definitions.processes.len()];
    for location in &definitions.locations {
        if let Some(count) = of_process.get_mut(location.process.index()) {
            *count += 1;
        }
    }
    let thread = |location: &mpiprobe_trace::Location| {
        let Some(process) = definitions.process(location.process) else { return WaitingThread::default() };
        let host = definitions.nodes.get(process.node.index()).map(|node| node.host.clone());
        WaitingThread {
            job: process.job.clone(),
            rank: process.rank,
            host: host.unwrap_or_default(),
            pid: process.pid,
            tid: location.tid,
            is_one_of_several: of_process.get(location.process.index()).is_some_and(|&count| count > 1),
        }
    };
    definitions.locations.iter().map(thread).collect()
}

fn site(place: &Place, definitions: &Definitions) -> WaitSite {
    let known = place.site.and_then(|id| definitions.call_site(id));
    WaitSite {
        function: place.function.function().name.to_owned(),
        site: known.map(|site| site.text.clone()),
        file: known.and_then(|site| site.at.file.clone()),
        line: known.and_then(|site| site.at.line),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times are positive and saturate")]
fn rounded(ns: f64) -> u64 {
    ns.round() as u64
}

/// The rank of each place, by where it is in the program.
pub(super) fn ranks(places: &[Place], definitions: &Definitions) -> Vec<u32> {
    let at = |place: &Place| {
        let site = place.site.and_then(|id| definitions.call_site(id));
        site.map(|site| (site.module.as_str(), site.offset))
    };
    let mut order: Vec<(usize, &Place)> = places.iter().enumerate().collect();
    order.sort_by(|(_, one), (_, other)| {
        at(one).cmp(&at(other)).then((one.site, one.function).cmp(&(other.site, other.function)))
    });
    let mut ranks = vec![0; places.len()];
    for (rank, (index, _)) in (0..).zip(order) {
        if let Some(place) = ranks.get_mut(index) {
            *place = rank;
        }
    }
    ranks
}

impl Outcome<'_> {
    /// Places in an order of their own, for they have their numbers from whichever thread came first.
    fn number_sites(&mut self) -> Vec<Place> {
        self.sites = ranks(self.places, self.definitions);
        let mut sites: Vec<_> = self.sites.iter().zip(self.places).collect();
        sites.sort_unstable_by_key(|(rank, _)| **rank);
        sites.into_iter().map(|(_, place)| *place).collect()
    }

    fn site(&self, place: u32) -> Option<u32> {
        self.sites.get(place as usize).copied()
    }

    fn activity(&self, cell: u32) -> Option<Activity> {
        Some(match *self.cells.get(cell as usize)? {
            Cell::Calling(place) => Activity::Calling { site: self.site(place)? },
            Cell::Computing { after, before } => {
                Activity::Computing { after: self.site(after), before: self.site(before) }
            }
            Cell::NotRecorded { after, before } => {
                Activity::NotRecorded { after: self.site(after), before: self.site(before) }
            }
        })
    }

    fn waits(&self) -> Vec<WaitRow> {
        let mut causes: HashMap<RowKey, Vec<(CauseKey, f64)>> = HashMap::new();
        for (row, cause, ns) in self.totals.links() {
            causes.entry(row).or_default().push((cause, ns));
        }
        let rows = self.totals.rows.iter().filter(|(_, sum)| sum.count > 0).map(|(key, sum)| {
            let mut of_row = causes.remove(key).unwrap_or_default();
            let told = |cause: &CauseKey| self.told(*cause);
            of_row.sort_by(|(one, less), (other, more)| more.total_cmp(less).then_with(|| told(one).cmp(&told(other))));
            let explained: f64 = of_row.iter().map(|(_, ns)| ns).sum();
            let mut caused_by: Vec<CauseRow> =
                of_row.iter().take(MOST_CAUSES).filter_map(|&(cause, ns)| self.cause(cause, rounded(ns))).collect();
            let others: f64 = of_row.iter().skip(MOST_CAUSES).map(|(_, ns)| ns).sum();
            if others >= 0.5 {
                caused_by.push(CauseRow { thread: None, activity: None, ns: rounded(others) });
            }
            WaitRow {
                kind: key.kind,
                thread: key.location,
                site: self.site(key.place).unwrap_or(NO_CALL),
                count: sum.count,
                ns: sum.ns,
                longest_ns: sum.longest_ns,
                longest_at_ns: sum.longest_at_ns,
                wrong_order_same_source_ns: sum.wrong_order_same_ns,
                wrong_order_other_source_ns: sum.wrong_order_other_ns,
                early_fence_ns: sum.early_fence_ns,
                late_complete_ns: sum.late_complete_ns,
                caused_by,
                unexplained_ns: sum.ns.saturating_sub(rounded(explained)),
            }
        });
        let mut rows: Vec<WaitRow> = rows.collect();
        rows.sort_by_key(|row| (u64::MAX - row.ns, row.thread, row.kind, row.site));
        rows
    }

    /// Who has caused something, and what it did.
    fn told(&self, cause: CauseKey) -> (Option<u32>, Option<Activity>) {
        match cause {
            CauseKey::Doing(thread, cell) => (Some(thread), self.activity(cell)),
            CauseKey::Waiting(thread, place) => (Some(thread), self.site(place).map(|site| Activity::Waiting { site })),
            CauseKey::Others => (None, None),
        }
    }

    fn cause(&self, cause: CauseKey, ns: u64) -> Option<CauseRow> {
        let (thread, activity) = self.told(cause);
        (ns > 0).then_some(CauseRow { thread, activity, ns })
    }

    fn delays(&self) -> Vec<DelayRow> {
        let rows = self.totals.delays.iter().filter_map(|(&(thread, cell), &(direct_ns, indirect_ns))| {
            Some(DelayRow {
                thread,
                activity: self.activity(cell)?,
                direct_ns: direct_ns.ns(),
                indirect_ns: indirect_ns.ns(),
            })
        });
        let mut rows: Vec<DelayRow> = rows.filter(|row| row.direct_ns + row.indirect_ns > 0.0).collect();
        let cost = |row: &DelayRow| row.direct_ns + row.indirect_ns;
        rows.sort_by(|one, other| {
            cost(other).total_cmp(&cost(one)).then((one.thread, one.activity).cmp(&(other.thread, other.activity)))
        });
        rows
    }

    fn critical_path(&self, path: &PathTime) -> CriticalPath {
        let parts = path.iter().filter_map(|(&(thread, cell), &ns)| {
            Some(PathRow { thread, activity: self.activity(cell)?, ns }).filter(|row| row.ns > 0)
        });
        let mut parts: Vec<PathRow> = parts.collect();
        parts.sort_by_key(|row| (u64::MAX - row.ns, row.thread, row.activity));
        CriticalPath { length_ns: parts.iter().map(|row| row.ns).sum(), imbalance: self.imbalance(path), parts }
    }

    /// By activity; computing by the call that it comes after, for ranks get from there to different ones.
    fn imbalance(&self, path: &PathTime) -> Vec<ImbalanceRow> {
        let kind = |cell: u32| match self.cells.get(cell as usize) {
            Some(&Cell::Computing { after, .. }) => Some((0, after)),
            Some(&Cell::Calling(place)) => Some((1, place)),
            // What it was, nobody knows.
            Some(Cell::NotRecorded { .. }) | None => None,
        };
        let mut on_path: HashMap<(u8, u32), OnPath> = HashMap::new();
        for (&(_, cell), &ns) in path {
            let Some(activity) = self.activity(cell).filter(|_| ns > 0) else { continue };
            let dearest = (ns, Reverse(activity));
            let Some(kind) = kind(cell) else { continue };
            let row = on_path.entry(kind).or_insert(OnPath { ns: 0, dearest });
            row.ns += ns;
            row.dearest = dearest.max(row.dearest);
        }
        let length: u64 = on_path.values().map(|row| row.ns).sum();
        let active: Vec<&Log> = self.logs.iter().filter(|log| log.is_begun()).collect();
        let mut mean: HashMap<(u8, u32), f64> = HashMap::new();
        let mut impact: HashMap<(u8, u32), f64> = HashMap::new();
        for log in &active {
            let mut own: HashMap<(u8, u32), u64> = HashMap::new();
            for (cell, ns) in log.working() {
                if let Some(kind) = kind(cell) {
                    *own.entry(kind).or_insert(0) += ns;
                }
            }
            for (&kind, &ns) in &own {
                *mean.entry(kind).or_insert(0.0) += ns as f64 / active.len() as f64;
            }
            let headroom = |kind: &(u8, u32), ns: u64| ns.saturating_sub(own.get(kind).copied().unwrap_or(0));
            let room: u64 = on_path.iter().map(|(kind, row)| headroom(kind, row.ns)).sum();
            let free = length.saturating_sub(own.values().sum()) as f64;
            if room > 0 {
                for (kind, row) in &on_path {
                    *impact.entry(*kind).or_insert(0.0) += headroom(kind, row.ns) as f64 * free / room as f64;
                }
            }
        }
        let rows = on_path.iter().map(|(kind, &OnPath { ns: path_ns, dearest: (_, Reverse(activity)) })| {
            let mean_ns = mean.get(kind).copied().unwrap_or(0.0);
            ImbalanceRow {
                activity,
                path_ns,
                mean_ns,
                imbalance_ns: (path_ns as f64 - mean_ns).max(0.0),
                impact_ns: impact.get(kind).copied().unwrap_or(0.0),
            }
        });
        let mut rows: Vec<ImbalanceRow> = rows.collect();
        rows.sort_by(|one, other| {
            other.imbalance_ns.total_cmp(&one.imbalance_ns).then(one.activity.cmp(&other.activity))
        });
        rows
    }

    fn unmatched(&self) -> UnmatchedEnds {
        let ends = self.unmatched;
        let losses = self.definitions.locations.iter().map(|location| location.losses);
        let sum = |of: fn(&Losses) -> u64| losses.clone().map(|losses| of(&losses)).fold(0, u64::saturating_add);
        UnmatchedEnds {
            matched_messages: ends.matched,
            sends: ends.sends,
            receives: ends.receives,
            outside: ends.outside,
            of_unknown_source: ends.of_unknown_source,
            of_unknown_request: ends.of_unknown_request,
            completed_unseen: ends.completed_unseen,
            unsure: ends.unsure,
            contradictions: ends.contradictions,
            matched_collective_calls: ends.collective,
            of_partial_groups: ends.of_partial_groups,
            incomplete_collective_calls: ends.incomplete,
            epochs: ends.epochs,
            unknown_neighbours: self.counts.unknown_neighbours,
            lost_calls: sum(Losses::missing),
            left_out_calls: sum(|losses| losses.left_out.calls()),
            between_clocks: self.counts.between_clocks,
            causes_cut_off: self.counts.cut_off,
        }
    }
}
