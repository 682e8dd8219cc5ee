//! Operations, from the call that posts them to the one that completes them.

use super::{
    call::{Arguments, Call},
    counting,
    partner::{Partners, completed_source},
    tables::{Counts, Operations, What},
};
use crate::{
    Amount, Layout, Loss, Request, RequestKey,
    descriptor::{NONE, amount as kind, completion, flags},
    flow::{Sought, peer},
    layout::{Memory, is_complete_request, status_source},
    request::{FAILED, certainty, epoch_of, key_kind, state},
};

/// When a call was entered and when it returned, and what of its time is each operation's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    pub started_ns: u64,
    pub returned_ns: u64,
    pub share_ns: u64,
}

/// A call has posted an operation, or made it to be started later: remembers it. `request` is what was found out about the call, whose
/// own tag and state are set here. Answers the handle by which it is remembered; 0: it is not.
#[inline(always)]
pub fn post<A: Arguments, T: Operations>(
    call: &Call<'_, A>,
    tables: &mut T,
    process: u32,
    request: &mut Request,
) -> u64 {
    let descriptor = call.descriptor;
    let is_access = descriptor.completion == completion::BEGINS;
    let handle =
        if is_access { Some(call.word(descriptor.file)) } else { call.handle_at(call.word(descriptor.request)) };
    let Some(handle) = handle else {
        tables.count_loss(Loss::RequestsNotFollowed);
        return 0;
    };
    if handle == call.layout.constants.request_null && !is_access {
        return 0;
    }
    let mut bits = 0;
    if descriptor.receive_amount & kind::KIND == kind::STATUS {
        bits |= state::BY_STATUS;
    }
    bits |= if descriptor.flags & flags::PERSISTENT != 0 { state::PERSISTENT } else { state::ACTIVE };
    if !is_access && is_complete_request(call.layout, handle) {
        if bits & state::ACTIVE != 0 {
            complete_at_once(tables, request, bits);
        } else {
            tables.count_loss(Loss::RequestsNotFollowed);
        }
        return 0;
    }
    let position = if descriptor.receive_tag == NONE { descriptor.send_tag } else { descriptor.receive_tag };
    if position != NONE {
        request.tag = call.int(position);
        bits |= state::TAGGED;
    }
    request.state = request.posted_ns << state::BITS | bits;
    let kind = if is_access { key_kind::ACCESS } else { key_kind::REQUEST };
    tables.keep(&RequestKey { process, kind, handle }, request);
    handle
}

/// The library has given the request that all operations have in common which are complete from the start.
#[inline(always)]
fn complete_at_once<T: Counts>(tables: &mut T, request: &Request, bits: u64) {
    tables.add_completed(request.flow_plus_1, 0, 0);
    if bits & state::BY_STATUS != 0 && request.source != peer::NULL {
        let statistics = tables.statistics(request.function);
        tables.add_unknown(statistics, request.receiving_flow_plus_1());
    }
}

/// The library has given the handle of an operation again, which nobody was seen to complete: so it is complete. What has arrived, and when,
/// is not known.
pub fn given_again<T: Counts>(tables: &mut T, earlier: &Request) {
    let flow = tables.own_flow(earlier.flow_plus_1);
    complete_at_once(tables, &Request { flow_plus_1: flow, ..*earlier }, earlier.state);
}

/// A call has completed an operation, whose status is at an address (0: the program does not want one), or that has
/// [`FAILED`].
#[inline(always)]
pub fn complete<M: Memory, T: Operations>(
    layout: &Layout,
    memory: &M,
    tables: &mut T,
    key: &RequestKey,
    times: impl Fn() -> Times,
    status: u64,
) {
    let mut request = Request::default();
    if !tables.take(key, times().started_ns, &mut request) {
        return;
    }
    let status = if request.has_own_status(layout) || status == FAILED { status } else { 0 };
    tables.changed(key, &request, What::Completes { status });
    let mut main_flow = tables.own_flow(request.flow_plus_1);
    if request.state & state::BY_STATUS != 0 && request.source != peer::NULL {
        let received = request.arrived(layout, status, memory);
        let arrived = received.certainty != certainty::NOTHING;
        let is_exchange = request.second_flow_plus_1 != 0;
        let mut flow = if is_exchange { tables.own_flow(request.second_flow_plus_1) } else { main_flow };
        if T::FINDS_SOURCES && request.source == peer::ANY && status != 0 && arrived {
            flow = true_flow(layout, memory, tables, &request, flow, main_flow, status);
            if !is_exchange {
                main_flow = flow;
            }
        }
        let statistics = tables.statistics(request.function);
        if received.certainty == certainty::UNKNOWN {
            tables.add_unknown(statistics, flow);
        } else if arrived {
            tables.add_received(statistics, flow, received);
        }
    }
    // Read when they are needed only: BPF's verifier keeps in mind what a register has from where.
    let times = times();
    tables.add_completed(main_flow, times.returned_ns.wrapping_sub(request.posted_ns), times.share_ns);
}

/// Moves a call from the flow of receives from anybody to that of the true source.
#[inline(always)]
fn true_flow<M: Memory, T: Operations>(
    layout: &Layout,
    memory: &M,
    tables: &mut T,
    request: &Request,
    from: u32,
    main_flow: u32,
    status: u64,
) -> u32 {
    let partner = match status_source(layout, status, memory) {
        // The members of a communicator cannot be found any more when it has been freed meanwhile.
        Some(rank) if rank >= 0 && tables.is_alive(request.communicator_number, request.communicator) => rank,
        _ => peer::UNKNOWN,
    };
    let flow = tables.find_flow(&Sought::of(request, partner));
    if flow == 0 {
        return from;
    }
    let is_exchange = request.second_flow_plus_1 != 0;
    let ns = if is_exchange { 0 } else { request.posting_ns };
    // The calls may be in another thread's flow: numbers that wrap round take away, once all threads' are added up.
    tables.add_calls(from, u64::MAX, ns.wrapping_neg());
    // An exchange with one partner is one call with it.
    if !is_exchange || flow != main_flow {
        tables.add_calls(flow, 1, ns);
    }
    flow
}

/// A call of a function has started a persistent operation. `unknown` are the call's own statistics and flow, for an operation that
/// nothing is known of.
#[inline(always)]
pub fn start<T: Operations>(
    tables: &mut T,
    key: &RequestKey,
    function: u16,
    returned_ns: u64,
    unknown: (T::Statistics, u32),
) {
    let mut request = Request::default();
    if !tables.find_persistent(key, &mut request) {
        // Made by a call that was not followed. What is there is an earlier operation that had the same handle.
        tables.add_unknown(unknown.0, unknown.1);
        return;
    }
    let mut earlier = Request::default();
    // Only one that is complete can be started (MPI-4.1, section 3.9): so it is, whoever has seen that.
    if request.state & state::ACTIVE != 0 && tables.take(key, returned_ns, &mut earlier) {
        given_again(tables, &earlier);
    }
    tables.changed(key, &request, What::Starts { next_epoch: epoch_of(returned_ns) });
    if request.started_by_plus_1 == function + 1 {
        request.flow_plus_1 = tables.own_flow(request.flow_plus_1);
    } else {
        request.started_by_plus_1 = function + 1;
        let partners = Partners { destination: request.destination, source: request.source };
        request.flow_plus_1 = tables.find_flow(&Sought::of(&request, partners.first()));
    }
    tables.add_calls(request.flow_plus_1, 1, 0);
    if request.destination != peer::NULL && request.source != peer::NULL {
        let by_status = request.state & state::BY_STATUS != 0;
        let received = if by_status { Amount::NOTHING } else { request.received };
        let statistics = tables.statistics(request.function);
        counting::add(tables, statistics, (request.flow_plus_1, request.sent), (request.flow_plus_1, received));
    }
    request.posted_ns = returned_ns;
    request.posting_ns = 0;
    request.state = returned_ns << state::BITS | request.state & state::FLAGS | state::ACTIVE;
    tables.keep_started(key, &request);
}

/// A request is given up by a call that was entered at `started_ns`: what it moves remains unknown.
#[inline(always)]
pub fn give_up<T: Operations>(tables: &mut T, key: &RequestKey, started_ns: u64) {
    let mut request = Request::default();
    if tables.take_given_up(key, started_ns, &mut request) {
        tables.changed(key, &request, What::Releases);
        if request.state & state::BY_STATUS != 0 && request.source != peer::NULL {
            let statistics = tables.statistics(request.function);
            let flow = tables.own_flow(request.receiving_flow_plus_1());
            tables.add_unknown(statistics, flow);
        }
    } else if tables.writes_changes() && tables.see_persistent(key, &mut request) {
        tables.changed(key, &request, What::Releases);
    }
    tables.forget_persistent(key, started_ns);
}

/// Whether a handle is that of an operation: neither none, nor one that many share which were complete from the start.
#[inline(always)]
pub fn is_followed(layout: &Layout, handle: u64) -> bool {
    handle != layout.constants.request_null && !is_complete_request(layout, handle)
}

/// A probe has matched a message: remembers from whom, and over which communicator. `message` is what was found out about the call.
#[inline(always)]
pub fn matched<A: Arguments, T: Operations>(call: &Call<'_, A>, tables: &mut T, process: u32, message: &mut Request) {
    if !call.is_complete() {
        return;
    }
    let constants = &call.layout.constants;
    let Some(handle) = call.handle_at(call.word(call.descriptor.message)) else { return };
    if handle == constants.message_no_proc || handle == constants.message_null {
        return;
    }
    message.source = completed_source(call, message.source);
    tables.keep_message(&RequestKey { process, kind: key_kind::MESSAGE, handle }, message);
}
