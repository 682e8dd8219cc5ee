//! The posting of operations: what is remembered until they are complete.

use mpiprobe_common::{
    Loss, Request, RequestKey, ThreadState,
    descriptor::{NONE, amount as kind, completion, flags},
    flow::peer,
    layout::is_complete_request,
    request::{key_kind, receiving, state},
};

use super::{add_unknown, arguments::Arguments, completed, flow, message, user};
use crate::{
    atomic::{barrier, compare_exchange},
    maps::REQUESTS,
    statistics::count_loss,
};

/// Remembers the operation that the thread's completed call has posted, or made to be started later.
#[inline(always)]
pub fn post() {
    let Some((thread, descriptor, layout)) = completed() else { return };
    if descriptor.completion == completion::MATCHES {
        message::matched(thread, descriptor, layout);
        return;
    }
    let arguments = Arguments::of(thread, layout);
    let is_access = descriptor.completion == completion::BEGINS;
    let handle = if is_access {
        Some(arguments.word(descriptor.file))
    } else {
        user::handle_at(layout, arguments.word(descriptor.request))
    };
    let Some(handle) = handle else {
        count_loss(thread.process, Loss::RequestsNotFollowed);
        return;
    };
    if handle == layout.constants.request_null && !is_access {
        return;
    }
    let call = &thread.completed;
    let mut flags = 0;
    if descriptor.receive_amount & kind::KIND == kind::STATUS {
        flags |= state::BY_STATUS;
    }
    if descriptor.flags & flags::PERSISTENT != 0 {
        flags |= state::PERSISTENT;
    } else {
        flags |= state::ACTIVE;
    }
    if !is_access && is_complete_request(layout, handle) {
        if flags & state::ACTIVE != 0 {
            complete_at_once(thread, flags);
        } else {
            count_loss(thread.process, Loss::RequestsNotFollowed);
        }
        return;
    }
    let mut tag = 0;
    let position = if descriptor.receive_tag == NONE { descriptor.send_tag } else { descriptor.receive_tag };
    if position != NONE {
        tag = arguments.int(position);
        flags |= state::TAGGED;
    }
    let request = Request {
        posted_ns: thread.last_return_ns,
        posting_ns: call.ns,
        call_site: call.call_site,
        communicator: call.communicator_handle,
        sent: call.sent,
        received: call.received,
        communicator_number: call.communicator,
        flow_plus_1: call.flow_plus_1,
        second_flow_plus_1: call.second_flow_plus_1,
        destination: call.destination,
        source: call.source,
        tag,
        function: call.function as u16,
        started_by_plus_1: 0,
        reserved: 0,
        state: thread.last_return_ns << state::BITS | flags,
    };
    let kind = if is_access { key_kind::ACCESS } else { key_kind::REQUEST };
    keep(&RequestKey { process: thread.process, kind, handle }, &request);
}

/// The library has given the request that all operations have in common which are complete from the start.
#[inline(always)]
fn complete_at_once(thread: &ThreadState, flags: u64) {
    let call = &thread.completed;
    flow::add_completed(call.flow_plus_1, 0, 0);
    if flags & state::BY_STATUS != 0 && call.source != peer::NULL {
        add_unknown(call.stats_plus_1, receiving(call.flow_plus_1, call.second_flow_plus_1));
    }
}

/// Makes `request` the latest operation of a handle.
#[inline(never)]
fn keep(key: &RequestKey, request: &Request) {
    let Some(known) = REQUESTS.get_ptr_mut(key) else {
        if REQUESTS.insert(key, request, 0).is_err() {
            count_loss(key.process, Loss::RequestTableFull);
        }
        return;
    };
    make_room(key, known);
    // SAFETY: map value pointer; since the earlier operation is not active, only the thread that has got the handle writes.
    unsafe {
        let state = request.state;
        *known = Request { state: 0, ..*request };
        barrier();
        (&raw mut (*known).state).write_volatile(state);
    }
}

/// Puts an operation aside whose completing call has not returned yet although its handle is in use again.
#[inline(always)]
pub fn make_room(key: &RequestKey, known: *mut Request) {
    // SAFETY: map value pointer.
    let earlier = unsafe { *known };
    if earlier.state & state::ACTIVE == 0 {
        return;
    }
    let mut aside = RequestKey { kind: key_kind::DISPLACED, ..*key };
    if posted(&aside, u64::MAX) != 0 {
        aside.kind = key_kind::DISPLACED_TOO;
        if posted(&aside, u64::MAX) != 0 {
            count_loss(key.process, Loss::RequestsNotFollowed);
        }
    }
    if REQUESTS.insert(&aside, &earlier, 0).is_err() {
        count_loss(key.process, Loss::RequestTableFull);
    }
    // SAFETY: map value pointer to an aligned word.
    let found = unsafe { compare_exchange(&raw mut (*known).state, earlier.state, 0) };
    if found != earlier.state {
        // The other thread was quicker.
        let _ = REQUESTS.remove(&aside);
    }
}

/// Takes an operation out of a handle, to account for it; `false` if there is none that is active since before `started_ns`.
#[inline(always)]
pub fn take(key: &RequestKey, started_ns: u64, request: &mut Request) -> bool {
    if claim(key, started_ns, request) {
        return true;
    }
    let displaced = RequestKey { kind: key_kind::DISPLACED, ..*key };
    let too = RequestKey { kind: key_kind::DISPLACED_TOO, ..*key };
    // The latest that was there when the call began is its own.
    if posted(&too, started_ns) > posted(&displaced, started_ns) {
        claim(&too, started_ns, request)
    } else {
        claim(&displaced, started_ns, request)
    }
}

/// When the active operation of a key was posted, if not after `latest_ns`; else 0.
#[inline(never)]
fn posted(key: &RequestKey, latest_ns: u64) -> u64 {
    let Some(known) = REQUESTS.get_ptr(key) else { return 0 };
    // SAFETY: map value pointer.
    let (state, posted_ns) = unsafe { ((*known).state, (*known).posted_ns) };
    if state & state::ACTIVE != 0 && posted_ns <= latest_ns { posted_ns } else { 0 }
}

#[inline(always)]
fn claim(key: &RequestKey, started_ns: u64, request: &mut Request) -> bool {
    let Some(known) = REQUESTS.get_ptr_mut(key) else { return false };
    // SAFETY: map value pointers.
    unsafe {
        *request = *known;
        barrier();
        let active = request.state & state::ACTIVE != 0 && request.posted_ns <= started_ns;
        active && compare_exchange(&raw mut (*known).state, request.state, request.state & !state::ACTIVE) == request.state
    }
}
