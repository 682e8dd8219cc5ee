//! The whole profile.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use mpiprobe_common::InnerStats;
use mpiprobe_functions::Group;
use mpiprobe_observe::Snapshot;

use super::{
    Observed, Session,
    aggregate::{Base, ByFunction, OfGroup, groups, percent},
    change::all_together,
    names, phases,
    rank::Rank,
    tools::Layers,
    traffic::Traffic,
    whole,
};
use crate::{
    Efficiency, FunctionProfile, GroupProfile, InnerCalls, JobInfo, Losses, OwnCost, Profile, RankProfile, Rates,
    SCHEMA, SaturatingSum as _, Spread, Totals,
};

/// Makes the profile of what `snapshot` says of `observed`.
///
/// `name_site` gives the place in the source of a return address in a process (given by its slot), where that is known.
pub fn profile(
    session: &Session,
    observed: &[Observed],
    snapshot: &Snapshot,
    name_site: &mut dyn FnMut(u32, u64) -> Option<String>,
) -> Profile {
    let ranks = ranks(session, observed, snapshot);
    let base = Base {
        thread_wall_ns: ranks.iter().map(|rank| rank.base().thread_wall_ns).fold(0, u64::saturating_add),
        mpi_ns: ranks.iter().map(|rank| rank.mpi_ns).fold(0, u64::saturating_add),
        traffic: session.traffic,
    };
    let losses = losses(&ranks, snapshot);
    let untimed = ranks.iter().map(Rank::untimed_calls).saturating_sum();
    let no_times = (untimed > 0)
        .then(|| format!("{untimed} calls counted at their entry only: their times and bytes are unknown"));
    let known = session.incomplete_because.iter().cloned();
    let lost = losses.incomplete_because(session.engine.table_room());
    let incomplete_because: Vec<String> =
        known.chain(whole::missing(session, &ranks)).chain(lost).chain(no_times).collect();
    let probed = ranks.iter().flat_map(|rank| [rank.calls(), rank.inner_calls(), rank.layers.calls()]).saturating_sum();
    let subtracted = ranks.iter().map(|rank| rank.self_cost_ns).fold(0, u64::saturating_add);
    let wall = ranks.iter().map(|rank| rank.wall_ns).saturating_sum();
    let traffic = session.traffic.then(|| Traffic::of(session, ranks.iter().map(Rank::process).collect()));

    let mut layers = Layers::default();
    for rank in &ranks {
        layers.add(&rank.layers);
    }

    Profile {
        schema: SCHEMA,
        mpiprobe_version: env!("CARGO_PKG_VERSION"),
        host: session.host.clone(),
        began: session.began.clone(),
        observed_ns: snapshot.taken_ns.saturating_sub(session.began_ns),
        end: session.end,
        complete: incomplete_because.is_empty(),
        incomplete_because,
        engine: session.engine.clone(),
        jobs: jobs(observed),
        totals: totals(&ranks, base),
        interval: None,
        groups: group_profiles(&ranks, base),
        functions: function_profiles(&ranks, base),
        inner_calls: session.nested.then(|| inner_calls(snapshot)),
        traffic: traffic.as_ref().map(Traffic::profile),
        phases: phases::over_ranks(ranks.iter().flat_map(|rank| &rank.phases), session.traffic),
        layers: layers.profile(),
        ranks: sorted(ranks.iter().map(|rank| rank.profile(traffic.as_ref(), name_site)).collect()).into(),
        unmatched: Vec::new(),
        standstill: Vec::new(),
        wait_states: None,
        losses,
        budget: None,
        own_cost: OwnCost::new(session.per_call_ns, session.inside_ns, probed, wall).subtracted(subtracted),
    }
}

fn ranks<'a>(session: &'a Session, observed: &'a [Observed], snapshot: &'a Snapshot) -> Vec<Rank<'a>> {
    let tables: BTreeMap<u32, _> = snapshot.processes.iter().map(|process| (process.process, process)).collect();
    observed
        .iter()
        .filter_map(|observed| Some(Rank::new(session, observed, tables.get(&observed.process)?, snapshot.taken_ns)))
        .collect()
}

fn losses(ranks: &[Rank<'_>], snapshot: &Snapshot) -> Losses {
    let mut losses = Losses {
        missed_hits: snapshot.missed_hits,
        process_table_full: snapshot.processes_without_slot,
        events_dropped: snapshot.events_dropped,
        ..Losses::default()
    };
    for rank in ranks {
        losses.add(&rank.losses());
    }
    // Of processes that nobody was told of: nothing of them is shown, and nobody else would say so.
    let shown: BTreeSet<u32> = ranks.iter().map(|rank| rank.process().1.process).collect();
    for process in snapshot.processes.iter().filter(|process| !shown.contains(&process.process)) {
        losses.events_dropped += Losses::of(&process.counters.losses).events_dropped;
    }
    losses
}

fn totals(ranks: &[Rank<'_>], base: Base) -> Totals {
    let spread = |value: &dyn Fn(&Rank<'_>) -> f64| Spread::of(ranks.iter().map(value)).unwrap_or_default();
    let known = all_together(ranks.iter().map(Rank::spent)).is_known();
    Totals {
        calls: ranks.iter().map(Rank::calls).saturating_sum(),
        wall_ns: spread(&|rank| rank.wall_ns as f64),
        mpi_ns: spread(&|rank| rank.mpi_ns as f64),
        mpi_percent: Spread::of(ranks.iter().filter_map(|rank| rank.spent().mpi_percent())).unwrap_or_default(),
        mpi_percent_of_all: known.then(|| percent(base.mpi_ns, base.thread_wall_ns)),
        efficiency: Efficiency::of_ranks(ranks.iter().map(Rank::spent)),
    }
}

fn function_profiles(ranks: &[Rank<'_>], base: Base) -> Vec<FunctionProfile> {
    let mut all = ByFunction::new();
    for (&function, calls) in ranks.iter().flat_map(|rank| &rank.functions) {
        all.entry(function).or_default().add(calls);
    }
    let over_ranks = |function: u32, value: &dyn Fn(&super::aggregate::Calls) -> u64| {
        let values = ranks.iter().map(|rank| rank.functions.get(&function).map_or(0.0, |calls| value(calls) as f64));
        Spread::of(values).unwrap_or_default()
    };
    let mut profiles: Vec<FunctionProfile> = all
        .iter()
        .map(|(&function, calls)| FunctionProfile {
            all: calls.row(
                function,
                base,
                rates(ranks, |rank| Some(rank.functions.get(&function)?.rates(rank.wall_ns))),
            ),
            calls_over_ranks: over_ranks(function, &|calls| calls.stats.calls),
            time_over_ranks_ns: over_ranks(function, &|calls| calls.time_ns()),
        })
        .collect();
    profiles.sort_by_key(|profile| Reverse((profile.all.spent_ns(), profile.all.calls)));
    profiles
}

fn group_profiles(ranks: &[Rank<'_>], base: Base) -> Vec<GroupProfile> {
    let per_rank: Vec<_> = ranks.iter().map(|rank| (rank.wall_ns, groups(&rank.functions))).collect();
    let mut all: BTreeMap<Group, OfGroup> = BTreeMap::new();
    for (&group, more) in per_rank.iter().flat_map(|(_, groups)| groups) {
        all.entry(group).or_default().add(more);
    }
    all.into_iter()
        .map(|(group, sum)| {
            let of_ranks = || per_rank.iter().map(|(wall_ns, groups)| (*wall_ns, groups.get(&group)));
            let times = of_ranks().map(|(_, found)| found.map_or(0.0, |found| found.time_ns as f64));
            let rates = of_ranks().filter_map(|(wall_ns, found)| Some(found?.rates(wall_ns))).sum();
            GroupProfile { all: sum.row(group, base, rates), time_over_ranks_ns: Spread::of(times).unwrap_or_default() }
        })
        .collect()
}

fn rates<'a>(ranks: &'a [Rank<'a>], of: impl Fn(&'a Rank<'a>) -> Option<Rates>) -> Rates {
    ranks.iter().filter_map(of).sum()
}

fn inner_calls(snapshot: &Snapshot) -> Vec<InnerCalls> {
    let mut all: BTreeMap<(u16, u16), InnerStats> = BTreeMap::new();
    for (key, stats) in snapshot.processes.iter().flat_map(|process| &process.inner) {
        let sum = all.entry(*key).or_default();
        sum.calls = sum.calls.saturating_add(stats.calls);
        sum.time_ns = sum.time_ns.saturating_add(stats.time_ns);
    }
    let mut inner: Vec<InnerCalls> = all
        .into_iter()
        .map(|((outer, inner), stats)| InnerCalls {
            outer: names::name(outer.into()),
            inner: names::name(inner.into()),
            calls: stats.calls,
            time_ns: stats.time_ns,
        })
        .collect();
    inner.sort_by_key(|calls| Reverse((calls.time_ns, calls.calls)));
    inner
}

fn jobs(observed: &[Observed]) -> Vec<JobInfo> {
    let mut jobs: BTreeMap<&str, JobInfo> = BTreeMap::new();
    for identity in observed.iter().map(|observed| &observed.identity) {
        let Some(id) = &identity.job else { continue };
        let job = jobs.entry(id).or_insert_with(|| JobInfo { id: id.clone(), ranks: 0, size: None });
        job.ranks += 1;
        job.size = job.size.or(identity.size);
    }
    jobs.into_values().collect()
}

/// By job, rank and pid, images of one process in the order of their beginning; unknown ranks last.
fn sorted(mut ranks: Vec<RankProfile>) -> Vec<RankProfile> {
    ranks.sort_by(|a, b| {
        let key = |rank: &RankProfile| (rank.job.clone(), rank.rank.is_none(), rank.rank, rank.pid);
        key(a).cmp(&key(b))
    });
    ranks
}
