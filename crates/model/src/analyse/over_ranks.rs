//! Sums over ranks from the rows of ranks, where the tables that these were made of are not at hand any more: of several files, and of
//! a span of time.

use std::{cmp::Reverse, collections::BTreeMap};

use mpiprobe_functions::Group;

use super::{
    aggregate::{Base, percent},
    change::{Change, all_together},
};
use crate::{
    Efficiency, Estimate, FunctionLayers, FunctionProfile, FunctionRow, FunctionTraffic, GroupProfile, GroupRow,
    GroupTraffic, JobInfo, PhaseProfile, Profile, RankPhase, RankProfile, Rates, SaturatingSum as _, Spread, ToolLayer,
    Totals, Volume,
};

/// Fills in all that follows from the rows of a profile's ranks: jobs, totals, groups, functions, phases and layers.
pub(super) fn sum_up(profile: &mut Profile) {
    let ranks = std::mem::take(&mut profile.ranks);
    let base = Base {
        thread_wall_ns: ranks.iter().map(|rank| rank.thread_wall_ns).saturating_sum(),
        mpi_ns: ranks.iter().map(|rank| rank.mpi_ns).saturating_sum(),
        traffic: profile.traffic.is_some(),
    };
    profile.jobs = jobs(&ranks);
    profile.groups = groups(&ranks, base);
    profile.functions = functions(&ranks, base);
    profile.phases = phases(&ranks);
    profile.layers = layers(ranks.iter().flat_map(|rank| &rank.layers));
    profile.ranks = ranks;
    profile.totals = totals(profile, base);
}

fn totals(profile: &Profile, base: Base) -> Totals {
    let ranks = &profile.ranks;
    let spread = |value: &dyn Fn(&RankProfile) -> f64| Spread::of(ranks.iter().map(value)).unwrap_or_default();
    let spent: Vec<_> = Change::since(None, profile).spent().collect();
    let known = all_together(spent.iter().copied()).is_known();
    Totals {
        calls: ranks.iter().map(|rank| rank.calls).saturating_sum(),
        wall_ns: spread(&|rank| rank.wall_ns as f64),
        mpi_ns: spread(&|rank| rank.mpi_ns as f64),
        mpi_percent: Spread::of(ranks.iter().filter_map(|rank| rank.mpi_percent)).unwrap_or_default(),
        mpi_percent_of_all: known.then(|| percent(base.mpi_ns, base.thread_wall_ns)),
        efficiency: Efficiency::of_ranks(spent).filter(|_| ranks.iter().all(|rank| rank.untimed_calls == 0)),
    }
}

fn jobs(ranks: &[RankProfile]) -> Vec<JobInfo> {
    let mut jobs: BTreeMap<&str, JobInfo> = BTreeMap::new();
    for rank in ranks {
        let Some(id) = &rank.job else { continue };
        let job = jobs.entry(id).or_insert_with(|| JobInfo { id: id.clone(), ranks: 0, size: None });
        job.ranks += 1;
        job.size = job.size.or(rank.size);
    }
    jobs.into_values().collect()
}

fn functions(ranks: &[RankProfile], base: Base) -> Vec<FunctionProfile> {
    let mut rows: BTreeMap<&str, Vec<&FunctionRow>> = BTreeMap::new();
    for row in ranks.iter().flat_map(|rank| &rank.functions) {
        rows.entry(row.name).or_default().push(row);
    }
    // Ranks that have not called it are in the spread, too.
    let over = |rows: &[&FunctionRow], value: fn(&FunctionRow) -> u64| {
        let others = ranks.len().saturating_sub(rows.len());
        let values = rows.iter().map(|row| value(row) as f64).chain(std::iter::repeat_n(0.0, others));
        Spread::of(values).unwrap_or_default()
    };
    let mut functions: Vec<FunctionProfile> = rows
        .values()
        .filter_map(|rows| {
            Some(FunctionProfile {
                all: sum(rows, base)?,
                calls_over_ranks: over(rows, |row| row.calls),
                time_over_ranks_ns: over(rows, total_ns),
            })
        })
        .collect();
    functions.sort_by_key(|function| Reverse((total_ns(&function.all), function.all.calls)));
    functions
}

/// Completed and open, ns.
fn total_ns(row: &FunctionRow) -> u64 {
    row.time_ns.saturating_add(row.open_ns)
}

/// The calls of one function in several ranks; `None` of no rows.
fn sum(rows: &[&FunctionRow], base: Base) -> Option<FunctionRow> {
    let (first, more) = rows.split_first()?;
    let mut all = (*first).clone();
    for row in more {
        add(&mut all, row);
    }
    finish(&mut all, base);
    Some(all)
}

fn add(all: &mut FunctionRow, more: &FunctionRow) {
    match (timed(all), timed(more)) {
        (_, 0) => {}
        (0, _) => {
            (all.min_ns, all.max_ns) = (more.min_ns, more.max_ns);
            (all.p50_ns, all.p90_ns, all.p99_ns) = (more.p50_ns, more.p90_ns, more.p99_ns);
            all.durations.clone_from(&more.durations);
        }
        _ => {
            (all.min_ns, all.max_ns) = (all.min_ns.min(more.min_ns), all.max_ns.max(more.max_ns));
            add_each(&mut all.durations, &more.durations);
            set_percentiles(all);
        }
    }
    all.estimated = Estimate::of_all([&*all, more].into_iter().map(|row| (row.calls, row.estimated)));
    all.calls = all.calls.saturating_add(more.calls);
    all.untimed_calls = all.untimed_calls.saturating_add(more.untimed_calls);
    all.time_ns = all.time_ns.saturating_add(more.time_ns);
    all.self_cost_ns = all.self_cost_ns.saturating_add(more.self_cost_ns);
    all.open_calls = all.open_calls.saturating_add(more.open_calls);
    all.open_ns = all.open_ns.saturating_add(more.open_ns);
    all.rates = [all.rates, more.rates].into_iter().sum();
    if let (Some(all), Some(more)) = (&mut all.traffic, &more.traffic) {
        add_traffic(all, more);
    } else if all.traffic.is_none() {
        all.traffic.clone_from(&more.traffic);
    }
}

/// What follows from the sums.
pub(super) fn finish(row: &mut FunctionRow, base: Base) {
    row.mean_ns = if timed(row) == 0 { 0.0 } else { row.time_ns as f64 / timed(row) as f64 };
    row.wall_percent = base.wall_percent(total_ns(row));
    row.mpi_percent = base.mpi_percent(total_ns(row));
}

pub(super) fn timed(row: &FunctionRow) -> u64 {
    row.calls.saturating_sub(row.untimed_calls)
}

pub(super) fn add_each(all: &mut Vec<u64>, more: &[u64]) {
    all.resize(all.len().max(more.len()), 0);
    for (sum, more) in all.iter_mut().zip(more) {
        *sum = sum.saturating_add(*more);
    }
}

fn add_traffic(all: &mut FunctionTraffic, more: &FunctionTraffic) {
    add_volume(&mut all.sent, &more.sent);
    add_volume(&mut all.received, &more.received);
    all.received_at_most_bytes = all.received_at_most_bytes.saturating_add(more.received_at_most_bytes);
    all.calls_of_unknown_bytes = all.calls_of_unknown_bytes.saturating_add(more.calls_of_unknown_bytes);
}

fn add_volume(all: &mut Volume, more: &Volume) {
    if more.messages == 0 {
        return;
    }
    all.min_bytes = if all.messages == 0 { more.min_bytes } else { all.min_bytes.min(more.min_bytes) };
    all.max_bytes = all.max_bytes.max(more.max_bytes);
    all.messages = all.messages.saturating_add(more.messages);
    all.bytes = all.bytes.saturating_add(more.bytes);
    all.mean_bytes = all.bytes as f64 / all.messages as f64;
    add_each(&mut all.sizes, &more.sizes);
}

/// From a histogram by powers of two, hence known to within a factor of two, and within the extremes.
pub(super) fn set_percentiles(row: &mut FunctionRow) {
    let of = |share| octave_percentile(&row.durations, share).clamp(row.min_ns.min(row.max_ns), row.max_ns);
    (row.p50_ns, row.p90_ns, row.p99_ns) = (of(0.5), of(0.9), of(0.99));
}

/// The middle of the power of two that this share of the calls did not exceed, ns.
fn octave_percentile(durations: &[u64], share: f64) -> u64 {
    let all = durations.iter().copied().saturating_sum();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a number of calls")]
    let wanted = ((all as f64 * share).ceil() as u64).max(1);
    let mut seen = 0_u64;
    for (bits, &calls) in (0_u32..).zip(durations) {
        seen = seen.saturating_add(calls);
        if seen >= wanted {
            let low = lowest(bits);
            return low.saturating_add(low / 2);
        }
    }
    0
}

/// Of the durations of so many bits, the shortest one, ns.
pub(super) fn lowest(bits: u32) -> u64 {
    bits.checked_sub(1).map_or(0, |shift| 1_u64.checked_shl(shift).unwrap_or(u64::MAX))
}

fn groups(ranks: &[RankProfile], base: Base) -> Vec<GroupProfile> {
    let of_group = |group: &'static str| {
        let rows: Vec<Option<&GroupRow>> =
            ranks.iter().map(|rank| rank.groups.iter().find(|row| row.group == group)).collect();
        let present = || rows.iter().copied().flatten();
        let time_ns = present().map(|row| row.time_ns).saturating_sum();
        present().next()?;
        let all = GroupRow {
            group,
            calls: present().map(|row| row.calls).saturating_sum(),
            untimed_calls: present().map(|row| row.untimed_calls).saturating_sum(),
            time_ns,
            rates: present().map(|row| row.rates).sum(),
            traffic: present().filter_map(|row| row.traffic).reduce(together),
            wall_percent: base.wall_percent(time_ns),
            mpi_percent: base.mpi_percent(time_ns),
        };
        let times = rows.iter().map(|row| row.map_or(0.0, |row| row.time_ns as f64));
        Some(GroupProfile { all, time_over_ranks_ns: Spread::of(times).unwrap_or_default() })
    };
    let known = Group::ALL.iter().map(|group| group.title());
    let mut names: Vec<&'static str> = known.collect();
    for row in ranks.iter().flat_map(|rank| &rank.groups) {
        if !names.contains(&row.group) {
            names.push(row.group);
        }
    }
    names.into_iter().filter_map(of_group).collect()
}

fn together(one: GroupTraffic, more: GroupTraffic) -> GroupTraffic {
    GroupTraffic {
        sent_bytes: one.sent_bytes.saturating_add(more.sent_bytes),
        received_bytes: one.received_bytes.saturating_add(more.received_bytes),
        received_at_most_bytes: one.received_at_most_bytes.saturating_add(more.received_at_most_bytes),
        calls_of_unknown_bytes: one.calls_of_unknown_bytes.saturating_add(more.calls_of_unknown_bytes),
    }
}

/// Those of one rank, from its functions.
pub(super) fn groups_of(rank: &RankProfile, base: Base) -> Vec<GroupRow> {
    let mut groups: BTreeMap<&'static str, GroupRow> = BTreeMap::new();
    for row in &rank.functions {
        let traffic = row.traffic.as_ref().map(|traffic| GroupTraffic {
            sent_bytes: traffic.sent.bytes,
            received_bytes: traffic.received.bytes,
            received_at_most_bytes: traffic.received_at_most_bytes,
            calls_of_unknown_bytes: traffic.calls_of_unknown_bytes,
        });
        let empty = GroupRow {
            group: row.group,
            calls: 0,
            untimed_calls: 0,
            time_ns: 0,
            rates: Rates::default(),
            traffic: None,
            wall_percent: 0.0,
            mpi_percent: 0.0,
        };
        let group = groups.entry(row.group).or_insert(empty);
        group.calls = group.calls.saturating_add(row.calls);
        group.untimed_calls = group.untimed_calls.saturating_add(row.untimed_calls);
        group.time_ns = group.time_ns.saturating_add(total_ns(row));
        group.rates = [group.rates, row.rates].into_iter().sum();
        group.traffic = match (group.traffic, traffic) {
            (Some(one), Some(more)) => Some(together(one, more)),
            (one, more) => one.or(more),
        };
        group.wall_percent = base.wall_percent(group.time_ns);
        group.mpi_percent = base.mpi_percent(group.time_ns);
    }
    let place = |row: &GroupRow| Group::ALL.iter().position(|group| group.title() == row.group).unwrap_or(usize::MAX);
    let mut rows: Vec<GroupRow> = groups.into_values().collect();
    rows.sort_by_key(place);
    rows
}

fn phases(ranks: &[RankProfile]) -> Vec<PhaseProfile> {
    let mut by_name: BTreeMap<(&str, i32), Vec<&RankPhase>> = BTreeMap::new();
    for phase in ranks.iter().flat_map(|rank| &rank.phases) {
        by_name.entry((&phase.name, phase.level)).or_default().push(phase);
    }
    let mut profiles: Vec<PhaseProfile> = by_name.values().filter_map(|of_ranks| phase(of_ranks)).collect();
    profiles.sort_by_key(|phase| Reverse((phase.mpi_ns, phase.calls)));
    profiles
}

fn phase(of_ranks: &[&RankPhase]) -> Option<PhaseProfile> {
    let first = of_ranks.first()?;
    let spread = |value: fn(&RankPhase) -> u64| Spread::of(of_ranks.iter().map(|phase| value(phase) as f64));
    let sum_of = |value: fn(&RankPhase) -> u64| of_ranks.iter().map(|phase| value(phase)).saturating_sum();
    let (wall_ns, mpi_ns) = (sum_of(|phase| phase.wall_ns), sum_of(|phase| phase.mpi_ns));
    let base = Base { thread_wall_ns: wall_ns, mpi_ns, traffic: false };
    let mut rows: BTreeMap<&str, Vec<&FunctionRow>> = BTreeMap::new();
    for row in of_ranks.iter().flat_map(|phase| &phase.functions) {
        rows.entry(row.name).or_default().push(row);
    }
    let mut functions: Vec<FunctionRow> = rows.values().filter_map(|rows| sum(rows, base)).collect();
    functions.sort_by_key(|row| Reverse((row.time_ns, row.calls)));
    Some(PhaseProfile {
        name: first.name.clone(),
        level: first.level,
        ranks: of_ranks.len(),
        opened: sum_of(|phase| phase.opened),
        calls: sum_of(|phase| phase.calls),
        mpi_ns,
        wall_over_ranks_ns: spread(|phase| phase.wall_ns)?,
        mpi_over_ranks_ns: spread(|phase| phase.mpi_ns)?,
        functions,
    })
}

fn layers<'a>(rows: impl Iterator<Item = &'a FunctionLayers>) -> Vec<FunctionLayers> {
    let mut all: BTreeMap<&str, FunctionLayers> = BTreeMap::new();
    for row in rows {
        let Some(sum) = all.get_mut(row.function) else {
            all.insert(row.function, row.clone());
            continue;
        };
        sum.calls = sum.calls.saturating_add(row.calls);
        sum.time_ns = sum.time_ns.saturating_add(row.time_ns);
        sum.library.calls = sum.library.calls.saturating_add(row.library.calls);
        sum.library.time_ns = sum.library.time_ns.saturating_add(row.library.time_ns);
        for tool in &row.tools {
            match sum.tools.iter_mut().find(|known| known.tool == tool.tool) {
                Some(known) => add_layer(known, tool),
                None => sum.tools.push(tool.clone()),
            }
        }
    }
    let mut all: Vec<FunctionLayers> = all.into_values().collect();
    for function in &mut all {
        function.library.percent = percent(function.library.time_ns, function.time_ns);
        for tool in &mut function.tools {
            tool.cost_percent = percent(tool.cost_ns, function.time_ns);
        }
        function.tools.sort_by_key(|tool| Reverse(tool.time_ns));
    }
    all.sort_by_key(|function| Reverse((function.time_ns, function.calls)));
    all
}

fn add_layer(all: &mut ToolLayer, more: &ToolLayer) {
    let pairs = [
        (&mut all.calls, more.calls),
        (&mut all.time_ns, more.time_ns),
        (&mut all.passed_on, more.passed_on),
        (&mut all.cost_ns, more.cost_ns),
        (&mut all.own_calls, more.own_calls),
        (&mut all.own_calls_ns, more.own_calls_ns),
        (&mut all.by_tools, more.by_tools),
        (&mut all.by_mpi, more.by_mpi),
        (&mut all.left, more.left),
    ];
    for (sum, more) in pairs {
        *sum = sum.saturating_add(more);
    }
    for own in &more.own {
        match all.own.iter_mut().find(|known| known.function == own.function) {
            Some(known) => {
                known.calls = known.calls.saturating_add(own.calls);
                known.time_ns = known.time_ns.saturating_add(own.time_ns);
            }
            None => all.own.push(own.clone()),
        }
    }
}
