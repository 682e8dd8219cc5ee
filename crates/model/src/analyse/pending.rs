//! Operations under way of one rank.

use mpiprobe_common::{
    Amount, Request,
    request::{certainty, state},
};
use mpiprobe_observe::{PendingRequest, SHARED};

use super::names::{self, partner, started_by};
use crate::PendingRow;

/// The oldest first.
pub(super) fn rows(
    requests: &[PendingRequest],
    now_ns: u64,
    name: &mut dyn FnMut(u64) -> Option<String>,
) -> Vec<PendingRow> {
    let mut sorted: Vec<&PendingRequest> = requests.iter().collect();
    sorted.sort_by_key(|pending| pending.request.posted_ns);
    sorted.into_iter().map(|pending| row(pending, now_ns, name(pending.request.call_site))).collect()
}

fn row(pending: &PendingRequest, now_ns: u64, site: Option<String>) -> PendingRow {
    let request = &pending.request;
    let (partner, peer) = partner(pending.peer);
    PendingRow {
        function: names::name(request.function.into()),
        started_by: started_by(request.started_by_plus_1),
        communicator: Some(request.communicator_number).filter(|&number| number != 0 && number != SHARED),
        partner,
        peer,
        tag: Some(request.tag).filter(|_| has(request, state::TAGGED)),
        sent_bytes: known(request.sent),
        received_bytes: known(request.received),
        age_ns: now_ns.saturating_sub(request.posted_ns),
        call_site: request.call_site,
        site,
    }
}

fn has(request: &Request, bit: u64) -> bool {
    request.state & bit != 0
}

fn known(amount: Amount) -> Option<u64> {
    matches!(amount.certainty, certainty::KNOWN | certainty::AT_MOST).then_some(amount.bytes)
}
