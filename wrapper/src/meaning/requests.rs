//! Operations from the call that posts them to the one that completes them.
//!
//! Handles are remembered at the entry, since they are gone when the call returns.

use mpiprobe_common::{
    Amount, Descriptor, Loss, Request, RequestKey,
    descriptor::{NONE, amount as kind, completion, flags},
    flow::{Sought, peer},
    layout::{Memory as _, is_complete_request, status_source},
    request::{FAILED, HANDLES, certainty, key_kind, state},
    rules::completion::{self as completed, Told},
};

use super::{
    Call, Traffic, add_received, add_sent, add_unknown,
    arguments::{Arguments, Own, handle_at, int_at},
    communicator, completed_source, flow,
    library::Library,
    store,
};
use crate::{process, thread::Local};

/// The handles that a thread's open call was given.
#[repr(C)]
pub(crate) struct Given {
    /// How many are remembered.
    handles: u32,
    reserved: u32,
    words: [u64; HANDLES],
}

/// Remembers the handles that a call is given: of requests, or of a message.
///
/// # Safety
/// `given` must be the thread's own; the arguments must be those of a correct program.
pub(super) unsafe fn remember(given: *mut Given, library: &Library, descriptor: &Descriptor, arguments: Arguments) {
    let is_message = descriptor.completion <= completion::MATCHES;
    let position = if is_message { descriptor.message } else { descriptor.request };
    let address = arguments.word(position);
    let mut wanted = 1;
    if !is_message && descriptor.request_count != NONE {
        wanted = u32::try_from(arguments.int(descriptor.request_count)).unwrap_or(0);
    }
    let mut kept = 0;
    // SAFETY: by contract.
    unsafe {
        for word in (*given).words.iter_mut().take(wanted as usize) {
            let place = address.wrapping_add(u64::from(kept) * u64::from(library.layout.handle_width()));
            let Some(handle) = handle_at(&library.layout, place) else { break };
            *word = handle;
            kept += 1;
        }
        (*given).handles = kept;
    }
    if kept < wanted {
        process::count_loss(Loss::RequestsNotFollowed);
    }
}

/// The handle that was remembered.
fn given(call: &Call<'_>, index: u32) -> Option<u64> {
    // SAFETY: the thread's own.
    unsafe {
        let given = &(*call.local).given;
        given.words.get(..given.handles as usize)?.get(index as usize).copied()
    }
}

/// Remembers the operation that the call has posted, or made to be started later.
pub(super) fn post(call: &Call<'_>, traffic: &Traffic) {
    let layout = &call.library.layout;
    let is_access = call.descriptor.completion == completion::BEGINS;
    let handle = if is_access {
        Some(call.arguments.word(call.descriptor.file))
    } else {
        handle_at(layout, call.arguments.word(call.descriptor.request))
    };
    let Some(handle) = handle.filter(|&handle| is_access || handle != layout.constants.request_null) else { return };
    let mut bits = 0;
    if call.descriptor.receive_amount & kind::KIND == kind::STATUS {
        bits |= state::BY_STATUS;
    }
    bits |= if call.descriptor.flags & flags::PERSISTENT != 0 { state::PERSISTENT } else { state::ACTIVE };
    if !is_access && is_complete_request(layout, handle) {
        if bits & state::ACTIVE != 0 {
            complete_at_once(call, traffic, bits);
        } else {
            process::count_loss(Loss::RequestsNotFollowed);
        }
        return;
    }
    let mut tag = 0;
    let receives = call.descriptor.receive_tag != NONE;
    let position = if receives { call.descriptor.receive_tag } else { call.descriptor.send_tag };
    if position != NONE {
        tag = call.arguments.int(position);
        bits |= state::TAGGED;
    }
    let request = Request {
        posted_ns: call.returned_ns,
        posting_ns: call.ns,
        call_site: call.call_site,
        communicator: traffic.communicator,
        sent: traffic.sent,
        received: traffic.received,
        communicator_number: traffic.number,
        flow_plus_1: traffic.flow_plus_1,
        second_flow_plus_1: traffic.second_flow_plus_1,
        destination: traffic.destination,
        source: traffic.source,
        tag,
        function: call.function as u16,
        started_by_plus_1: 0,
        reserved: 0,
        state: call.returned_ns << state::BITS | bits,
    };
    let kind = if is_access { key_kind::ACCESS } else { key_kind::REQUEST };
    store::keep(key(call, kind, handle), &request);
}

fn key(call: &Call<'_>, kind: u32, handle: u64) -> RequestKey {
    // SAFETY: the thread's own.
    RequestKey { process: unsafe { (*call.local).number }, kind, handle }
}

/// The library has given the request that all operations have in common which are complete from the start.
fn complete_at_once(call: &Call<'_>, traffic: &Traffic, bits: u64) {
    add_completed(traffic.flow_plus_1, 0, 0);
    if bits & state::BY_STATUS != 0 && traffic.source != peer::NULL {
        add_unknown(call.local, call.function, traffic.receiving());
    }
}

fn add_completed(flow_plus_1: u32, pending_ns: u64, waited_ns: u64) {
    // SAFETY: the callers' own.
    if let Some(flow) = unsafe { flow::mine(flow_plus_1) } {
        flow.completed += 1;
        flow.pending_ns += pending_ns;
        flow.waited_ns += waited_ns;
    }
}

/// A probe has matched a message: remembers from whom, and over which communicator.
pub(super) fn matched(call: &Call<'_>, traffic: &Traffic) {
    if !is_complete(call) {
        return;
    }
    let constants = &call.library.layout.constants;
    let Some(handle) = handle_at(&call.library.layout, call.arguments.word(call.descriptor.message)) else { return };
    if handle == constants.message_no_proc || handle == constants.message_null {
        return;
    }
    let message = Request {
        posted_ns: call.returned_ns,
        communicator: traffic.communicator,
        communicator_number: traffic.number,
        source: completed_source(call, traffic.source),
        state: call.returned_ns << state::BITS | state::ACTIVE,
        ..Request::default()
    };
    store::keep(key(call, key_kind::MESSAGE, handle), &message);
}

/// Whom the message is from that the completed call has received, and over which communicator.
pub(super) fn take_message(call: &Call<'_>) -> (i32, Option<u64>) {
    let Some(handle) = given(call, 0) else { return (peer::UNKNOWN, None) };
    if handle == call.library.layout.constants.message_no_proc {
        return (peer::NULL, None);
    }
    match store::take(key_kind::MESSAGE, handle, call.started_ns) {
        Some(message) => (message.source, Some(message.communicator).filter(|&handle| handle != 0)),
        None => (peer::UNKNOWN, None),
    }
}

/// The call was given a message that nobody asks about: it is received now, unless the call has refused to.
pub(super) fn drop_message(call: &Call<'_>) {
    let left = handle_at(&call.library.layout, call.arguments.word(call.descriptor.message));
    if left == Some(call.library.layout.constants.message_null) {
        take_message(call);
    }
}

/// Whether the call says that anything is complete.
fn is_complete(call: &Call<'_>) -> bool {
    let descriptor = call.descriptor;
    descriptor.is_complete == NONE || int_at(call.arguments.word(descriptor.is_complete)).unwrap_or(0) != 0
}

/// Accounts for the requests that the call has completed, started or given up. `own_flow`: the call's own, by index plus one.
pub(super) fn settle(call: &Call<'_>, own_flow: u32) {
    let descriptor = call.descriptor;
    let told = completed::told(&call.library.layout, descriptor, call.result);
    if told == Told::Nothing || (told == Told::ByCall && !is_complete(call)) {
        return;
    }
    if descriptor.completion == completion::ENDS {
        let status = if call.result == 0 { status_address(call, 0) } else { FAILED };
        complete(call, key_kind::ACCESS, call.arguments.word(descriptor.file), status, call.ns);
        return;
    }
    let int = |position| int_at(call.arguments.word(position)).and_then(|int| u32::try_from(int).ok());
    // SAFETY: the thread's own.
    let given_handles = unsafe { (*call.local).given.handles };
    let is_some = descriptor.completion == completion::SOME && told == Told::ByCall;
    let (end, sharers) = match descriptor.completion {
        completion::ANY if told == Told::ByCall => {
            let Some(index) = int(descriptor.index) else { return };
            one(call, index, 0, call.ns, own_flow);
            return;
        }
        completion::SOME if is_some => {
            let Some(count) = int(descriptor.index_count) else { return };
            (count, count)
        }
        _ => {
            let null = call.library.layout.constants.request_null;
            let requests = (0..given_handles).filter(|&index| given(call, index).is_some_and(|handle| handle != null));
            (given_handles, requests.count() as u32)
        }
    };
    let share_ns = call.ns.checked_div(u64::from(sharers)).unwrap_or(0);
    for position in 0..if end < given_handles { end } else { given_handles } {
        let mut index = position;
        if is_some {
            let place = call.arguments.word(descriptor.index).wrapping_add(u64::from(position) * 4);
            index = Own.integer(place, 4).unwrap_or(u64::from(u32::MAX)) as u32;
        }
        one(call, index, position, share_ns, own_flow);
    }
}

/// The request that was given at `index`, whose status is at `position`.
fn one(call: &Call<'_>, index: u32, position: u32, share_ns: u64, own_flow: u32) {
    let Some(handle) = given(call, index) else { return };
    let layout = &call.library.layout;
    if handle == layout.constants.request_null || is_complete_request(layout, handle) {
        return;
    }
    match call.descriptor.completion {
        completion::STARTS => start(call, handle, own_flow),
        completion::FREES => free(call.local, handle, call.started_ns),
        _ => {
            let mut status = status_address(call, position);
            if call.result != 0 {
                let place = u64::from(index) * u64::from(layout.handle_width());
                let left = handle_at(layout, call.arguments.word(call.descriptor.request).wrapping_add(place));
                let is_persistent = store::persistent(key_kind::REQUEST, handle).is_some();
                let left = left.unwrap_or(handle);
                match completed::after_error(layout, call.descriptor, call.result, is_persistent, left, status, &Own) {
                    Some(how) => status = how,
                    None => return,
                }
            }
            complete(call, key_kind::REQUEST, handle, status, share_ns);
        }
    }
}

/// Where the status of the `position`-th completed request is; 0: the program does not want it.
fn status_address(call: &Call<'_>, position: u32) -> u64 {
    let descriptor = call.descriptor;
    if descriptor.status == NONE {
        return 0;
    }
    let layout = &call.library.layout;
    let status = call.arguments.word(descriptor.status);
    let is_one = descriptor.request_count == NONE || descriptor.completion == completion::ANY;
    let ignored = if is_one { layout.constants.status_ignore } else { layout.constants.statuses_ignore };
    if status == ignored { 0 } else { status.wrapping_add(u64::from(position) * u64::from(layout.status.size)) }
}

fn complete(call: &Call<'_>, kind: u32, handle: u64, status: u64, share_ns: u64) {
    let Some(request) = store::take(kind, handle, call.started_ns) else { return };
    let mut main_flow = flow::own(call.local, request.flow_plus_1);
    if request.state & state::BY_STATUS != 0 && request.source != peer::NULL {
        let received = request.arrived(&call.library.layout, status, &Own);
        let is_exchange = request.second_flow_plus_1 != 0;
        let mut flow = if is_exchange { flow::own(call.local, request.second_flow_plus_1) } else { main_flow };
        if request.source == peer::ANY && status != 0 && received.certainty != certainty::NOTHING {
            flow = true_flow(call, &request, flow, main_flow, status);
            if !is_exchange {
                main_flow = flow;
            }
        }
        let function = u32::from(request.function);
        if received.certainty == certainty::UNKNOWN {
            add_unknown(call.local, function, flow);
        } else {
            add_received(call.local, function, flow, received);
        }
    }
    add_completed(main_flow, call.returned_ns.saturating_sub(request.posted_ns), share_ns);
}

/// Moves a call from the flow of receives from anybody to that of the true source.
fn true_flow(call: &Call<'_>, request: &Request, from: u32, main_flow: u32, status: u64) -> u32 {
    let partner = match status_source(&call.library.layout, status, &Own) {
        // The members of a communicator cannot be found any more when it has been freed meanwhile.
        Some(rank) if rank >= 0 && !communicator::is_freed(request.communicator_number) => rank,
        _ => peer::UNKNOWN,
    };
    let flow = look_up(call, request, partner);
    if flow == 0 {
        return from;
    }
    let is_exchange = request.second_flow_plus_1 != 0;
    let ns = if is_exchange { 0 } else { request.posting_ns };
    // The calls may be in another thread's flow: numbers that wrap round take away, once all threads' are added up.
    add_calls(from, 1u64.wrapping_neg(), ns.wrapping_neg());
    // An exchange with one partner is one call with it.
    if !is_exchange || flow != main_flow {
        add_calls(flow, 1, ns);
    }
    flow
}

fn add_calls(flow_plus_1: u32, calls: u64, ns: u64) {
    // SAFETY: the callers' own.
    if let Some(flow) = unsafe { flow::mine(flow_plus_1) } {
        flow.calls = flow.calls.wrapping_add(calls);
        flow.time_ns = flow.time_ns.wrapping_add(ns);
    }
}

/// Index plus one of the flow of an operation with a partner.
fn look_up(call: &Call<'_>, request: &Request, partner: i32) -> u32 {
    flow::look_up(call, &Sought::of(request, partner))
}

/// The call has started a persistent operation.
fn start(call: &Call<'_>, handle: u64, own_flow: u32) {
    let function_plus_1 = call.function as u16 + 1;
    let Some(mut request) = store::persistent(key_kind::REQUEST, handle) else {
        // Made by a call that was not followed.
        if call.is_counted {
            add_unknown(call.local, call.function, own_flow);
        }
        return;
    };
    if request.started_by_plus_1 == function_plus_1 {
        request.flow_plus_1 = flow::own(call.local, request.flow_plus_1);
    } else {
        request.started_by_plus_1 = function_plus_1;
        let first = if request.destination == peer::NONE { request.source } else { request.destination };
        request.flow_plus_1 = look_up(call, &request, first);
    }
    add_calls(request.flow_plus_1, 1, 0);
    if request.destination != peer::NULL && request.source != peer::NULL {
        let by_status = request.state & state::BY_STATUS != 0;
        let received = if by_status { Amount::NOTHING } else { request.received };
        let function = u32::from(request.function);
        if request.sent.certainty == certainty::UNKNOWN || received.certainty == certainty::UNKNOWN {
            add_unknown(call.local, function, request.flow_plus_1);
        }
        add_sent(call.local, function, request.flow_plus_1, request.sent);
        add_received(call.local, function, request.flow_plus_1, received);
    }
    request.posted_ns = call.returned_ns;
    request.posting_ns = 0;
    request.state = call.returned_ns << state::BITS | request.state & state::FLAGS | state::ACTIVE;
    store::keep(key(call, key_kind::REQUEST, handle), &request);
}

/// A request is given up: what it moves remains unknown.
fn free(local: *mut Local, handle: u64, started_ns: u64) {
    if let Some(request) = store::take(key_kind::REQUEST, handle, started_ns)
        && request.state & state::BY_STATUS != 0
        && request.source != peer::NULL
    {
        let flow = flow::own(local, request.receiving_flow_plus_1());
        add_unknown(local, u32::from(request.function), flow);
    }
    store::remove(key_kind::REQUEST, handle);
}

/// The same by a call that is not counted, of the request whose handle is at the address.
pub(super) fn give_up(local: *mut Local, library: &Library, address: u64) {
    let layout = &library.layout;
    if let Some(handle) = handle_at(layout, address)
        && handle != layout.constants.request_null
        && !is_complete_request(layout, handle)
    {
        free(local, handle, u64::MAX);
    }
}

/// Nothing is remembered of a thread's next call.
///
/// # Safety
/// `local` must be the thread's own.
pub(super) unsafe fn forget_given(local: *mut Local) {
    // SAFETY: by contract.
    unsafe { (*local).given.handles = 0 };
}
