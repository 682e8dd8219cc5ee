//! Amounts of data, flows and communicators of one rank.

use std::cmp::Reverse;

use mpiprobe_common::{self as tables, Flow};
use mpiprobe_observe::{CommunicatorSnapshot, ProcessSnapshot, SHARED};

use super::{
    SelfCost,
    names::{self, amounts, partner, started_by},
    pending,
    traffic::Traffic,
};
use crate::{Amounts, CommunicatorRow, FlowRow, FunctionTraffic, RankTraffic, Volume};

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
        flows: flows(&shown, self_cost, name).into(),
        pending: pending::rows(tables, now_ns, name),
    }
}

/// Most bytes first, then most time.
fn flows(counted: &[&Flow], self_cost: SelfCost, name: &mut dyn FnMut(u64) -> Option<String>) -> Vec<FlowRow> {
    let mut rows: Vec<FlowRow> =
        counted.iter().map(|flow| row(flow, self_cost, name(flow.key.call_site).as_deref())).collect();
    rows.sort_by_key(|row| {
        let Amounts { sent_bytes, received_bytes, time_ns, calls, .. } = row.amounts;
        (Reverse((sent_bytes.saturating_add(received_bytes), time_ns, calls)), row.function, row.peer)
    });
    rows
}

fn row(flow: &Flow, self_cost: SelfCost, site: Option<&str>) -> FlowRow {
    let (partner, peer) = partner(flow.key.peer);
    FlowRow {
        function: names::name(flow.key.function.into()),
        started_by: started_by(flow.key.started_by_plus_1),
        communicator: Some(flow.key.communicator).filter(|&number| number != 0 && number != SHARED),
        partner,
        peer,
        call_site: flow.key.call_site,
        site: site.map(crate::names::shared),
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
