//! A profile with those rows only that a filter keeps.

use std::collections::HashMap;

use super::{Facts, Filter, facts};
use crate::{CommunicatorProfile, FunctionRow, Profile, RankProfile, RankTraffic, TrafficProfile};

/// What a filter leaves of a profile.
#[derive(Clone, Debug)]
pub struct Kept {
    pub profile: Profile,
    /// Of each rank that is left: its place among all ranks, and those of its functions that are left among all of its.
    pub places: Vec<(usize, Vec<usize>)>,
}

/// Leaves rows out. Sums (totals, groups, losses) stay those of everything.
pub fn apply(filter: &Filter, profile: &Profile) -> Kept {
    let (ranks, places) = ranks(filter, profile);
    let functions = profile.functions.iter().filter(|row| filter.keeps(&facts::of_all_ranks(row)));
    // Named one by one: a copy of the whole profile would copy all that is left out.
    let profile = Profile {
        schema: profile.schema,
        mpiprobe_version: profile.mpiprobe_version,
        host: profile.host.clone(),
        began: profile.began.clone(),
        observed_ns: profile.observed_ns,
        end: profile.end,
        complete: profile.complete,
        incomplete_because: profile.incomplete_because.clone(),
        engine: profile.engine.clone(),
        jobs: profile.jobs.clone(),
        totals: profile.totals,
        interval: profile.interval,
        groups: profile.groups.clone(),
        functions: functions.cloned().collect(),
        inner_calls: profile.inner_calls.clone(),
        traffic: profile.traffic.as_ref().map(|traffic| self::traffic(filter, traffic)),
        phases: profile.phases.clone(),
        layers: profile.layers.clone(),
        ranks,
        unmatched: profile.unmatched.clone(),
        losses: profile.losses,
        own_cost: profile.own_cost,
    };
    Kept { profile, places }
}

/// By id.
type Communicators<'a> = HashMap<u32, &'a CommunicatorProfile>;
type Ranks = (Vec<RankProfile>, Vec<(usize, Vec<usize>)>);

fn ranks(filter: &Filter, profile: &Profile) -> Ranks {
    let communicators = profile.traffic.iter().flat_map(|traffic| &traffic.communicators);
    let known: Communicators<'_> = communicators.map(|communicator| (communicator.id, communicator)).collect();
    let (mut ranks, mut places) = (Vec::new(), Vec::new());
    for (place, rank) in profile.ranks.iter().enumerate() {
        if !filter.keeps(&facts::rank(rank, &profile.host)) {
            continue;
        }
        let whose = facts::whose(rank, &profile.host);
        let keeps = |&index: &usize| {
            rank.functions.get(index).is_some_and(|row| filter.keeps(&facts::function(whose.clone(), row)))
        };
        let functions: Vec<usize> = (0..rank.functions.len()).filter(keeps).collect();
        let rows = functions.iter().filter_map(|&index| rank.functions.get(index).cloned());
        let traffic = rank.traffic.as_ref().map(|traffic| of_rank(filter, traffic, &whose, &known));
        let kept = with_rows(rank, rows.collect(), traffic);
        ranks.push(kept);
        places.push((place, functions));
    }
    (ranks, places)
}

fn of_rank(filter: &Filter, traffic: &RankTraffic, whose: &Facts<'_>, known: &Communicators<'_>) -> RankTraffic {
    let ids: HashMap<u32, u32> = traffic.communicators.iter().filter_map(|row| Some((row.number, row.id?))).collect();
    let over = |number: Option<u32>| known.get(ids.get(&number?)?).copied();
    let flows = traffic.flows.iter();
    let pending = traffic.pending.iter();
    RankTraffic {
        flows: flows
            .filter(|row| filter.keeps(&facts::flow(whose.clone(), row, over(row.communicator))))
            .cloned()
            .collect(),
        pending: pending
            .filter(|row| filter.keeps(&facts::pending(whose.clone(), row, over(row.communicator))))
            .cloned()
            .collect(),
        communicators: traffic.communicators.clone(),
    }
}

/// The same rank with these rows.
fn with_rows(rank: &RankProfile, functions: Vec<FunctionRow>, traffic: Option<RankTraffic>) -> RankProfile {
    RankProfile {
        rank: rank.rank,
        size: rank.size,
        job: rank.job.clone(),
        host: rank.host.clone(),
        pid: rank.pid,
        executable: rank.executable.clone(),
        state: rank.state,
        stopped: rank.stopped,
        ended_ago_ns: rank.ended_ago_ns,
        wall_ns: rank.wall_ns,
        mpi_ns: rank.mpi_ns,
        self_cost_ns: rank.self_cost_ns,
        thread_wall_ns: rank.thread_wall_ns,
        mpi_percent: rank.mpi_percent,
        unseen_ns: rank.unseen_ns,
        calls: rank.calls,
        untimed_calls: rank.untimed_calls,
        threads_in_mpi: rank.threads_in_mpi,
        inner_calls: rank.inner_calls,
        inner_calls_of_unseen: rank.inner_calls_of_unseen,
        before_first_call_ns: rank.before_first_call_ns,
        functions,
        groups: rank.groups.clone(),
        traffic,
        open_calls: rank.open_calls.clone(),
        threads: rank.threads.clone(),
        other_threads: rank.other_threads,
        phases: rank.phases.clone(),
        layers: rank.layers.clone(),
        calls_while_off: rank.calls_while_off,
        off_ns: rank.off_ns,
        losses: rank.losses,
        recent: rank.recent.clone(),
    }
}

fn traffic(filter: &Filter, traffic: &TrafficProfile) -> TrafficProfile {
    let communicators = traffic.communicators.iter().filter(|row| filter.keeps(&facts::communicator(row)));
    TrafficProfile {
        communicators: communicators.cloned().collect(),
        other_communicators: traffic.other_communicators,
        communicator_sizes: traffic.communicator_sizes.clone(),
        partners: traffic.partners.iter().filter(|row| filter.keeps(&facts::pair(row))).cloned().collect(),
    }
}
