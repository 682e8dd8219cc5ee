//! Operations from the call that posts them to the one that completes them.
//!
//! Handles are remembered at the entry, since they are gone when the call returns.

use mpiprobe_common::{
    Descriptor, Loss, Request, RequestKey,
    descriptor::completion,
    request::{MOST_HANDLES, key_kind},
    rules::{
        call::Call as AsGiven,
        handles::{Sender, length, sender},
        operation::{self, Times, is_followed},
        settling::{self, Sharers},
        tables::{Operations as _, What},
    },
};

use super::{
    Call, Traffic,
    arguments::{Arguments, Own, handle_at},
    communicator,
    library::Library,
    store,
    tables::OfThread,
};
use crate::{clock::monotonic_ns, process, thread::Local};

/// The handles that a thread's open call was given.
#[repr(C)]
pub(crate) struct Given {
    /// How many are remembered.
    handles: u32,
    reserved: u32,
    /// The window or file that it frees.
    freed: u64,
    /// What the request meant that it gives up; without a state: nothing.
    released: Request,
    words: [u64; MOST_HANDLES],
}

impl Given {
    /// Handle of the window or file that the open call was given to be freed; else whatever another call was given.
    pub(super) fn freed(&self) -> u64 {
        self.freed
    }
}

/// Remembers what the open call frees.
///
/// # Safety
/// `local` must be the thread's own.
pub(super) unsafe fn remember_freed(local: *mut Local, handle: u64) {
    // SAFETY: by contract.
    unsafe { (*local).given.freed = handle };
}

/// Takes out what the request that was [remembered](remember) means, which the open call gives up: as soon as the library has done
/// so, its handle may be another thread's.
///
/// # Safety
/// `local` must be the thread's own.
pub(super) unsafe fn take_given_up(local: *mut Local, library: &Library) {
    // SAFETY: by contract.
    let given = unsafe { &mut (*local).given };
    let handle = given.words.first().filter(|&&handle| given.handles == 1 && is_followed(&library.layout, handle));
    given.released = handle.and_then(|&handle| store::release(key_kind::REQUEST, handle)).unwrap_or_default();
}

/// Remembers the handles that a call is given: of requests, or of a message.
///
/// # Safety
/// `given` must be the thread's own; the arguments must be those of a correct program.
pub(super) unsafe fn remember(
    given: *mut Given,
    library: &Library,
    descriptor: &Descriptor,
    arguments: Arguments,
    position: u8,
) {
    let address = arguments.word(position);
    let wanted = length(&AsGiven { descriptor, layout: &library.layout, arguments }).unwrap_or(1);
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
    let mut request = Request {
        posted_ns: call.returned_ns,
        posting_ns: call.ns,
        call_site: call.call_site,
        communicator: traffic.communicator,
        sent: traffic.sent,
        received: traffic.received,
        communicator_number: traffic.number,
        flow_plus_1: traffic.flow_plus_1,
        second_flow_plus_1: traffic.second_flow_plus_1,
        destination: traffic.partners.destination,
        source: traffic.partners.source,
        tag: 0,
        function: call.function as u16,
        started_by_plus_1: 0,
        reserved: 0,
        state: 0,
    };
    operation::post(&call.given(), &mut call.tables(), number_of(call.local), &mut request);
}

/// What keys of the thread's operations have in place of the process's slot.
fn number_of(local: *mut Local) -> u32 {
    // SAFETY: the thread's own.
    unsafe { (*local).number }
}

/// A probe has matched a message: remembers from whom, and over which communicator.
pub(super) fn matched(call: &Call<'_>, traffic: &Traffic) {
    let mut message = Request {
        posted_ns: call.returned_ns,
        communicator: traffic.communicator,
        communicator_number: traffic.number,
        source: traffic.partners.source,
        function: call.function as u16,
        ..Request::default()
    };
    operation::matched(&call.given(), &mut call.tables(), number_of(call.local), &mut message);
}

/// Whom the message is from that the completed call has received, and over which communicator.
pub(super) fn take_message(call: &Call<'_>) -> Sender {
    sender(&call.library.layout, given(call, 0), |handle| {
        let message = store::take(key_kind::MESSAGE, handle, call.started_ns)?;
        let key = RequestKey { process: number_of(call.local), kind: key_kind::MESSAGE, handle };
        call.tables().changed(&key, &message, What::Completes { status: 0 });
        Some(Sender::of(&message, communicator::is_alive))
    })
}

/// The call was given a message that nobody asks about: it is received now, unless the call has refused to.
pub(super) fn drop_message(call: &Call<'_>) {
    let left = handle_at(&call.library.layout, call.arguments.word(call.descriptor.message));
    if left == Some(call.library.layout.constants.message_null) {
        take_message(call);
    }
}

/// The call lets partitions of a request go.
pub(super) fn ready(call: &Call<'_>) {
    let handle = call.arguments.handle(&call.library.layout, call.descriptor.request);
    if let Some(request) = store::persistent(key_kind::REQUEST, handle) {
        let key = RequestKey { process: number_of(call.local), kind: key_kind::REQUEST, handle };
        call.tables().changed(&key, &request, What::Readies);
    }
}

/// Accounts for the requests that the call has completed, started or given up. `own_flow`: the call's own, by index plus one.
pub(super) fn settle(call: &Call<'_>, own_flow: u32) {
    let is_access = call.descriptor.completion == completion::ENDS;
    // SAFETY: the thread's own.
    let handles = if is_access { 1 } else { unsafe { (*call.local).given.handles } };
    let asked = call.given();
    let Some(concerned) = settling::concerned(&asked, call.result, handles) else {
        put_back(call);
        return;
    };
    if is_access {
        let handle = call.arguments.word(call.descriptor.file);
        complete(call, key_kind::ACCESS, handle, settling::status_of_access(&asked, call.result), call.ns);
        return;
    }
    let sharers = match concerned.sharers {
        Sharers::Number(number) => number,
        Sharers::AllRequests => {
            let null = call.library.layout.constants.request_null;
            let requests = (0..handles).filter(|&index| given(call, index).is_some_and(|handle| handle != null));
            requests.count() as u32
        }
    };
    let Some(share_ns) = call.ns.checked_div(u64::from(sharers)) else { return };
    for position in 0..concerned.end {
        let index = settling::index_at(&asked, call.result, concerned.only, position);
        one(call, index, position, share_ns, own_flow);
    }
}

/// A request was not given up after all, if the call was to.
fn put_back(call: &Call<'_>) {
    if call.descriptor.completion != completion::FREES {
        return;
    }
    // SAFETY: the thread's own.
    let released = unsafe { &(*call.local).given.released };
    if released.state != 0
        && let Some(handle) = given(call, 0)
    {
        store::keep(RequestKey { process: number_of(call.local), kind: key_kind::REQUEST, handle }, released);
    }
}

/// The request that was given at `index`, whose status is at `position`.
fn one(call: &Call<'_>, index: u32, position: u32, share_ns: u64, own_flow: u32) {
    let Some(handle) = given(call, index) else { return };
    if !is_followed(&call.library.layout, handle) {
        return;
    }
    let key = RequestKey { process: number_of(call.local), kind: key_kind::REQUEST, handle };
    match call.descriptor.completion {
        completion::STARTS => {
            let unknown = (call.stats, own_flow);
            operation::start(&mut call.tables(), &key, call.function as u16, call.returned_ns, unknown);
        }
        completion::FREES => {
            // SAFETY: the thread's own.
            let released = unsafe { &(*call.local).given.released };
            operation::give_up(&mut call.tables().giving_up(released), &key, call.started_ns);
        }
        _ => {
            let asked = call.given();
            let mut status = asked.status(position);
            if call.result != 0 {
                let is_persistent = store::persistent(key_kind::REQUEST, handle).is_some();
                let how = settling::status_after_error(&asked, call.result, is_persistent, handle, index, position);
                match how {
                    Some(how) => status = how,
                    None => return,
                }
            }
            complete(call, key_kind::REQUEST, handle, status, share_ns);
        }
    }
}

fn complete(call: &Call<'_>, kind: u32, handle: u64, status: u64, share_ns: u64) {
    let key = RequestKey { process: number_of(call.local), kind, handle };
    let times = || Times { started_ns: call.started_ns, returned_ns: call.returned_ns, share_ns };
    operation::complete(&call.library.layout, &Own, &mut call.tables(), &key, times, status);
}

/// A request is given up by a call that is not counted; its handle is at the address.
///
/// # Safety
/// `local` must be the thread's own.
pub(super) unsafe fn give_up(local: *mut Local, library: &Library, address: u64) {
    if let Some(handle) = handle_at(&library.layout, address)
        && is_followed(&library.layout, handle)
    {
        let key = RequestKey { process: number_of(local), kind: key_kind::REQUEST, handle };
        // SAFETY: by contract.
        let tables = unsafe { OfThread::new(local, library, u64::MAX, false) };
        let released = store::release(key.kind, handle).unwrap_or_default();
        operation::give_up(&mut tables.giving_up(&released), &key, u64::MAX);
    }
}

/// Requests are completed by a call that is not counted; so many handles are at the address.
///
/// # Safety
/// `local` must be the thread's own.
pub(super) unsafe fn complete_unseen(local: *mut Local, library: &Library, address: u64, count: u32) {
    let now = monotonic_ns();
    let times = || Times { started_ns: now, returned_ns: now, share_ns: 0 };
    // SAFETY: by contract.
    let mut tables = unsafe { OfThread::new(local, library, now, false) };
    for index in 0..count {
        let place = address.wrapping_add(u64::from(index) * u64::from(library.layout.handle_width()));
        let Some(handle) = handle_at(&library.layout, place) else { break };
        if is_followed(&library.layout, handle) {
            let key = RequestKey { process: number_of(local), kind: key_kind::REQUEST, handle };
            operation::complete(&library.layout, &Own, &mut tables, &key, times, 0);
        }
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
