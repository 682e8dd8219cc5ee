//! What becomes of one operation by a call that completes, starts or gives up its request.

use mpiprobe_common::{
    Amount, Layout, Request, RequestKey, ThreadState,
    flow::{Sought, peer},
    layout::status_source,
    request::{certainty, state},
};

use super::{
    add_received, add_sent, add_unknown, communicator, flow,
    post::{make_room, take},
    stats_of,
    user::User,
};
use crate::{
    atomic::{barrier, compare_exchange},
    maps::REQUESTS,
};

/// Whether the operation may be a receive from anybody: the handle's latest one, or one that was put aside.
#[inline(always)]
pub fn may_be_from_anybody(key: &RequestKey, started_ns: u64) -> bool {
    let Some(known) = REQUESTS.get_ptr(key) else { return false };
    // SAFETY: map value pointer.
    let (source, posted_ns, state) = unsafe { ((*known).source, (*known).posted_ns, (*known).state) };
    source == peer::ANY || posted_ns > started_ns || state & state::ACTIVE == 0
}

/// The thread's completed call has completed an operation. `FINDS_SOURCE`: the true source of a receive from anybody is looked up.
#[inline(never)]
pub fn complete<const FINDS_SOURCE: bool>(thread: &ThreadState, layout: &Layout, key: &RequestKey, status: u64) {
    let mut request = Request::default();
    if !take(key, thread.open.started_ns, &mut request) {
        return;
    }
    let mut main_flow = request.flow_plus_1;
    if request.state & state::BY_STATUS != 0 && request.source != peer::NULL {
        let received = request.arrived(layout, status, &User);
        let arrived = received.certainty != certainty::NOTHING;
        let mut flow = request.receiving_flow_plus_1();
        if FINDS_SOURCE && request.source == peer::ANY && status != 0 && arrived {
            flow = true_flow(key.process, layout, &request, flow, status);
            if request.second_flow_plus_1 == 0 {
                main_flow = flow;
            }
        }
        let stats = stats_of(key.process, request.function);
        if received.certainty == certainty::UNKNOWN {
            add_unknown(stats, flow);
        } else if arrived {
            add_received(stats, flow, received);
        }
    }
    flow::add_completed(main_flow, thread.last_return_ns - request.posted_ns, thread.following.share_ns);
}

/// Moves a call from the flow of receives from anybody to that of the true source.
#[inline(always)]
fn true_flow(process: u32, layout: &Layout, request: &Request, from: u32, status: u64) -> u32 {
    let partner = match status_source(layout, status, &User) {
        // The members of a communicator cannot be found any more when it has been freed meanwhile.
        Some(rank) if rank >= 0 && communicator::is_alive(request.communicator_number, request.communicator) => rank,
        _ => peer::UNKNOWN,
    };
    let Some(flow) = look_up(process, layout, request, partner) else { return from };
    let is_exchange = request.second_flow_plus_1 != 0;
    let ns = if is_exchange { 0 } else { request.posting_ns };
    flow::add_calls(from, u64::MAX, ns.wrapping_neg());
    // An exchange with one partner is one call with it.
    if !is_exchange || flow != request.flow_plus_1 {
        flow::add_calls(flow, 1, ns);
    }
    flow
}

/// Index plus one of the flow of an operation with a partner.
#[inline(always)]
fn look_up(process: u32, layout: &Layout, request: &Request, partner: i32) -> Option<u32> {
    flow::look_up(process, layout, &Sought::of(request, partner)).map(|flow| flow + 1)
}

/// The thread's completed call has started a persistent operation.
#[inline(never)]
pub fn start(thread: &ThreadState, layout: &Layout, key: &RequestKey) {
    let function_plus_1 = thread.completed.function as u16 + 1;
    // SAFETY: map value pointer; one word, read once.
    let known = REQUESTS.get_ptr_mut(key).filter(|&known| unsafe { (*known).can_be_started() });
    let Some(known) = known else {
        // Made before mpiprobe came. What is there is an earlier operation that had the same handle.
        add_unknown(thread.completed.stats_plus_1, thread.completed.flow_plus_1);
        return;
    };
    make_room(key, known);
    // SAFETY: map value pointer; since the operation is not active, only the thread that starts it writes.
    let mut request = unsafe { *known };
    if request.started_by_plus_1 != function_plus_1 {
        request.started_by_plus_1 = function_plus_1;
        let first = if request.destination == peer::NONE { request.source } else { request.destination };
        request.flow_plus_1 = look_up(key.process, layout, &request, first).unwrap_or(0);
    }
    flow::add_calls(request.flow_plus_1, 1, 0);
    let by_status = request.state & state::BY_STATUS != 0;
    let is_nobody = request.destination == peer::NULL || request.source == peer::NULL;
    if !is_nobody {
        let received = if by_status { Amount::NOTHING } else { request.received };
        let stats = stats_of(key.process, request.function);
        if request.sent.certainty == certainty::UNKNOWN || received.certainty == certainty::UNKNOWN {
            add_unknown(stats, request.flow_plus_1);
        }
        if request.sent.certainty != certainty::NOTHING {
            add_sent(stats, request.flow_plus_1, request.sent);
        }
        if received.certainty != certainty::NOTHING {
            add_received(stats, request.flow_plus_1, received);
        }
    }
    request.posted_ns = thread.last_return_ns;
    request.posting_ns = 0;
    let flags = request.state & state::FLAGS | state::ACTIVE;
    request.state = 0;
    // SAFETY: as above.
    unsafe {
        *known = request;
        barrier();
        (&raw mut (*known).state).write_volatile(thread.last_return_ns << state::BITS | flags);
    }
}

/// A request is given up by a call that was entered at `started_ns`: what it moves remains unknown.
#[inline(never)]
pub fn free(key: &RequestKey, started_ns: u64) -> u32 {
    let mut request = Request::default();
    if take(key, started_ns, &mut request) && request.state & state::BY_STATUS != 0 && request.source != peer::NULL {
        add_unknown(stats_of(key.process, request.function), request.receiving_flow_plus_1());
    }
    forget_persistent(key, started_ns);
    0
}

/// A handle may mean another request from now on, which cannot be started as the one that it meant.
#[inline(always)]
fn forget_persistent(key: &RequestKey, started_ns: u64) {
    let Some(known) = REQUESTS.get_ptr_mut(key) else { return };
    // SAFETY: map value pointers to aligned words.
    unsafe {
        let state = (*known).state;
        if state & state::PERSISTENT != 0 && state & state::ACTIVE == 0 && (*known).posted_ns <= started_ns {
            // Another thread may have got the handle meanwhile: then it is that thread's.
            compare_exchange(&raw mut (*known).state, state, state & !state::PERSISTENT);
        }
    }
}

/// Whether the request of a handle is persistent.
#[inline(always)]
pub fn is_persistent(key: &RequestKey) -> bool {
    // SAFETY: map value pointer; one word, read once.
    REQUESTS.get_ptr(key).is_some_and(|known| unsafe { (*known).can_be_started() })
}
