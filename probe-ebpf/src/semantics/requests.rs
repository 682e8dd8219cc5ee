//! The requests that a call has completed, started or given up, one after the other.

use aya_ebpf::EbpfContext;
use mpiprobe_common::{
    Descriptor, Layout, Loss, RequestKey, ThreadState,
    tables::Stage,
    descriptor::{NONE, completion},
    request::{HANDLES as FEW_HANDLES, key_kind},
    rules::{
        operation::is_followed,
        settling::{self, Sharers},
    },
};

use super::{
    arguments, can_follow, completed, conclude,
    handles::{AT_ONCE, count_requests, remembered},
    next, operation,
    user::handle_at,
};
use crate::{
    apart::given,
    maps::{LAYOUTS, REQUESTS},
    statistics::count_loss,
};

/// Requests that one run of the program goes through; the kernel allows 33 runs in a row.
const CHUNK: u32 = 640;

/// Finds out which requests the thread's completed call has completed or started.
#[inline(always)]
pub fn settle<const TRACED: bool>(context: &impl EbpfContext) {
    let Some((thread, descriptor, layout)) = completed() else { return };
    if has_concerned(thread, descriptor, layout) {
        next(context, if descriptor.completion == completion::STARTS { Stage::Start } else { Stage::Follow });
    }
    conclude::<TRACED>(context, thread);
}

/// Whether the thread's completed call has completed or started any, which it says then where to find.
#[inline(always)]
fn has_concerned(thread: &mut ThreadState, descriptor: &Descriptor, layout: &Layout) -> bool {
    if descriptor.completion == completion::ENDS {
        thread.following.handles = 1;
    }
    let call = arguments::call(thread, descriptor, layout);
    let Some(concerned) = settling::concerned(&call, thread.completed.result, thread.following.handles) else { return false };
    let sharers = match concerned.sharers {
        Sharers::Number(number) => number,
        Sharers::AllRequests => {
            count_requests(thread, layout);
            thread.following.requests
        }
    };
    if sharers == 0 {
        return false;
    }
    thread.following.only = concerned.only;
    thread.following.share_ns = thread.completed.ns / sharers as u64;
    thread.following.next = 0;
    thread.following.end = concerned.end;
    true
}

/// Goes through the requests that are complete, or given up.
#[inline(always)]
pub fn follow<const TRACED: bool>(context: &impl EbpfContext) {
    let Some((thread, descriptor, layout)) = completed() else { return };
    match go_on::<SIMPLE, TRACED>(thread, descriptor, layout) {
        Progress::Done => conclude::<TRACED>(context, thread),
        Progress::NeedsSource => hand_over(context, thread, Stage::FollowAny),
        Progress::Later => hand_over(context, thread, Stage::Follow),
    }
}

/// The same, with the true sources of receives from anybody.
#[inline(always)]
pub fn follow_any<const TRACED: bool>(context: &impl EbpfContext) {
    let Some((thread, descriptor, layout)) = completed() else { return };
    match go_on::<WITH_SOURCE, TRACED>(thread, descriptor, layout) {
        Progress::Done => conclude::<TRACED>(context, thread),
        _ => hand_over(context, thread, Stage::Follow),
    }
}

/// Goes through the requests that are started.
#[inline(always)]
pub fn start<const TRACED: bool>(context: &impl EbpfContext) {
    let Some((thread, descriptor, layout)) = completed() else { return };
    match go_on::<START, TRACED>(thread, descriptor, layout) {
        Progress::Done => conclude::<TRACED>(context, thread),
        _ => hand_over(context, thread, Stage::Start),
    }
}

/// The rest is for another run. The kernel allows so many; what remains then is counted.
#[inline(always)]
fn hand_over(context: &impl EbpfContext, thread: &ThreadState, stage: Stage) {
    next(context, stage);
    count_loss(thread.process, Loss::RequestsNotFollowed);
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
fn go_on<const WHAT: u32, const TRACED: bool>(
    thread: &mut ThreadState,
    descriptor: &Descriptor,
    layout: &Layout,
) -> Progress {
    for _ in 0..CHUNK {
        if thread.following.next >= thread.following.end {
            return Progress::Done;
        }
        let answer = match (WHAT, TRACED) {
            (SIMPLE, false) => follow_one(thread, descriptor, layout),
            (SIMPLE, true) => traced_follow_one(thread, descriptor, layout),
            (WITH_SOURCE, false) => follow_one_with_source(thread, descriptor, layout),
            (WITH_SOURCE, true) => traced_follow_one_with_source(thread, descriptor, layout),
            (_, false) => start_one(thread, descriptor, layout),
            (_, true) => traced_start_one(thread, descriptor, layout),
        };
        if answer != 0 {
            return Progress::NeedsSource;
        }
        thread.following.next += 1;
    }
    if thread.following.next >= thread.following.end { Progress::Done } else { Progress::Later }
}

macro_rules! one {
    ($($(#[$doc:meta])* $name:ident, $traced:ident = $what:ident;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[inline(never)]
        extern "C" fn $name(thread: *const ThreadState, descriptor: *const Descriptor, layout: *const Layout) -> u32 {
            given!(thread, descriptor, layout);
            one::<$what, false>(thread, descriptor, layout)
        }

        /// The same, written down.
        #[unsafe(no_mangle)]
        #[inline(never)]
        extern "C" fn $traced(thread: *const ThreadState, descriptor: *const Descriptor, layout: *const Layout) -> u32 {
            given!(thread, descriptor, layout);
            one::<$what, true>(thread, descriptor, layout)
        }
    )*};
}

one! {
    /// The next one that is complete, or given up. Not 0: another program has to do it.
    follow_one, traced_follow_one = SIMPLE;
    /// The same, with the true source of a receive from anybody.
    follow_one_with_source, traced_follow_one_with_source = WITH_SOURCE;
    /// The next one that is started. Answers 0.
    start_one, traced_start_one = START;
}

#[inline(always)]
fn one<const WHAT: u32, const TRACED: bool>(thread: &ThreadState, descriptor: &Descriptor, layout: &Layout) -> u32 {
    let call = arguments::call(thread, descriptor, layout);
    let following = &thread.following;
    let is_array = descriptor.request_count != NONE;
    let result = thread.completed.result;
    let index = settling::index_at(&call, result, following.only, following.next);
    if index >= following.handles {
        return 0;
    }
    if descriptor.completion == completion::ENDS {
        if WHAT == SIMPLE {
            let key =
                RequestKey { process: thread.process, kind: key_kind::ACCESS, handle: call.word(descriptor.file) };
            operation::complete::<false, TRACED>(thread, layout, &key, settling::status_of_access(&call, result));
        }
        return 0;
    }
    let handle = if is_array { remembered(thread, index, layout.handle_width()) } else { following.handle };
    if !is_followed(layout, handle) {
        return 0;
    }
    let key = RequestKey { process: thread.process, kind: key_kind::REQUEST, handle };
    if WHAT == START {
        operation::start::<TRACED>(thread, layout, &key);
    } else if descriptor.completion == completion::FREES {
        operation::free::<TRACED>(thread, layout, &key, thread.open.started_ns);
    } else {
        let mut status = call.status(following.next);
        if thread.completed.succeeded == 0 {
            status = after_error(thread, descriptor, layout, &key, index);
            if status == STILL_PENDING {
                return 0;
            }
        }
        if WHAT == WITH_SOURCE {
            operation::complete::<true, TRACED>(thread, layout, &key, status);
        } else if status != 0 && operation::may_be_from_anybody(&key, thread.open.started_ns) {
            return 1;
        } else {
            operation::complete::<false, TRACED>(thread, layout, &key, status);
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
    let call = arguments::call(thread, descriptor, layout);
    let (result, is_persistent) = (thread.completed.result, operation::is_persistent(key));
    settling::status_after_error(&call, result, is_persistent, key.handle, index, thread.following.next)
        .unwrap_or(STILL_PENDING)
}

/// Requests are completed by a call that is not counted; so many handles are at the address.
#[inline(always)]
pub fn complete_unseen(thread: &ThreadState, address: u64, count: u32) {
    if count > FEW_HANDLES as u32 {
        count_loss(thread.process, Loss::RequestsNotFollowed);
    }
    for part in 0..(FEW_HANDLES as u32 / AT_ONCE) {
        if part * AT_ONCE >= count {
            break;
        }
        complete_some_unseen(thread, address, part * AT_ONCE, count);
    }
}

/// The same of so many at most from `first` on. Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn complete_some_unseen(thread: *const ThreadState, address: u64, first: u32, count: u32) -> u32 {
    given!(thread);
    for step in 0..AT_ONCE {
        let index = first.wrapping_add(step);
        if index >= count {
            break;
        }
        complete_one_unseen(thread, address, index);
    }
    0
}

/// The one whose handle is at `index`. Answers 0.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn complete_one_unseen(thread: *const ThreadState, address: u64, index: u32) -> u32 {
    given!(thread);
    let Some(layout) = LAYOUTS.get_ptr(thread.process) else { return 0 };
    // SAFETY: map value pointer, written once.
    let layout = unsafe { &*layout };
    if can_follow(layout)
        && let Some(handle) = handle_at(layout, address + index as u64 * layout.handle_width() as u64)
        && is_followed(layout, handle)
    {
        let key = RequestKey { process: thread.process, kind: key_kind::REQUEST, handle };
        // A library's own requests are not followed, and there may be many.
        if REQUESTS.get_ptr(&key).is_some() {
            operation::complete_unseen(thread, layout, &key);
        }
    }
    0
}

/// A request is given up by a call that is not counted; its handle is at the address.
#[inline(always)]
pub fn give_up(thread: &ThreadState, address: u64) {
    let Some(layout) = LAYOUTS.get_ptr(thread.process) else { return };
    // SAFETY: map value pointer, written once.
    let layout = unsafe { &*layout };
    if let Some(handle) = handle_at(layout, address)
        && is_followed(layout, handle)
    {
        let key = RequestKey { process: thread.process, kind: key_kind::REQUEST, handle };
        operation::free::<false>(thread, layout, &key, u64::MAX);
    }
}
