//! The requests that a call has completed, started or given up, one after the other.

use aya_ebpf::EbpfContext;
use mpiprobe_common::{
    Descriptor, Layout, Loss, RequestKey, ThreadState,
    config::{STAGE_FOLLOW, STAGE_FOLLOW_ANY, STAGE_START},
    descriptor::{NONE, completion},
    layout::is_complete_request,
    request::{FAILED, key_kind},
    rules::completion::{self as completed_requests, Told},
};

use super::{
    arguments::Arguments,
    completed,
    handles::{count_requests, remembered},
    next, operation,
    user::{User, handle_at, int_at},
};
use crate::{maps::LAYOUTS, statistics::count_loss};

/// Requests that one run of the program goes through; the kernel allows 33 runs in a row.
const CHUNK: u32 = 40;
/// The same where flows have to be looked up, which takes the verifier long.
const SMALL_CHUNK: u32 = 8;

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
    let told = completed_requests::told(layout, descriptor, thread.completed.result);
    if told == Told::Nothing {
        return;
    }
    let by_call = told == Told::ByCall;
    if by_call && descriptor.is_complete != NONE && int_at(arguments.word(descriptor.is_complete)).unwrap_or(0) == 0 {
        return;
    }
    let (mut end, mut sharers) = (handles, handles);
    match descriptor.completion {
        completion::ANY if by_call => {
            let index = int_at(arguments.word(descriptor.index)).unwrap_or(-1);
            if index < 0 || index as u32 >= handles {
                return;
            }
            thread.following.only = index as u32;
            (end, sharers) = (1, 1);
        }
        completion::SOME if by_call => {
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
    let by_call = completed_requests::told(layout, descriptor, thread.completed.result) == Told::ByCall;
    let index = match descriptor.completion {
        completion::ANY if by_call => following.only,
        completion::SOME if by_call => {
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
            let failed = thread.completed.succeeded == 0;
            let status = if failed { FAILED } else { status_address(&arguments, descriptor, layout, 0) };
            operation::complete::<false>(thread, layout, &key, status);
        }
        return 0;
    }
    let handle = if is_array { remembered(thread, index, layout.handle_width()) } else { following.handle };
    if handle == layout.constants.request_null || is_complete_request(layout, handle) {
        return 0;
    }
    let key = RequestKey { process: thread.process, kind: key_kind::REQUEST, handle };
    if WHAT == START {
        operation::start(thread, layout, &key);
    } else if descriptor.completion == completion::FREES {
        operation::free(&key, thread.open.started_ns);
    } else {
        let mut status = status_address(&arguments, descriptor, layout, following.next);
        if thread.completed.succeeded == 0 {
            status = after_error(thread, descriptor, layout, &key, index);
            if status == STILL_PENDING {
                return 0;
            }
        }
        if WHAT == WITH_SOURCE {
            operation::complete::<true>(thread, layout, &key, status);
        } else if status != 0 && operation::may_be_from_anybody(&key, thread.open.started_ns) {
            return 1;
        } else {
            operation::complete::<false>(thread, layout, &key, status);
        }
    }
    0
}

/// No address of a status, and not [`FAILED`].
const STILL_PENDING: u64 = u64::MAX - 1;

/// By what status the request at `index` is complete although the call has returned an error; or [`STILL_PENDING`].
#[inline(never)]
fn after_error(
    thread: &ThreadState,
    descriptor: &Descriptor,
    layout: &Layout,
    key: &RequestKey,
    index: u32,
) -> u64 {
    let arguments = Arguments::of(thread, layout);
    let status = status_address(&arguments, descriptor, layout, thread.following.next);
    let place = arguments.word(descriptor.request) + index as u64 * layout.handle_width() as u64;
    let left = handle_at(layout, place).unwrap_or(key.handle);
    let (result, is_persistent) = (thread.completed.result, operation::is_persistent(key));
    completed_requests::after_error(layout, descriptor, result, is_persistent, left, status, &User)
        .unwrap_or(STILL_PENDING)
}

/// A request is given up by a call that is not counted; its handle is at the address.
#[inline(always)]
pub fn give_up(thread: &ThreadState, address: u64) {
    let Some(layout) = LAYOUTS.get_ptr(thread.process) else { return };
    // SAFETY: map value pointer, written once.
    let layout = unsafe { &*layout };
    if let Some(handle) = handle_at(layout, address)
        && handle != layout.constants.request_null
        && !is_complete_request(layout, handle)
    {
        let key = RequestKey { process: thread.process, kind: key_kind::REQUEST, handle };
        operation::free(&key, u64::MAX);
    }
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
