//! Matched messages: whom a message is from is known to the call that matched it, not to the one that receives it.

use mpiprobe_common::{
    Descriptor, Layout, Loss, Request, RequestKey, ThreadState, descriptor::NONE, flow::peer, request::key_kind,
};

use super::{
    arguments::Arguments,
    completed_source,
    user::{handle_at, int_at},
};
use crate::{maps::REQUESTS, statistics::count_loss};

/// A probe has matched a message: remembers from whom, and over which communicator.
#[inline(always)]
pub fn matched(thread: &ThreadState, descriptor: &Descriptor, layout: &Layout) {
    let arguments = Arguments::of(thread, layout);
    if descriptor.is_complete != NONE && int_at(arguments.word(descriptor.is_complete)).unwrap_or(0) == 0 {
        return;
    }
    let Some(handle) = handle_at(layout, arguments.word(descriptor.message)) else { return };
    if handle == layout.constants.message_no_proc || handle == layout.constants.message_null {
        return;
    }
    let call = &thread.completed;
    let message = Request {
        posted_ns: thread.last_return_ns,
        communicator: call.communicator_handle,
        communicator_number: call.communicator,
        source: completed_source(&arguments, layout, descriptor, call.source),
        ..Request::default()
    };
    let key = RequestKey { process: thread.process, kind: key_kind::MESSAGE, handle };
    if REQUESTS.insert(&key, &message, 0).is_err() {
        count_loss(thread.process, Loss::RequestTableFull);
    }
}

/// Whom the message is from that the thread's completed call has received, and the communicator, for that call.
#[inline(never)]
pub fn take(thread: &mut ThreadState, layout: &Layout) -> i32 {
    let handle = thread.following.handle;
    if thread.following.handles == 0 {
        return peer::UNKNOWN;
    }
    if handle == layout.constants.message_no_proc {
        return peer::NULL;
    }
    let key = RequestKey { process: thread.process, kind: key_kind::MESSAGE, handle };
    let Some(message) = REQUESTS.get_ptr(&key) else { return peer::UNKNOWN };
    // SAFETY: map value pointer; only the thread that receives the message looks at it.
    let source = unsafe {
        thread.completed.communicator_handle = (*message).communicator;
        (*message).source
    };
    let _ = REQUESTS.remove(&key);
    source
}
