//! Matched messages: whom a message is from is known to the call that matched it, not to the one that receives it.

use mpiprobe_common::{Layout, RequestKey, ThreadState, request::key_kind, rules::handles::{Sender, sender}};

use super::communicator;
use crate::{apart::given, maps::REQUESTS};

/// The handle of the message that the thread's call was given; `None`: of none that anybody has matched.
#[inline(always)]
pub fn given_handle(thread: &ThreadState) -> Option<u64> {
    if thread.following.handles == 0 { None } else { Some(thread.following.handle) }
}

/// Whom the message is from that the thread's completed call has received, and the communicator, for that call.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn take_message(thread: *mut ThreadState, layout: *const Layout) -> i32 {
    given!(thread, layout);
    let given = given_handle(thread);
    let process = thread.process;
    let sender = sender(layout, given, |handle| {
        let key = RequestKey { process, kind: key_kind::MESSAGE, handle };
        let message = REQUESTS.get_ptr(&key)?;
        // SAFETY: map value pointer; only the thread that receives the message looks at it.
        let found = Sender::of(unsafe { &*message }, communicator::is_alive);
        let _ = REQUESTS.remove(&key);
        Some(found)
    });
    thread.completed.communicator_handle = sender.communicator;
    thread.completed.communicator = if sender.is_over_freed() { sender.number } else { 0 };
    sender.source
}
