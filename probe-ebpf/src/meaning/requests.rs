//! The starting, completing and giving up of requests.
//!
//! Handles are remembered at the entry, since they are gone when the call returns.

use aya_ebpf::{EbpfContext, helpers::generated::bpf_probe_read_user};
use mpiprobe_common::{
    Amount, Descriptor, Layout, Loss, Request, RequestKey, ThreadState,
    config::{CONTROL_NEXT_HANDLES, STAGE_FOLLOW, STAGE_FOLLOW_ANY, STAGE_START},
    descriptor::{NONE, completion},
    flow::peer,
    layout::{handle_kind, is_complete_request, status_bytes, status_cancelled, status_source},
    request::{HANDLES as MOST_HANDLES, certainty, key_kind, state},
};

use super::{
    add_received, add_sent, add_unknown, arguments::Arguments, can_follow, communicator, completed,
    flow::{self, Sought},
    next,
    post::{make_room, take},
    stats_of,
    user::{User, handle_at, int_at},
};
use crate::{
    atomic::barrier,
    maps::{HANDLES, LAYOUTS, REQUESTS, configured},
    statistics::{count_loss, take_number},
};

/// Requests that one run of the program goes through; the kernel allows 33 runs in a row.
const CHUNK: u32 = 40;
/// The same where flows have to be looked up, which takes the verifier long.
const SMALL_CHUNK: u32 = 8;

/// Remembers the handles that the call was given: of requests, or of a message.
#[inline(never)]
pub fn remember(thread: &mut ThreadState, descriptor: &Descriptor, position: u8) {
    thread.following.handles = 0;
    let Some(layout) = LAYOUTS.get_ptr(thread.process) else { return };
    // SAFETY: map value pointer, written once.
    let layout = unsafe { &*layout };
    if !can_follow(layout) {
        return;
    }
    let arguments = Arguments::of(thread, layout);
    let address = arguments.word(position);
    let kept = if descriptor.request_count == NONE {
        match handle_at(layout, address) {
            Some(handle) => {
                thread.following.handle = handle;
                Some(1)
            }
            None => None,
        }
    } else {
        let count = arguments.int(descriptor.request_count);
        if count <= 0 {
            return;
        }
        copy(thread, address, count as u32, layout.handles == handle_kind::INTEGER)
    };
    match kept {
        Some(kept) => thread.following.handles = kept,
        None => count_loss(thread.process, Loss::RequestsNotFollowed),
    }
}

/// Copies an array of handles to the thread's store; gives how many.
#[inline(always)]
fn copy(thread: &mut ThreadState, address: u64, count: u32, is_integer: bool) -> Option<u32> {
    if thread.following.store_plus_1 == 0 {
        thread.following.store_plus_1 = take_number(CONTROL_NEXT_HANDLES, configured::handle_stores())? + 1;
    }
    let store = HANDLES.get_ptr_mut(thread.following.store_plus_1.wrapping_sub(1))?;
    let mut kept = count;
    if kept > MOST_HANDLES as u32 {
        kept = MOST_HANDLES as u32;
        count_loss(thread.process, Loss::RequestsNotFollowed);
    }
    let bytes = if is_integer { kept * 4 } else { kept * 8 };
    // SAFETY: reads user memory by the helper made for that, into a map value of at least the size given.
    let result = unsafe { bpf_probe_read_user(store.cast(), bytes, address as *const _) };
    if result == 0 { Some(kept) } else { None }
}

/// Finds out which requests the thread's completed call has completed or started.
#[inline(always)]
pub fn settle(context: &impl EbpfContext) {
    let Some((thread, descriptor, layout)) = completed() else { return };
    if descriptor.completion == completion::ENDS {
        thread.following.handles = 1;
    }
    let arguments = Arguments::of(thread, layout);
    let handles = thread.following.handles;
    if handles == 0 {
        return;
    }
    if descriptor.is_complete != NONE && int_at(arguments.word(descriptor.is_complete)).unwrap_or(0) == 0 {
        return;
    }
    let (mut end, mut sharers) = (handles, handles);
    match descriptor.completion {
        completion::ANY => {
            let index = int_at(arguments.word(descriptor.index)).unwrap_or(-1);
            if index < 0 || index as u32 >= handles {
                return;
            }
            thread.following.only = index as u32;
            (end, sharers) = (1, 1);
        }
        completion::SOME => {
            let count = int_at(arguments.word(descriptor.index_count)).unwrap_or(-1);
            if count <= 0 {
                return;
            }
            end = if (count as u32) < handles { count as u32 } else { handles };
            sharers = count as u32;
        }
        _ if descriptor.request_count != NONE => {
            count_requests(thread, layout);
            sharers = thread.following.requests;
        }
        _ => {}
    }
    if sharers == 0 {
        return;
    }
    thread.following.share_ns = thread.completed.ns / sharers as u64;
    thread.following.next = 0;
    thread.following.end = end;
    if descriptor.completion == completion::STARTS {
        next(context, STAGE_START);
    } else {
        next(context, STAGE_FOLLOW);
    }
}

/// How many of the handles remembered are not `MPI_REQUEST_NULL`. Counts in memory, whose value the verifier does not follow.
#[inline(always)]
fn count_requests(thread: &mut ThreadState, layout: &Layout) {
    let is_integer = layout.handles == handle_kind::INTEGER;
    thread.following.requests = 0;
    for index in 0..MOST_HANDLES as u32 {
        if index >= thread.following.handles {
            break;
        }
        if remembered(thread, index, is_integer) != layout.constants.request_null {
            let requests = &raw mut thread.following.requests;
            // SAFETY: a field of the thread's state, which only the thread writes.
            unsafe { requests.write_volatile(requests.read_volatile() + 1) };
        }
    }
}

#[inline(always)]
fn remembered(thread: &ThreadState, index: u32, is_integer: bool) -> u64 {
    let Some(store) = HANDLES.get_ptr(thread.following.store_plus_1.wrapping_sub(1)) else { return 0 };
    let index = index as usize & (MOST_HANDLES - 1);
    // SAFETY: map value pointer; the mask keeps the index within the array.
    unsafe {
        if is_integer {
            *store.cast::<u32>().add(index) as u64
        } else {
            *store.cast::<u64>().add(index)
        }
    }
}

/// Goes through the requests that are complete, or given up.
#[inline(always)]
pub fn follow(context: &impl EbpfContext) {
    match go_on::<SIMPLE>(CHUNK) {
        Progress::Done => {}
        Progress::NeedsSource => hand_over(context, STAGE_FOLLOW_ANY),
        Progress::Later => hand_over(context, STAGE_FOLLOW),
    }
}

/// The same, with the true sources of receives from anybody.
#[inline(always)]
pub fn follow_any(context: &impl EbpfContext) {
    match go_on::<WITH_SOURCE>(SMALL_CHUNK) {
        Progress::Done => {}
        _ => hand_over(context, STAGE_FOLLOW),
    }
}

/// Goes through the requests that are started.
#[inline(always)]
pub fn start(context: &impl EbpfContext) {
    match go_on::<START>(SMALL_CHUNK) {
        Progress::Done => {}
        _ => hand_over(context, STAGE_START),
    }
}

/// The rest is for another run. The kernel allows so many; what remains then is counted.
#[inline(always)]
fn hand_over(context: &impl EbpfContext, stage: u32) {
    next(context, stage);
    if let Some((thread, ..)) = completed() {
        count_loss(thread.process, Loss::RequestsNotFollowed);
    }
}

/// What is done to requests.
const SIMPLE: u32 = 0;
const WITH_SOURCE: u32 = 1;
const START: u32 = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Done,
    Later,
    NeedsSource,
}

#[inline(always)]
fn go_on<const WHAT: u32>(chunk: u32) -> Progress {
    let Some((thread, descriptor, layout)) = completed() else { return Progress::Done };
    for _ in 0..chunk {
        if thread.following.next >= thread.following.end {
            return Progress::Done;
        }
        if one::<WHAT>(thread, descriptor, layout) != 0 {
            return Progress::NeedsSource;
        }
        thread.following.next += 1;
    }
    if thread.following.next >= thread.following.end { Progress::Done } else { Progress::Later }
}

/// The next one of them. Not 0: another program has to do it.
#[inline(never)]
fn one<const WHAT: u32>(thread: &ThreadState, descriptor: &Descriptor, layout: &Layout) -> u32 {
    let arguments = Arguments::of(thread, layout);
    let following = &thread.following;
    let is_array = descriptor.request_count != NONE;
    let index = match descriptor.completion {
        completion::ANY => following.only,
        completion::SOME => {
            let place = arguments.word(descriptor.index) + following.next as u64 * 4;
            int_at(place).unwrap_or(i32::MAX) as u32
        }
        _ => following.next,
    };
    if index >= following.handles {
        return 0;
    }
    if descriptor.completion == completion::ENDS {
        if WHAT == SIMPLE {
            let key =
                RequestKey { process: thread.process, kind: key_kind::ACCESS, handle: arguments.word(descriptor.file) };
            complete::<WHAT>(thread, layout, &key, status_address(&arguments, descriptor, layout, 0));
        }
        return 0;
    }
    let is_integer = layout.handles == handle_kind::INTEGER;
    let handle = if is_array { remembered(thread, index, is_integer) } else { following.handle };
    if handle == layout.constants.request_null || is_complete_request(layout, handle) {
        return 0;
    }
    let key = RequestKey { process: thread.process, kind: key_kind::REQUEST, handle };
    if WHAT == START {
        start_one(thread, layout, &key);
    } else if descriptor.completion == completion::FREES {
        free(thread, &key);
    } else {
        let status = status_address(&arguments, descriptor, layout, following.next);
        if WHAT == SIMPLE && status != 0 && may_be_from_anybody(&key, thread.open.started_ns) {
            return 1;
        }
        complete::<WHAT>(thread, layout, &key, status);
    }
    0
}

/// Whether the operation may be a receive from anybody: the handle's latest one, or one that was put aside.
#[inline(always)]
fn may_be_from_anybody(key: &RequestKey, started_ns: u64) -> bool {
    let Some(known) = REQUESTS.get_ptr(key) else { return false };
    // SAFETY: map value pointer.
    let (source, posted_ns, state) = unsafe { ((*known).source, (*known).posted_ns, (*known).state) };
    source == peer::ANY || posted_ns > started_ns || state & state::ACTIVE == 0
}

/// Where the status of the `position`-th completed request is; 0: the program does not want it.
#[inline(always)]
fn status_address(arguments: &Arguments<'_>, descriptor: &Descriptor, layout: &Layout, position: u32) -> u64 {
    if descriptor.status == NONE {
        return 0;
    }
    let status = arguments.word(descriptor.status);
    let is_one = descriptor.request_count == NONE || descriptor.completion == completion::ANY;
    if status == if is_one { layout.constants.status_ignore } else { layout.constants.statuses_ignore } {
        return 0;
    }
    status + position as u64 * layout.status.size as u64
}

#[inline(never)]
fn complete<const WHAT: u32>(thread: &ThreadState, layout: &Layout, key: &RequestKey, status: u64) {
    let mut request = Request::default();
    if !take(key, thread.open.started_ns, &mut request) {
        return;
    }
    let mut main_flow = request.flow_plus_1;
    if request.state & state::BY_STATUS != 0 && request.source != peer::NULL {
        let received = received(layout, &request, status);
        let arrived = received.certainty != certainty::NOTHING;
        let mut flow = if request.second_flow_plus_1 == 0 { main_flow } else { request.second_flow_plus_1 };
        if WHAT == WITH_SOURCE && request.source == peer::ANY && status != 0 && arrived {
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

/// What has arrived.
#[inline(always)]
fn received(layout: &Layout, request: &Request, status: u64) -> Amount {
    if status == 0 {
        return request.received;
    }
    // Only messages can be cancelled; Open MPI leaves that part of the status as it was for files.
    let is_message = request.state & state::TAGGED != 0;
    match if is_message { status_cancelled(layout, status, &User) } else { Some(false) } {
        Some(true) => Amount::NOTHING,
        Some(false) => status_bytes(layout, status, &User)
            .map_or(Amount::UNKNOWN, |bytes| Amount { bytes, certainty: certainty::KNOWN }),
        None => Amount::UNKNOWN,
    }
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
    let sought = Sought {
        function: request.function,
        started_by_plus_1: request.started_by_plus_1,
        number: request.communicator_number,
        communicator: request.communicator,
        call_site: request.call_site,
        partner,
    };
    flow::look_up(process, layout, &sought).map(|flow| flow + 1)
}

/// The thread's completed call has started a persistent operation.
#[inline(never)]
fn start_one(thread: &ThreadState, layout: &Layout, key: &RequestKey) {
    let function_plus_1 = thread.completed.function as u16 + 1;
    let Some(known) = REQUESTS.get_ptr_mut(key) else {
        // Made before mpiprobe came.
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

/// The thread's completed call has given a request up: what it moves remains unknown.
#[inline(never)]
fn free(thread: &ThreadState, key: &RequestKey) {
    let mut request = Request::default();
    if !take(key, thread.open.started_ns, &mut request) {
        return;
    }
    if request.state & state::BY_STATUS != 0 && request.source != peer::NULL {
        let flow = if request.second_flow_plus_1 == 0 { request.flow_plus_1 } else { request.second_flow_plus_1 };
        add_unknown(stats_of(key.process, request.function), flow);
    }
}
