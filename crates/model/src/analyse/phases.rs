//! What was called in which phase.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use mpiprobe_common::phase::NAME_LENGTH;
use mpiprobe_discover::printable;
use mpiprobe_observe::PhaseSnapshot;

use super::{
    SelfCost,
    aggregate::{Base, ByFunction, Calls},
};
use crate::{FunctionRow, PhaseProfile, RankPhase, SaturatingSum as _, Spread};

/// One phase of one rank.
#[derive(Debug)]
pub(super) struct OfRank {
    name: String,
    level: i32,
    opened: u64,
    is_open: bool,
    wall_ns: u64,
    functions: ByFunction,
}

impl OfRank {
    pub(super) fn of(snapshot: &PhaseSnapshot, until_ns: u64, self_cost: SelfCost) -> Self {
        let phase = &snapshot.phase;
        let is_open = phase.open > 0;
        let since_opened = if is_open { until_ns.saturating_sub(phase.since_ns) } else { 0 };
        let calls = |stats: &Arc<_>| Calls::completed(Arc::clone(stats), self_cost);
        Self {
            name: name(&phase.key.name, phase.key.level),
            level: phase.key.level,
            opened: phase.opened,
            is_open,
            wall_ns: phase.time_ns.saturating_add(since_opened),
            functions: snapshot.functions.iter().map(|(function, stats)| (*function, calls(stats))).collect(),
        }
    }

    pub(super) fn profile(&self, traffic: bool) -> RankPhase {
        RankPhase {
            name: self.name.clone(),
            level: self.level,
            opened: self.opened,
            is_open: self.is_open,
            wall_ns: self.wall_ns,
            calls: calls(&self.functions),
            mpi_ns: time_ns(&self.functions),
            functions: rows(&self.functions, self.wall_ns, traffic),
        }
    }
}

/// The phases of all ranks: those of one name and level are one. Most time in MPI first.
pub(super) fn over_ranks<'a>(phases: impl Iterator<Item = &'a OfRank>, traffic: bool) -> Vec<PhaseProfile> {
    let mut by_name: BTreeMap<(&str, i32), Vec<&OfRank>> = BTreeMap::new();
    for phase in phases {
        by_name.entry((&phase.name, phase.level)).or_default().push(phase);
    }
    let mut profiles: Vec<PhaseProfile> = by_name.values().filter_map(|of_ranks| profile(of_ranks, traffic)).collect();
    profiles.sort_by_key(|phase| Reverse((phase.mpi_ns, phase.calls)));
    profiles
}

fn profile(of_ranks: &[&OfRank], traffic: bool) -> Option<PhaseProfile> {
    let first = of_ranks.first()?;
    let mut all = ByFunction::new();
    for (&function, calls) in of_ranks.iter().flat_map(|phase| &phase.functions) {
        all.entry(function).or_default().add(calls);
    }
    let spread = |value: fn(&OfRank) -> u64| Spread::of(of_ranks.iter().map(|phase| value(phase) as f64));
    let wall_ns = of_ranks.iter().map(|phase| phase.wall_ns).fold(0, u64::saturating_add);
    Some(PhaseProfile {
        name: first.name.clone(),
        level: first.level,
        ranks: of_ranks.len(),
        opened: of_ranks.iter().map(|phase| phase.opened).saturating_sum(),
        calls: calls(&all),
        mpi_ns: time_ns(&all),
        wall_over_ranks_ns: spread(|phase| phase.wall_ns)?,
        mpi_over_ranks_ns: spread(|phase| time_ns(&phase.functions))?,
        functions: rows(&all, wall_ns, traffic),
    })
}

fn rows(functions: &ByFunction, wall_ns: u64, traffic: bool) -> Vec<FunctionRow> {
    let base = Base { thread_wall_ns: wall_ns, mpi_ns: time_ns(functions), traffic };
    let mut rows: Vec<_> =
        functions.iter().map(|(&function, calls)| calls.row(function, base, calls.rates(wall_ns))).collect();
    rows.sort_by_key(|row| Reverse((row.time_ns, row.calls)));
    rows
}

fn calls(functions: &ByFunction) -> u64 {
    functions.values().map(|calls| calls.stats.calls).saturating_sum()
}

fn time_ns(functions: &ByFunction) -> u64 {
    functions.values().map(Calls::time_ns).fold(0, u64::saturating_add)
}

fn name(bytes: &[u8; NAME_LENGTH], level: i32) -> String {
    match bytes.split(|&byte| byte == 0).next() {
        Some(name) if !name.is_empty() => printable(name),
        _ => format!("phase {level}"),
    }
}

#[cfg(test)]
mod tests {
    use mpiprobe_common::{FunctionStats, Phase, PhaseKey};

    use super::*;

    fn phase(text: &str, open: u64, calls: u64) -> PhaseSnapshot {
        let mut name = [0; NAME_LENGTH];
        name[..text.len()].copy_from_slice(text.as_bytes());
        let key = PhaseKey { process: 1, level: 7, name };
        let stats = FunctionStats { calls, time_ns: 10 * calls, ..FunctionStats::ZERO };
        PhaseSnapshot {
            phase: Phase { key, opened: 2, open, since_ns: 100, time_ns: 50 },
            functions: vec![(0, Arc::new(stats))],
        }
    }

    #[test]
    fn phases_of_one_name_are_one_over_ranks() {
        let phases = [phase("solve", 0, 3), phase("", 0, 1), phase("solve", 1, 4)]
            .map(|one| OfRank::of(&one, 130, SelfCost(None)));
        let all = over_ranks(phases.iter(), false);
        let found: Vec<_> =
            all.iter().map(|one| (one.name.as_str(), one.ranks, one.opened, one.calls, one.mpi_ns)).collect();
        assert_eq!(found, [("solve", 2, 4, 7, 70), ("phase 7", 1, 2, 1, 10)]);
        assert_eq!((all[0].wall_over_ranks_ns.min, all[0].wall_over_ranks_ns.max), (50.0, 80.0));
    }

    #[test]
    fn times_are_without_the_own_cost() {
        let phases = [("solve", 3), ("solve", 4)].map(|(name, calls)| {
            let cost = if calls == 3 { SelfCost(Some(4.0)) } else { SelfCost(Some(50.0)) };
            OfRank::of(&phase(name, 0, calls), 130, cost)
        });
        let all = over_ranks(phases.iter(), false);
        assert_eq!((all[0].mpi_ns, all[0].functions[0].time_ns, all[0].functions[0].self_cost_ns), (18, 18, 12 + 40));
    }

    #[test]
    fn a_name_cannot_steer_a_terminal() {
        assert!(!OfRank::of(&phase("\x1b[2J", 0, 1), 0, SelfCost(None)).profile(false).name.contains('\x1b'));
    }
}
