//! Operations, from the call that posts them to the one that completes them: the rules that all engines have in common, each in a
//! function of its own, for which the stack has room.

use aya_ebpf::{EbpfContext, helpers::bpf_ktime_get_ns};
use mpiprobe_common::{
    Layout, Request, RequestKey, ThreadState,
    descriptor::completion,
    flow::peer,
    request::state,
    rules::operation::{self, Times},
};

use super::{arguments, completed, conclude, tables::InKernel, user::User};
use crate::maps::REQUESTS;

/// Remembers the operation that the thread's completed call has posted, or made to be started later; or the message that it has matched.
#[inline(always)]
pub fn post<const TRACED: bool>(context: &impl EbpfContext) {
    if let Some(thread) = remember::<TRACED>() {
        conclude::<TRACED>(context, thread);
    }
}

#[inline(always)]
fn remember<const TRACED: bool>() -> Option<&'static ThreadState> {
    let Some((thread, descriptor, layout)) = completed() else { return None };
    let given = arguments::call(thread, descriptor, layout);
    let call = &thread.completed;
    let mut tables = InKernel::<false, false>::of(thread, thread.process, layout);
    if descriptor.completion == completion::MATCHES {
        let mut message = Request {
            posted_ns: thread.last_return_ns,
            communicator: call.communicator_handle,
            communicator_number: call.communicator,
            source: call.source,
            function: if TRACED { call.function as u16 } else { 0 },
            // By which it is told from others that have, or had, the same handle.
            state: if TRACED { thread.last_return_ns << state::BITS } else { 0 },
            ..Request::default()
        };
        operation::matched(&given, &mut tables, thread.process, &mut message);
        return Some(thread);
    }
    let mut request = Request {
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
        tag: 0,
        function: call.function as u16,
        started_by_plus_1: 0,
        reserved: 0,
        state: 0,
    };
    thread.posted = operation::post(&given, &mut tables, thread.process, &mut request);
    Some(thread)
}

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
pub fn complete<const FINDS_SOURCE: bool, const TRACED: bool>(thread: &ThreadState, layout: &Layout, key: &RequestKey, status: u64) {
    let times = || Times {
        started_ns: thread.open.started_ns,
        returned_ns: thread.last_return_ns,
        share_ns: thread.following.share_ns,
    };
    let mut tables = InKernel::<FINDS_SOURCE, TRACED>::of(thread, key.process, layout);
    operation::complete(layout, &User, &mut tables, key, times, status);
}

/// A call that is not counted completes an operation: with what status, nobody sees.
#[inline(never)]
pub fn complete_unseen(thread: &ThreadState, layout: &Layout, key: &RequestKey) {
    // SAFETY: takes no arguments.
    let now = unsafe { bpf_ktime_get_ns() };
    let times = || Times { started_ns: now, returned_ns: now, share_ns: 0 };
    let mut tables = InKernel::<false, false>::of(thread, key.process, layout);
    operation::complete(layout, &User, &mut tables, key, times, 0);
}

/// The thread's completed call has started a persistent operation.
#[inline(never)]
pub fn start<const TRACED: bool>(thread: &ThreadState, layout: &Layout, key: &RequestKey) {
    let call = &thread.completed;
    let unknown = (call.stats_plus_1, call.flow_plus_1);
    let mut tables = InKernel::<false, TRACED>::of(thread, key.process, layout);
    operation::start(&mut tables, key, call.function as u16, thread.last_return_ns, unknown);
}

/// A request is given up by a call that was entered at `started_ns`.
#[inline(never)]
pub fn free<const TRACED: bool>(thread: &ThreadState, layout: &Layout, key: &RequestKey, started_ns: u64) -> u32 {
    operation::give_up(&mut InKernel::<false, TRACED>::of(thread, key.process, layout), key, started_ns);
    0
}

/// Whether the request of a handle is persistent.
#[inline(always)]
pub fn is_persistent(key: &RequestKey) -> bool {
    // SAFETY: map value pointer; one word, read once.
    REQUESTS.get_ptr(key).is_some_and(|known| unsafe { (*known).can_be_started() })
}
