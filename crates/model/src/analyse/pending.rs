//! Operations under way of one rank.

use mpiprobe_common::{
    Amount, FoundOperation, FoundPeer, FoundProgress, FoundRequest, FoundTag, Request,
    flow::peer,
    request::{certainty, state},
};
use mpiprobe_observe::{AwaitedRequest, CommunicatorSnapshot, PendingRequest, ProcessSnapshot, SHARED};

use super::names::{self, partner, started_by};
use crate::{Partner, PendingRow};

/// The oldest first; then those that no call was seen to post, as far as open calls wait for them and the library says what they are.
pub(super) fn rows(
    tables: &ProcessSnapshot,
    now_ns: u64,
    name: &mut dyn FnMut(u64) -> Option<String>,
) -> Vec<PendingRow> {
    let mut sorted: Vec<&PendingRequest> = tables.requests.iter().filter(|pending| may_go_on(pending)).collect();
    sorted.sort_by_key(|pending| pending.request.posted_ns);
    let counted = sorted.into_iter().map(|pending| PendingRow {
        awaited_by: awaited_by(tables, pending.handle),
        is_under_way: is_under_way(tables, pending.handle),
        ..row(pending, now_ns, name(pending.request.call_site))
    });
    let awaited = tables.awaited.iter().flat_map(|call| call.requests.iter().map(|request| (call.tid, request)));
    let found = awaited.filter(|(_, request)| !is_counted(tables, request.handle)).filter_map(|(tid, request)| {
        let open_ns = tables.open_ns(tid, now_ns);
        Some(PendingRow { awaited_by: Some(tid), ..of_library(tables, &under_way(request)?, open_ns) })
    });
    counted.chain(found).collect()
}

/// What is sent to, or received from, `MPI_PROC_NULL` is complete as soon as that is possible (MPI-4.0, section 3.10). If it was started, there is
/// no request left over either: of such a one MPICH tells nobody who asks which of several is complete.
fn may_go_on(pending: &PendingRequest) -> bool {
    pending.peer != peer::NULL || !pending.request.can_be_started()
}

/// Of the requests that a thread's open call waits for, how many have no row; `None`: nobody has looked.
pub fn others(tables: &ProcessSnapshot, tid: u32) -> Option<u64> {
    let call = tables.awaited.iter().find(|call| call.tid == tid)?;
    let is_other = |request: &&AwaitedRequest| {
        let is_inactive = request.found.is_some_and(|found| found.progress == FoundProgress::Inactive);
        !is_counted(tables, request.handle) && !is_inactive && under_way(request).is_none()
    };
    u64::try_from(call.requests.iter().filter(is_other).count()).ok()
}

fn awaited_by(tables: &ProcessSnapshot, handle: u64) -> Option<u32> {
    let awaits = |requests: &[AwaitedRequest]| requests.iter().any(|request| request.handle == handle);
    tables.awaited.iter().find(|call| awaits(&call.requests)).map(|call| call.tid)
}

/// What the library says of a request that an open call waits for. One that is inactive is so again, since it was seen to begin.
fn is_under_way(tables: &ProcessSnapshot, handle: u64) -> Option<bool> {
    let mut requests = tables.awaited.iter().flat_map(|call| &call.requests);
    let found = requests.find(|request| request.handle == handle)?.found?;
    Some(found.progress == FoundProgress::Active)
}

fn is_counted(tables: &ProcessSnapshot, handle: u64) -> bool {
    tables.requests.iter().any(|pending| pending.handle == handle)
}

/// What the library says of a request that is not complete.
fn under_way(request: &AwaitedRequest) -> Option<FoundRequest> {
    request.found.filter(|found| found.progress == FoundProgress::Active && found.operation != FoundOperation::Other)
}

fn row(pending: &PendingRequest, now_ns: u64, site: Option<String>) -> PendingRow {
    let request = &pending.request;
    let (partner, peer) = partner(pending.peer);
    PendingRow {
        function: names::name(request.function.into()),
        is_of_library: false,
        started_by: started_by(request.started_by_plus_1),
        communicator: Some(request.communicator_number).filter(|&number| number != 0 && number != SHARED),
        partner,
        peer,
        tag: Some(request.tag).filter(|_| has(request, state::TAGGED)),
        sent_bytes: known(request.sent),
        received_bytes: known(request.received),
        age_ns: now_ns.saturating_sub(request.posted_ns),
        awaited_by: None,
        is_under_way: None,
        call_site: request.call_site,
        site,
    }
}

/// A row of a request that the library alone tells of. Its function is the plainest that makes such requests.
fn of_library(tables: &ProcessSnapshot, found: &FoundRequest, age_ns: u64) -> PendingRow {
    let layout = &tables.layout;
    let handle = found.communicator.map(|handle| layout.handle(handle));
    let communicator = handle.and_then(|handle| communicator(tables, handle));
    // Of the world it is known without any call over it that was seen.
    let is_world = handle.is_some_and(|handle| handle != 0 && handle == layout.constants.comm_world);
    let function = match found.operation {
        FoundOperation::Send => "MPI_Isend",
        FoundOperation::Receive => "MPI_Irecv",
        FoundOperation::Collective | FoundOperation::Other => "MPI_Ibarrier",
    };
    let is_message = matches!(found.operation, FoundOperation::Send | FoundOperation::Receive);
    let (partner, peer) = match found.peer {
        _ if !is_message => (Partner::Nobody, None),
        FoundPeer::Any => (Partner::AnySource, None),
        FoundPeer::Rank(rank) if is_world => (Partner::Rank, Some(rank)),
        FoundPeer::Rank(rank) => match communicator.and_then(|known| world_rank(known, rank)) {
            Some(world) => (Partner::Rank, Some(world)),
            None => (Partner::Unknown, None),
        },
        FoundPeer::Unknown => (Partner::Unknown, None),
    };
    let is_send = found.operation == FoundOperation::Send;
    PendingRow {
        function,
        is_of_library: true,
        started_by: None,
        communicator: communicator.map(|known| known.number),
        partner,
        peer,
        tag: match found.tag {
            FoundTag::Tag(tag) => Some(tag),
            FoundTag::Any => Some(layout.constants.any_tag),
            FoundTag::Unknown => None,
        },
        sent_bytes: found.bytes.filter(|_| is_send),
        received_bytes: found.bytes.filter(|_| is_message && !is_send),
        age_ns,
        awaited_by: None,
        is_under_way: Some(true),
        call_site: 0,
        site: None,
    }
}

fn communicator(tables: &ProcessSnapshot, handle: u64) -> Option<&CommunicatorSnapshot> {
    tables.communicators.iter().find(|known| known.facts.key.handle == handle && known.facts.freed_ns == 0)
}

/// Rank in `MPI_COMM_WORLD` of a rank that a message over a communicator means.
fn world_rank(known: &CommunicatorSnapshot, rank: u32) -> Option<u32> {
    let members = known.members.as_ref()?;
    let side = if known.facts.is_inter == 0 { &members.own } else { &members.remote };
    side.get(usize::try_from(rank).ok()?).copied().flatten()
}

fn has(request: &Request, bit: u64) -> bool {
    request.state & bit != 0
}

fn known(amount: Amount) -> Option<u64> {
    matches!(amount.certainty, certainty::KNOWN | certainty::AT_MOST).then_some(amount.bytes)
}

#[cfg(test)]
mod tests {
    use mpiprobe_common::{
        Layout,
        layout::{Constants, MPICH},
    };
    use mpiprobe_observe::AwaitedRequests;

    use super::*;

    #[test]
    fn nothing_goes_on_with_nobody_that_was_started() {
        let pending = |peer: i32, flags: u64| {
            let request = Request { state: state::ACTIVE | flags, ..Request::default() };
            let requests = vec![PendingRequest { request, handle: 9, peer }];
            let tables = ProcessSnapshot { requests, ..ProcessSnapshot::empty(0) };
            rows(&tables, 0, &mut |_| None).len()
        };
        assert_eq!([pending(1, state::PERSISTENT), pending(peer::NULL, state::PERSISTENT)], [1, 0]);
        assert_eq!(pending(peer::NULL, 0), 1, "nobody has waited for it, so that the request is left");
    }

    #[test]
    fn who_is_meant_in_the_world_is_known_without_a_call_over_it() {
        const WORLD: u64 = 0x4400_0000;
        let row = |communicator: u64| {
            let found = FoundRequest {
                operation: FoundOperation::Receive,
                progress: FoundProgress::Active,
                is_persistent: false,
                communicator: Some(communicator),
                peer: FoundPeer::Rank(2),
                tag: FoundTag::Tag(1),
                bytes: Some(4),
            };
            let requests = vec![AwaitedRequest { handle: 9, found: Some(found) }];
            let constants = Constants { comm_world: WORLD, ..MPICH.constants };
            let layout = Layout { constants, ..Layout::default() };
            let awaited = vec![AwaitedRequests { tid: 7, requests }];
            let tables = ProcessSnapshot { layout, awaited, ..ProcessSnapshot::empty(0) };
            rows(&tables, 0, &mut |_| None).remove(0)
        };
        let of_world = row(WORLD);
        assert_eq!((of_world.partner, of_world.peer, of_world.awaited_by), (Partner::Rank, Some(2), Some(7)));
        let of_another = row(WORLD + 1);
        assert_eq!((of_another.partner, of_another.peer), (Partner::Unknown, None));
    }
}
