//! What has happened between two profiles of one observation, as a profile.

use std::collections::HashMap;

use super::{
    aggregate::Base,
    change::{Change, FunctionChange, Look, RankChange, identify},
    over_ranks,
};
use crate::{
    Amounts, CommunicatorProfile, FlowRow, FunctionRow, FunctionTraffic, OtherCommunicators, OwnCost, Partner,
    PartnerRow, Profile, RankPhase, RankProfile, RankTraffic, Rates, SaturatingSum as _, TrafficProfile, Volume,
};

/// The later of two profiles, without what was there in the earlier one already.
///
/// Calls, times, bytes and histograms are differences. What cannot be one is of the later profile: open calls, pending operations and
/// losses. Extremes are exact where a later call was beyond all earlier ones, and else known to within a factor of two, as are
/// percentiles. Ranks that had ended before are left out. Layers of tools and inner calls are those since the beginning, and left out.
pub fn between(before: &Profile, after: &Profile) -> Profile {
    let change = Change::since(Some(&Look::of(before)), after);
    let earlier: HashMap<_, _> = identify(&before.ranks).zip(&before.ranks).collect();
    let mut profile = after.clone();
    let rows = identify(&after.ranks).zip(&after.ranks).zip(&change.ranks);
    profile.ranks = rows
        .map(|((id, rank), (numbers, functions))| rank_between(earlier.get(&id).copied(), rank, *numbers, functions))
        .filter(|rank| rank.wall_ns > 0 || rank.calls > 0)
        .collect();
    profile.observed_ns = change.span_ns;
    profile.interval = Some(change.window());
    profile.inner_calls = None;
    // They are of all the time, and causes are not told apart by when they were.
    profile.wait_states = None;
    profile.traffic = after.traffic.as_ref().map(|traffic| match &before.traffic {
        Some(before) => traffic_between(before, traffic),
        None => traffic.clone(),
    });
    let wall_ns = profile.ranks.iter().map(|rank| rank.wall_ns).saturating_sum();
    let (now, then) = (&after.own_cost, &before.own_cost);
    profile.own_cost = OwnCost::new(now.per_call_ns, now.inside_ns, now.calls.saturating_sub(then.calls), wall_ns)
        .subtracted(now.subtracted_ns.saturating_sub(then.subtracted_ns));
    over_ranks::sum_up(&mut profile);
    profile
}

fn rank_between(
    before: Option<&RankProfile>,
    after: &RankProfile,
    change: RankChange,
    functions: &[FunctionChange],
) -> RankProfile {
    let base = Base { thread_wall_ns: change.thread_wall_ns, mpi_ns: change.mpi_ns, traffic: after.traffic.is_some() };
    let earlier = |name: &str| before.and_then(|rank| rank.functions.iter().find(|row| row.name == name));
    let rows = after.functions.iter().zip(functions);
    let functions: Vec<FunctionRow> = rows
        .map(|(row, meanwhile)| function_between(earlier(row.name), row, meanwhile.time_ns))
        .map(|mut row| {
            let traffic = row.traffic.as_ref().map_or((0, 0), |traffic| (traffic.sent.bytes, traffic.received.bytes));
            row.rates = Rates::of(row.calls, traffic.0, traffic.1, change.wall_ns);
            over_ranks::finish(&mut row, base);
            row
        })
        .filter(|row| row.calls > 0 || row.time_ns > 0 || row.open_calls > 0)
        .collect();
    let since = |value: fn(&RankProfile) -> u64| value(after).saturating_sub(before.map_or(0, value));
    let mut rank = RankProfile {
        wall_ns: change.wall_ns,
        mpi_ns: change.mpi_ns,
        self_cost_ns: since(|rank| rank.self_cost_ns),
        thread_wall_ns: change.thread_wall_ns,
        mpi_percent: change.mpi_percent(),
        unseen_ns: change.unseen_ns,
        calls: change.calls,
        untimed_calls: since(|rank| rank.untimed_calls),
        inner_calls: since(|rank| rank.inner_calls),
        inner_calls_of_unseen: since(|rank| rank.inner_calls_of_unseen),
        before_first_call_ns: if before.is_some() { None } else { after.before_first_call_ns },
        functions: functions.into(),
        layers: Vec::new(),
        calls_while_off: since(|rank| rank.calls_while_off),
        off_ns: since(|rank| rank.off_ns),
        ..after.clone()
    };
    rank.groups = over_ranks::groups_of(&rank, base);
    if let Some(before) = before {
        for thread in &mut rank.threads {
            if let Some(then) = before.threads.iter().find(|then| then.tid == thread.tid) {
                thread.calls = thread.calls.saturating_sub(then.calls);
                thread.mpi_ns = thread.mpi_ns.saturating_sub(then.mpi_ns);
                thread.wall_ns = thread.wall_ns.saturating_sub(then.wall_ns);
            }
        }
        for phase in &mut rank.phases {
            if let Some(then) = before.phases.iter().find(|then| (&then.name, then.level) == (&phase.name, phase.level))
            {
                phase_since(phase, then);
            }
        }
        if let (Some(then), Some(traffic)) = (&before.traffic, &mut rank.traffic) {
            flows_since(then, traffic);
        }
    }
    rank
}

/// The calls of a function meanwhile, of which the time (ns) is known.
fn function_between(before: Option<&FunctionRow>, after: &FunctionRow, time_ns: u64) -> FunctionRow {
    let mut row = after.clone();
    let open_ns = after.open_ns.min(time_ns);
    (row.time_ns, row.open_ns) = (time_ns - open_ns, open_ns);
    let Some(before) = before else { return row };
    row.calls = after.calls.saturating_sub(before.calls);
    row.untimed_calls = after.untimed_calls.saturating_sub(before.untimed_calls);
    row.estimated = after.estimated.map(|estimate| estimate.since(before.estimated, row.calls));
    row.self_cost_ns = after.self_cost_ns.saturating_sub(before.self_cost_ns);
    if before.calls == 0 {
        return row;
    }
    subtract_each(&mut row.durations, &before.durations);
    let bits = (0_u32..).zip(&row.durations).filter(|(_, calls)| **calls > 0).map(|(bits, _)| bits);
    if let (Some(first), Some(last)) = (bits.clone().next(), bits.last()) {
        // What was not surpassed may have been before.
        if after.min_ns == before.min_ns {
            row.min_ns = over_ranks::lowest(first).max(after.min_ns);
        }
        if after.max_ns == before.max_ns {
            row.max_ns = over_ranks::lowest(last.saturating_add(1)).saturating_sub(1).min(after.max_ns);
        }
    } else {
        (row.min_ns, row.max_ns) = (0, 0);
    }
    over_ranks::set_percentiles(&mut row);
    if let (Some(traffic), Some(before)) = (&mut row.traffic, &before.traffic) {
        traffic_since(traffic, before);
    }
    row
}

fn subtract_each(all: &mut Vec<u64>, less: &[u64]) {
    for (left, less) in all.iter_mut().zip(less) {
        *left = left.saturating_sub(*less);
    }
    while all.last() == Some(&0) {
        all.pop();
    }
}

fn traffic_since(traffic: &mut FunctionTraffic, before: &FunctionTraffic) {
    volume_since(&mut traffic.sent, &before.sent);
    volume_since(&mut traffic.received, &before.received);
    traffic.received_at_most_bytes = traffic.received_at_most_bytes.saturating_sub(before.received_at_most_bytes);
    traffic.calls_of_unknown_bytes = traffic.calls_of_unknown_bytes.saturating_sub(before.calls_of_unknown_bytes);
}

fn volume_since(volume: &mut Volume, before: &Volume) {
    if before.messages == 0 {
        return;
    }
    volume.messages = volume.messages.saturating_sub(before.messages);
    volume.bytes = volume.bytes.saturating_sub(before.bytes);
    subtract_each(&mut volume.sizes, &before.sizes);
    let bits = (0_u32..).zip(&volume.sizes).filter(|(_, messages)| **messages > 0).map(|(bits, _)| bits);
    (volume.min_bytes, volume.max_bytes) = match (bits.clone().next(), bits.last()) {
        (Some(first), Some(last)) => (
            over_ranks::lowest(first).max(volume.min_bytes),
            over_ranks::lowest(last.saturating_add(1)).saturating_sub(1).min(volume.max_bytes),
        ),
        _ => (0, 0),
    };
    volume.mean_bytes = if volume.messages == 0 { 0.0 } else { volume.bytes as f64 / volume.messages as f64 };
}

fn phase_since(phase: &mut RankPhase, before: &RankPhase) {
    phase.opened = phase.opened.saturating_sub(before.opened);
    phase.wall_ns = phase.wall_ns.saturating_sub(before.wall_ns);
    phase.calls = phase.calls.saturating_sub(before.calls);
    phase.mpi_ns = phase.mpi_ns.saturating_sub(before.mpi_ns);
    let base = Base { thread_wall_ns: phase.wall_ns, mpi_ns: phase.mpi_ns, traffic: false };
    for row in &mut phase.functions {
        let then = before.functions.iter().find(|then| then.name == row.name);
        let time_ns = row.time_ns.saturating_sub(then.map_or(0, |then| then.time_ns));
        *row = function_between(then, row, time_ns);
        over_ranks::finish(row, base);
    }
    phase.functions.retain(|row| row.calls > 0);
}

/// All that tells flows of one rank apart.
type FlowKey = (&'static str, Option<&'static str>, Option<u32>, Partner, Option<u32>, u64);

fn key(flow: &FlowRow) -> FlowKey {
    (flow.function, flow.started_by, flow.communicator, flow.partner, flow.peer, flow.call_site)
}

fn flows_since(before: &RankTraffic, traffic: &mut RankTraffic) {
    let then: HashMap<FlowKey, &FlowRow> = before.flows.iter().map(|flow| (key(flow), flow)).collect();
    for flow in &mut traffic.flows {
        let Some(then) = then.get(&key(flow)) else { continue };
        subtract(&mut flow.amounts, &then.amounts);
        flow.completed = flow.completed.saturating_sub(then.completed);
        flow.pending_ns = flow.pending_ns.saturating_sub(then.pending_ns);
        flow.waited_ns = flow.waited_ns.saturating_sub(then.waited_ns);
    }
    traffic.flows.retain(|flow| flow.amounts != Amounts::default() || flow.completed > 0);
}

fn subtract(amounts: &mut Amounts, less: &Amounts) {
    amounts.calls = amounts.calls.saturating_sub(less.calls);
    amounts.time_ns = amounts.time_ns.saturating_sub(less.time_ns);
    amounts.sent_bytes = amounts.sent_bytes.saturating_sub(less.sent_bytes);
    amounts.received_bytes = amounts.received_bytes.saturating_sub(less.received_bytes);
    amounts.received_at_most_bytes = amounts.received_at_most_bytes.saturating_sub(less.received_at_most_bytes);
    amounts.calls_of_unknown_bytes = amounts.calls_of_unknown_bytes.saturating_sub(less.calls_of_unknown_bytes);
}

fn traffic_between(before: &TrafficProfile, after: &TrafficProfile) -> TrafficProfile {
    let mut traffic = after.clone();
    let then: HashMap<u32, &CommunicatorProfile> = before.communicators.iter().map(|one| (one.id, one)).collect();
    for communicator in &mut traffic.communicators {
        let Some(then) = then.get(&communicator.id) else { continue };
        subtract(&mut communicator.amounts, &then.amounts);
        for row in &mut communicator.functions {
            if let Some(then) = then.functions.iter().find(|then| then.function == row.function) {
                subtract(&mut row.amounts, &then.amounts);
            }
        }
        communicator.functions.retain(|row| row.amounts != Amounts::default());
    }
    for size in &mut traffic.communicator_sizes {
        if let Some(then) = before.communicator_sizes.iter().find(|then| then.size == size.size) {
            subtract(&mut size.amounts, &then.amounts);
        }
    }
    if let (Some(OtherCommunicators { amounts, .. }), Some(then)) =
        (&mut traffic.other_communicators, &before.other_communicators)
    {
        subtract(amounts, &then.amounts);
    }
    let pair = |row: &PartnerRow| (row.job.clone(), row.rank, row.peer);
    let then: HashMap<_, _> = before.partners.iter().map(|row| (pair(row), row.amounts)).collect();
    for row in &mut traffic.partners {
        if let Some(then) = then.get(&pair(row)) {
            subtract(&mut row.amounts, then);
        }
    }
    traffic.partners.retain(|row| row.amounts != Amounts::default());
    traffic.partners.sort_by_key(|row| {
        (std::cmp::Reverse(row.amounts.sent_bytes.saturating_add(row.amounts.received_bytes)), row.rank, row.peer)
    });
    traffic
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, SECOND, function};

    /// A rank of two that has made so many calls of a millisecond each, until that second.
    fn at(seconds: u64, calls: u64) -> Profile {
        let mut profile = sample::profile(sample::ranks(2));
        profile.observed_ns = seconds * SECOND;
        for rank in &mut profile.ranks {
            (rank.wall_ns, rank.thread_wall_ns, rank.calls) = (seconds * SECOND, seconds * SECOND, calls);
            rank.mpi_ns = calls * 1_000_000;
            let mut row = function("MPI_Send", calls, 1_000_000).all;
            row.durations = vec![0; 21];
            row.durations[20] = calls;
            rank.functions = vec![row].into();
        }
        profile
    }

    #[test]
    fn a_span_is_the_difference() {
        let span = between(&at(10, 1000), &at(15, 3500));
        assert_eq!((span.observed_ns, span.totals.calls, span.ranks.len()), (5 * SECOND, 5000, 2));
        let rank = &span.ranks[0];
        assert_eq!(
            (rank.calls, rank.mpi_ns, rank.wall_ns, rank.mpi_percent),
            (2500, 2_500_000_000, 5 * SECOND, Some(50.0))
        );
        let row = &rank.functions[0];
        assert_eq!((row.calls, row.time_ns, row.mean_ns, row.rates.calls_per_s), (2500, 2_500_000_000, 1e6, 500.0));
        assert_eq!((row.durations[20], row.wall_percent, row.mpi_percent), (2500, 50.0, 100.0));
        assert!(row.min_ns <= 1_000_000 && row.p50_ns <= 1_000_000 && row.max_ns == 1_000_000, "{row:?}");
        let all = &span.functions[0];
        assert_eq!((all.all.calls, all.time_over_ranks_ns.sum), (5000, 5e9));
        assert!((span.totals.efficiency.unwrap().parallel - 0.5).abs() < 1e-9);
    }

    #[test]
    fn who_had_ended_before_is_not_in_it_and_who_came_is_whole() {
        let (mut before, mut after) = (at(10, 1000), at(15, 3500));
        after.ranks[0] = before.ranks[0].clone();
        before.ranks.remove(1);
        let span = between(&before, &after);
        assert_eq!((span.ranks.len(), span.ranks[0].rank, span.ranks[0].calls), (1, Some(1), 3500));
    }

    #[test]
    fn a_profile_less_itself_is_empty() {
        let span = between(&at(10, 1000), &at(10, 1000));
        assert_eq!((span.ranks.len(), span.functions.len(), span.totals.calls), (0, 0, 0));
    }
}
