//! Amounts of data, flows and communicators of one rank.

use std::cmp::Reverse;

use mpiprobe_common::{self as tables, Flow, flow::peer};

use super::{SelfCost, names, pending, traffic::Traffic};
use crate::{
    model::{Amounts, CommunicatorRow, FlowRow, FunctionTraffic, Partner, RankTraffic, Volume},
    observe::{CommunicatorSnapshot, ProcessSnapshot, SHARED},
};

pub(super) fn of_function(stats: &tables::FunctionStats) -> FunctionTraffic {
    FunctionTraffic {
        sent: volume(&stats.sent),
        received: volume(&stats.received),
        received_at_most_bytes: stats.received_at_most,
        calls_of_unknown_bytes: stats.unknown,
    }
}

fn volume(counted: &tables::Volume) -> Volume {
    let used = counted.sizes.iter().rposition(|&messages| messages > 0).map_or(0, |last| last + 1);
    Volume {
        messages: counted.messages,
        bytes: counted.bytes,
        min_bytes: counted.min().unwrap_or(0),
        max_bytes: counted.max,
        mean_bytes: if counted.messages == 0 { 0.0 } else { counted.bytes as f64 / counted.messages as f64 },
        sizes: counted.sizes.iter().take(used).copied().collect(),
    }
}

/// What of a rank's traffic is shown.
pub(super) fn of_rank(
    tables: &ProcessSnapshot,
    now_ns: u64,
    self_cost: SelfCost,
    traffic: &Traffic<'_>,
    name: &mut dyn FnMut(u64) -> Option<String>,
) -> RankTraffic {
    let shown: Vec<&Flow> = tables.flows.iter().filter(|flow| traffic.shows(flow)).collect();
    let id = |number| traffic.id(tables.process, number);
    RankTraffic {
        communicators: communicators(&tables.communicators, &id),
        flows: flows(&shown, self_cost, name),
        pending: pending::rows(&tables.requests, now_ns, name),
    }
}

/// Most bytes first, then most time.
fn flows(counted: &[&Flow], self_cost: SelfCost, name: &mut dyn FnMut(u64) -> Option<String>) -> Vec<FlowRow> {
    let mut rows: Vec<FlowRow> = counted.iter().map(|flow| row(flow, self_cost, name(flow.key.call_site))).collect();
    rows.sort_by_key(|row| {
        let Amounts { sent_bytes, received_bytes, time_ns, calls, .. } = row.amounts;
        (Reverse((sent_bytes.saturating_add(received_bytes), time_ns, calls)), row.function, row.peer)
    });
    rows
}

/// Of a persistent operation, by whom it was started.
pub(super) fn started_by(function_plus_1: u16) -> Option<&'static str> {
    function_plus_1.checked_sub(1).map(|function| names::name(function.into()))
}

/// A rank of a key, or one of [`peer`].
pub(super) fn partner(value: i32) -> (Partner, Option<u32>) {
    match value {
        peer::NONE => (Partner::Nobody, None),
        peer::NULL => (Partner::ProcNull, None),
        peer::ANY => (Partner::AnySource, None),
        rank => u32::try_from(rank).map_or((Partner::Unknown, None), |rank| (Partner::Rank, Some(rank))),
    }
}

/// What goes with a flow, without what tells it from others. A flow that has no time of its own (of what a call receives that sends,
/// too) has no own cost either.
pub(super) fn amounts(flow: &Flow, self_cost: SelfCost) -> Amounts {
    Amounts {
        calls: flow.calls,
        time_ns: flow.time_ns - self_cost.within(flow.calls, flow.time_ns),
        sent_bytes: flow.sent,
        received_bytes: flow.received,
        received_at_most_bytes: flow.received_at_most,
        calls_of_unknown_bytes: flow.unknown,
    }
}

fn row(flow: &Flow, self_cost: SelfCost, site: Option<String>) -> FlowRow {
    let (partner, peer) = partner(flow.key.peer);
    FlowRow {
        function: names::name(flow.key.function.into()),
        started_by: started_by(flow.key.started_by_plus_1),
        communicator: Some(flow.key.communicator).filter(|&number| number != 0 && number != SHARED),
        partner,
        peer,
        call_site: flow.key.call_site,
        site,
        amounts: amounts(flow, self_cost),
        completed: flow.completed,
        pending_ns: flow.pending_ns,
        waited_ns: flow.waited_ns,
    }
}

fn communicators(counted: &[CommunicatorSnapshot], id: &dyn Fn(u32) -> Option<u32>) -> Vec<CommunicatorRow> {
    let row = |known: &CommunicatorSnapshot| {
        let facts = &known.facts;
        CommunicatorRow {
            number: known.number,
            id: id(known.number),
            context: facts.context,
            rank: Some(facts.rank).filter(|_| facts.size > 0),
            size: Some(facts.size).filter(|&size| size > 0),
            remote_size: Some(facts.remote_size).filter(|_| facts.is_inter != 0),
            freed: facts.freed_ns != 0,
        }
    };
    counted.iter().map(row).collect()
}
