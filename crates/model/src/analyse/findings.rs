//! What is probably wrong with a job: looked for one thing after the other.

use std::{cmp::Reverse, collections::HashMap};

use mpiprobe_discover::Failure;
use mpiprobe_functions::{Group, Role, by_name, polls};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Cause, Change, Waiting, causes, is_unusually_long, longest, waiting};
use crate::{
    Doing, Finding, Found, FunctionProfile, OpenCallInfo, PartnerAtPlace, Profile, RankAtPlace, RankProfile, RankState,
    SaturatingSum as _, Standstill, TimeAtPlace, names::Name, profile::COMPLETED_UNSEEN,
};

/// How long others have waited for a rank until that is told of, ns: ranks wait for each other all the time.
const LONG_WAIT_NS: u64 = 10_000_000_000;
const FINALIZE: &str = "MPI_Finalize";
/// Ratios mean nothing of a shorter observation, ns.
const SHORTEST_NS: u64 = 1_000_000_000;
/// Share of all time in MPI from which a job is mostly in it, per cent.
const MOSTLY: f64 = 50.0;
/// A load balance below that is no longer good.
const LEAST_BALANCE: f64 = 0.8;
/// Share of a rank's time from which one place has much of it, per cent.
const MUCH_AT_PLACE: f64 = 20.0;
/// Places that are told of.
const PLACES: usize = 3;
/// Share of the time at a place from which one partner has most of it.
const MOST_WITH_PARTNER: f64 = 60.0;
/// Questions a second, of all ranks together, and their share of the wall time of all ranks, per cent, which are polling.
const POLLS_PER_S: f64 = 10_000.0;
const POLLING_PERCENT: f64 = 10.0;
/// Messages a second, of all ranks together, and their mean size (bytes), far below what hides the cost of a message.
const MANY_MESSAGES_PER_S: f64 = 10_000.0;
const TINY_MESSAGE: u64 = 256;
/// Calls, of all ranks together, and their mean size (bytes), which make tiny I/O.
const MANY_IO_CALLS: u64 = 1000;
const TINY_IO: u64 = 4096;
/// Share of the job's time from which observation costs much, per cent.
const MUCH_OWN_COST: f64 = 5.0;

/// All that is found in a profile: what is grave, and then what costs most.
pub fn findings(profile: &Profile) -> Vec<Finding> {
    let one = [
        incomplete,
        requests_never_completed,
        unusually_long_call,
        imbalance,
        mostly_in_mpi,
        polling,
        tiny_messages,
        tiny_io,
        high_own_cost,
    ];
    // What ranks waited for when they were ended is mostly the one that had failed, unless somebody has ended them because they waited.
    let is_from_outside =
        |one: &Finding| matches!(&one.what, Found::Failed { failure, .. } if failure.is_from_outside());
    let ended = aborted(profile).or_else(|| failed(profile));
    let (after, before): (Vec<_>, Vec<_>) = ended.into_iter().partition(is_from_outside);
    let others = one.iter().filter_map(|find| find(profile)).chain(time_at_places(profile));
    let mut found: Vec<Finding> = before.into_iter().chain(stuck(profile)).chain(after).chain(others).collect();
    // Of a job that does not go on, nobody wants to know how it could be faster.
    if found.iter().any(|finding| finding.what.hangs()) {
        found.retain(|finding| !matches!(finding.what, Found::MostlyInMpi { .. } | Found::Imbalance { .. }));
    }
    found.sort_by_key(|finding| {
        (!finding.what.is_grave(), (!finding.what.is_grave()).then_some(Reverse(finding.cost_ns)))
    });
    found
}

/// What is printed as JSON: the profile, and what is found in it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProfileOutput<'a> {
    #[serde(flatten)]
    profile: &'a Profile,
    /// What is probably wrong: what is grave, and then what costs most. Of all rows, shown or not.
    findings: Vec<Finding>,
}

impl<'a> ProfileOutput<'a> {
    /// `shown`: of `all`, what a filter leaves.
    pub fn new(shown: &'a Profile, all: &Profile) -> Self {
        Self { profile: shown, findings: findings(all) }
    }
}

/// What is no matter of time, or of a time that nobody knows.
fn without_cost(what: Found) -> Finding {
    costing(None, what)
}

fn costing(cost_ns: Option<u64>, what: Found) -> Finding {
    Finding { cost_ns, stacks: None, what }
}

/// Why ranks do not go on: as stacks have told, with places, unless calls alone tell more.
fn stuck(profile: &Profile) -> Vec<Finding> {
    let by_calls = stuck_by_calls(profile);
    let is_more = by_calls.iter().any(Found::is_final) && !profile.standstill.iter().any(|one| one.what.is_final());
    if profile.standstill.is_empty() || is_more {
        return by_calls.into_iter().map(without_cost).collect();
    }
    let told = |one: &Standstill| Finding { stacks: Some(one.text.clone()), ..without_cost(one.what.clone()) };
    profile.standstill.iter().map(told).collect()
}

/// Whether it is told why ranks never go on, by stacks or by calls alone.
pub fn is_deadlocked(profile: &Profile) -> bool {
    profile.standstill.iter().any(|one| one.what.is_final()) || stuck_by_calls(profile).iter().any(Found::is_final)
}

fn stuck_by_calls(profile: &Profile) -> Vec<Found> {
    let waiting = waiting(profile);
    let (mut circles, mut knots) = (Vec::new(), Vec::new());
    let mut others = Vec::new();
    for cause in causes(profile, &waiting) {
        match found(profile, &waiting, &cause) {
            Found::Deadlock { circles: more, knots: more_knots } => {
                circles.extend(more);
                knots.extend(more_knots);
            }
            Found::WaitedFor { for_ns, .. } if for_ns < LONG_WAIT_NS => {}
            other => others.push(other),
        }
    }
    let deadlock = !circles.is_empty() || !knots.is_empty();
    let deadlock = deadlock.then_some(Found::Deadlock { circles, knots });
    deadlock.into_iter().chain(others.into_iter().take(PLACES)).collect()
}

/// What `waiting` says of the same profile, and `cause` follows from that, as it is told.
pub fn found(profile: &Profile, waiting: &Waiting, cause: &Cause) -> Found {
    let number = |place: &usize| profile.ranks.get(*place).and_then(|rank| rank.rank);
    let numbers = |places: &[usize]| -> Vec<Option<u32>> { places.iter().map(number).collect() };
    match cause {
        Cause::Circle { ranks, .. } => Found::Deadlock { circles: vec![numbers(ranks)], knots: Vec::new() },
        Cause::Knot { ranks, .. } => Found::Deadlock { circles: Vec::new(), knots: vec![numbers(ranks)] },
        Cause::Roots { ranks } => {
            let call = ranks.first().and_then(|rank| longest(profile.ranks.get(*rank)?));
            let function = call.map_or("a collective call", |call| call.function);
            Found::DifferentRoots { ranks: numbers(ranks), function }
        }
        Cause::WaitedFor { rank, others } => {
            let own = waiting.waits.iter().filter(|wait| others.contains(&wait.rank));
            let for_ns = own.map(|wait| wait.open_ns).min().unwrap_or(0);
            let does = profile.ranks.get(*rank).map_or(Doing::Computes, does);
            Found::WaitedFor { rank: number(rank), ranks: others.len(), for_ns, does }
        }
    }
}

fn does(rank: &RankProfile) -> Doing {
    match (rank.state, longest(rank)) {
        (RankState::Ended | RankState::Execed, _) => Doing::Ended,
        (RankState::Running, _) if rank.stopped => Doing::Stopped,
        (RankState::Running, Some(call)) => Doing::Call { call: Box::new(call.clone()) },
        (RankState::Running, None) => Doing::Computes,
    }
}

/// Whoever has called it has ended the others, too.
fn aborted(profile: &Profile) -> Option<Finding> {
    let calls = profile.ranks.iter().flat_map(|rank| rank.open_calls.iter().map(move |call| (rank, call)));
    let (rank, call) = calls.into_iter().find(|(_, call)| call.function == "MPI_Abort")?;
    let code = call.arguments.as_ref().and_then(|arguments| arguments.error_code);
    Some(without_cost(Found::Aborted { rank: rank.rank, code, site: call.site.clone() }))
}

/// The rank that was the first one to end without success, and with what. Of those that were found ended at one moment it is one that was not
/// ended by somebody; `None`: nobody knows which of several.
pub fn first_failure(ranks: &[RankProfile]) -> Option<(Option<&RankProfile>, Failure)> {
    let failed = || ranks.iter().filter_map(|rank| Some((rank, rank.failure?)));
    let order = |(rank, failure): &(&RankProfile, Failure)| (rank.ended_ago_ns, !failure.is_from_outside());
    let (first, failure) = failed().max_by_key(|one| (order(one), Reverse(one.0.rank)))?;
    let is_only = failed().filter(|one| order(one) == order(&(first, failure))).count() == 1;
    Some((is_only.then_some(first), failure))
}

/// What the others have ended with is mostly what a launcher does then.
fn failed(profile: &Profile) -> Option<Finding> {
    let ranks = profile.ranks.iter().filter(|rank| rank.failure.is_some()).count();
    let (first, failure) = first_failure(&profile.ranks)?;
    let call = first.and_then(|first| first.open_calls.iter().find(|call| call.ended_inside));
    let (rank, call) = (first.and_then(|first| first.rank), call.cloned().map(Box::new));
    Some(without_cost(Found::Failed { ranks, rank, failure, call }))
}

fn incomplete(profile: &Profile) -> Option<Finding> {
    let because = profile.incomplete_because.clone();
    (!profile.complete).then(|| without_cost(Found::Incomplete { because }))
}

fn requests_never_completed(profile: &Profile) -> Option<Finding> {
    // Whoever was ended before had no chance to complete them.
    let has_finished = |rank: &&RankProfile| {
        let completed = rank.functions.iter().any(|row| row.name == FINALIZE && row.calls > 0);
        rank.state == RankState::Ended && (completed || rank.open_calls.iter().any(|call| call.function == FINALIZE))
    };
    if profile.incomplete_because.iter().any(|why| why == COMPLETED_UNSEEN) {
        return None;
    }
    // What was lost may have completed them, and what was not to be counted.
    let is_complete = |rank: &&RankProfile| rank.losses.are_none() && rank.calls_while_off == 0;
    let left = profile.ranks.iter().filter(has_finished).filter(is_complete).filter_map(|rank| {
        let pending = &rank.traffic.as_ref()?.pending;
        Some((rank, pending.first()?, pending.len()))
    });
    let requests = left.clone().map(|(_, _, number)| number).sum();
    let (rank, first, _) = left.clone().next()?;
    let (function, site) = (first.function, first.site.clone());
    Some(without_cost(Found::RequestsNeverCompleted { ranks: left.count(), requests, rank: rank.rank, function, site }))
}

fn unusually_long_call(profile: &Profile) -> Option<Finding> {
    let is_long = |call: &OpenCallInfo| {
        let function = profile.functions.iter().find(|function| function.all.name == call.function);
        !call.ended_inside && is_unusually_long(call, function.map(|function| &function.all))
    };
    let running = profile.ranks.iter().filter(|rank| rank.state == RankState::Running);
    let long: Vec<_> =
        running.filter_map(|rank| Some((rank, rank.open_calls.iter().find(|call| is_long(call))?))).collect();
    let (rank, call) = long.iter().max_by_key(|(_, call)| call.open_ns)?;
    Some(costing(
        Some(long.iter().map(|(_, call)| call.open_ns).saturating_sum()),
        Found::UnusuallyLongCall {
            ranks: long.len(),
            of_ranks: profile.ranks.len(),
            rank: rank.rank,
            call: Box::new((*call).clone()),
        },
    ))
}

fn imbalance(profile: &Profile) -> Option<Finding> {
    let balance = profile.totals.efficiency.filter(|_| profile.observed_ns >= SHORTEST_NS)?.load_balance;
    if balance >= LEAST_BALANCE || profile.ranks.len() < 2 {
        return None;
    }
    let change = Change::since(None, profile);
    let (place, computing_percent) = change.busiest()?;
    Some(costing(
        change.idle_ns(),
        Found::Imbalance {
            load_balance_percent: 100.0 * balance,
            rank: profile.ranks.get(place)?.rank,
            computing_percent,
        },
    ))
}

fn mostly_in_mpi(profile: &Profile) -> Option<Finding> {
    let change = Change::since(None, profile);
    let percent = change.communication_percent()?;
    if percent < MOSTLY || profile.observed_ns < SHORTEST_NS {
        return None;
    }
    let most = profile.functions.iter().filter(|function| !starts_or_ends(function.all.name));
    let function = most.max_by_key(|function| function.all.spent_ns())?.all.name;
    Some(costing(change.communication_ns(), Found::MostlyInMpi { percent, function }))
}

fn polling(profile: &Profile) -> Option<Finding> {
    let asked = profile.functions.iter().filter(|function| polls(function.all.name));
    let most = &asked.max_by_key(|function| function.all.time_ns)?.all;
    let (calls_per_s, percent) = (per_second(profile, most.calls), most.wall_percent);
    (calls_per_s >= POLLS_PER_S && percent >= POLLING_PERCENT)
        .then_some(costing(Some(most.time_ns), Found::Polling { function: most.name, calls_per_s, percent }))
}

fn tiny_messages(profile: &Profile) -> Option<Finding> {
    let sends = of_group(profile, Group::PointToPoint);
    let tiny = sends.filter_map(|function| {
        let sent = &function.all.traffic.as_ref()?.sent;
        let mean_bytes = sent.bytes.checked_div(sent.messages)?;
        (mean_bytes <= TINY_MESSAGE).then(|| (function, per_second(profile, sent.messages), mean_bytes))
    });
    let (function, messages_per_s, mean_bytes) = tiny.max_by(|(_, a, _), (_, b, _)| a.total_cmp(b))?;
    (messages_per_s >= MANY_MESSAGES_PER_S).then_some(costing(
        Some(function.all.time_ns),
        Found::TinyMessages { function: function.all.name, messages_per_s, mean_bytes },
    ))
}

fn tiny_io(profile: &Profile) -> Option<Finding> {
    let tiny = of_group(profile, Group::Io).filter_map(|function| {
        let traffic = function.all.traffic.as_ref()?;
        let volume = if traffic.sent.messages > 0 { &traffic.sent } else { &traffic.received };
        let mean_bytes = volume.bytes.checked_div(volume.messages)?;
        (mean_bytes < TINY_IO && volume.messages >= MANY_IO_CALLS).then_some((function, volume.messages, mean_bytes))
    });
    let (function, calls, mean_bytes) = tiny.max_by_key(|(_, calls, _)| *calls)?;
    Some(costing(Some(function.all.time_ns), Found::TinyIo { function: function.all.name, calls, mean_bytes }))
}

fn high_own_cost(profile: &Profile) -> Option<Finding> {
    let cost = &profile.own_cost;
    let (percent, per_call_ns) = (cost.percent_of_wall, cost.per_call_ns);
    (percent >= MUCH_OWN_COST).then(|| without_cost(Found::HighOwnCost { percent, per_call_ns }))
}

/// The places where ranks spend most of their time; without `--traffic`, the functions.
fn time_at_places(profile: &Profile) -> Vec<Finding> {
    if profile.observed_ns < SHORTEST_NS {
        return Vec::new();
    }
    let mut places: HashMap<(Name, Option<&str>), Vec<RankAtPlace>> = HashMap::new();
    for rank in &profile.ranks {
        for ((function, site), (calls, time_ns)) in by_place(rank) {
            let percent = 100.0 * time_ns as f64 / rank.thread_wall_ns.max(1) as f64;
            // Polling is told of as such, and starting and ending MPI is the system's work.
            if percent >= MUCH_AT_PLACE && !polls(function) && !starts_or_ends(function) {
                let partner = partner(rank, function, site, time_ns);
                places.entry((function, site)).or_default().push(RankAtPlace {
                    rank: rank.rank,
                    calls,
                    time_ns,
                    percent,
                    partner,
                });
            }
        }
    }
    let mut found: Vec<Finding> = places
        .into_iter()
        .map(|((function, site), mut ranks)| {
            ranks.sort_by(|a, b| b.percent.total_cmp(&a.percent).then(a.rank.cmp(&b.rank)));
            let (cost_ns, ranks_in_all) = (ranks.iter().map(|rank| rank.time_ns).saturating_sum(), ranks.len());
            ranks.truncate(TimeAtPlace::RANKS);
            let site = site.map(ToOwned::to_owned);
            costing(Some(cost_ns), Found::TimeAtPlace(TimeAtPlace { function, site, ranks, ranks_in_all }))
        })
        .collect();
    // By place, too, so that the order does not depend on a hash.
    let place = |finding: &Finding| match &finding.what {
        Found::TimeAtPlace(at) => Some((at.function, at.site.clone())),
        _ => None,
    };
    found.sort_by_key(|finding| (Reverse(finding.cost_ns), place(finding)));
    found.truncate(PLACES);
    found
}

/// Completed calls, and the time in them (ns), of one rank by function and place.
fn by_place(rank: &RankProfile) -> HashMap<(Name, Option<&str>), (u64, u64)> {
    let mut places: HashMap<(Name, Option<&str>), (u64, u64)> = HashMap::new();
    let flows = rank.traffic.as_ref().map(|traffic| &traffic.flows).filter(|flows| !flows.is_empty());
    let Some(flows) = flows else {
        return rank.functions.iter().map(|row| ((row.name, None), (row.calls, row.time_ns))).collect();
    };
    // Of what a persistent request has moved, the calls are those that start it.
    for flow in flows {
        let function = flow.started_by.unwrap_or(flow.function);
        let (calls, time_ns) = places.entry((function, flow.site.as_deref())).or_default();
        // A call with two partners has its time where it sends to.
        *calls = calls.saturating_add(if flow.amounts.time_ns > 0 { flow.amounts.calls } else { 0 });
        *time_ns = time_ns.saturating_add(flow.amounts.time_ns);
    }
    places
}

/// The rank that most of the time at a place has to do with. Of calls that complete requests, those that were posted say it.
fn partner(rank: &RankProfile, function: Name, site: Option<&str>, time_ns: u64) -> Option<PartnerAtPlace> {
    let called = by_name(function)?.function();
    let completes = called.group == Group::Completion;
    if called.position(Role::Destination).is_some() && called.position(Role::Source).is_some() {
        // It sends to one and receives from another: which of them it waits for is not known.
        return None;
    }
    let flows = rank.traffic.as_ref()?.flows.iter();
    let mut by_peer: HashMap<(u32, bool), u64> = HashMap::new();
    let mut waited_ns: u64 = 0;
    for flow in flows.filter(|flow| completes || (flow.function == function && flow.site.as_deref() == site)) {
        let ns = if completes { flow.waited_ns } else { flow.amounts.time_ns };
        waited_ns = waited_ns.saturating_add(ns);
        if let Some(peer) = flow.peer {
            let sends = by_name(flow.function).is_some_and(|id| id.function().position(Role::Destination).is_some());
            let sum = by_peer.entry((peer, sends)).or_default();
            *sum = sum.saturating_add(ns);
        }
    }
    let whole_ns = if completes { waited_ns } else { time_ns };
    let (&(peer, is_destination), &ns) = by_peer.iter().max_by_key(|&(key, ns)| (*ns, Reverse(*key)))?;
    let percent = 100.0 * ns as f64 / whole_ns.max(1) as f64;
    (percent >= MOST_WITH_PARTNER).then_some(PartnerAtPlace { rank: peer, percent, is_destination })
}

fn of_group(profile: &Profile, group: Group) -> impl Iterator<Item = &FunctionProfile> {
    profile.functions.iter().filter(move |function| function.all.group == group.title())
}

fn starts_or_ends(function: Name) -> bool {
    by_name(function).is_some_and(|id| id.function().group == Group::InitFinalize)
}

/// Calls or messages of a second of observation.
fn per_second(profile: &Profile, number: u64) -> f64 {
    number as f64 / (profile.observed_ns.max(1) as f64 / 1e9)
}
