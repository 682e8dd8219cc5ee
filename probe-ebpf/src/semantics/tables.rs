//! The tables in the kernel, as the rules that all engines have in common see them.

use core::ptr;

use mpiprobe_common::{
    Amount, Layout, Loss, Request, RequestKey, ThreadState,
    flow::Sought,
    request::state,
    rules::tables::{Counts, Operations, What},
};

use super::{
    add_received, add_sent, add_unknown, communicator, flow,
    recording::{how, write_change, write_start},
    store,
};
use crate::{
    atomic::{barrier, compare_exchange},
    maps::REQUESTS,
    statistics::{count_loss, entry},
};

/// Those of one process.
pub struct InKernel<'a, const FINDS_SOURCES: bool, const TRACED: bool> {
    /// Whose call it is.
    thread: &'a ThreadState,
    process: u32,
    layout: &'a Layout,
    /// The persistent operation that was found.
    found: *mut Request,
}

impl<'a, const FINDS_SOURCES: bool, const TRACED: bool> InKernel<'a, FINDS_SOURCES, TRACED> {
    #[inline(always)]
    pub fn of(thread: &'a ThreadState, process: u32, layout: &'a Layout) -> Self {
        Self { thread, process, layout, found: ptr::null_mut() }
    }
}

impl<const FINDS_SOURCES: bool, const TRACED: bool> Counts for InKernel<'_, FINDS_SOURCES, TRACED> {
    /// Index plus one; 0: there was no room.
    type Statistics = u32;

    #[inline(always)]
    fn statistics(&mut self, function: u16) -> u32 {
        entry(self.process, function as u32)
    }

    #[inline(always)]
    fn find_flow(&mut self, sought: &Sought) -> u32 {
        flow::look_up(self.process, self.layout, sought).map_or(0, |flow| flow + 1)
    }

    #[inline(always)]
    fn add_sent(&mut self, statistics: u32, flow_plus_1: u32, amount: Amount) {
        add_sent(statistics, flow_plus_1, amount);
    }

    #[inline(always)]
    fn add_received(&mut self, statistics: u32, flow_plus_1: u32, amount: Amount) {
        add_received(statistics, flow_plus_1, amount);
    }

    #[inline(always)]
    fn add_unknown(&mut self, statistics: u32, flow_plus_1: u32) {
        add_unknown(statistics, flow_plus_1);
    }

    #[inline(always)]
    fn add_calls(&mut self, flow_plus_1: u32, calls: u64, ns: u64) {
        flow::add_calls(flow_plus_1, calls, ns);
    }

    #[inline(always)]
    fn add_completed(&mut self, flow_plus_1: u32, pending_ns: u64, waited_ns: u64) {
        flow::add_completed(flow_plus_1, pending_ns, waited_ns);
    }

    #[inline(always)]
    fn count_loss(&mut self, loss: Loss) {
        count_loss(self.process, loss);
    }
}

impl<const FINDS_SOURCES: bool, const TRACED: bool> Operations for InKernel<'_, FINDS_SOURCES, TRACED> {
    const FINDS_SOURCES: bool = FINDS_SOURCES;

    #[inline(always)]
    fn keep(&mut self, key: &RequestKey, request: &Request) {
        store::keep(key, request);
    }

    #[inline(always)]
    fn keep_message(&mut self, key: &RequestKey, message: &Request) {
        if REQUESTS.insert(key, message, 0).is_err() {
            count_loss(self.process, Loss::RequestTableFull);
        }
    }

    #[inline(always)]
    fn take(&mut self, key: &RequestKey, started_ns: u64, request: &mut Request) -> bool {
        store::take(key, started_ns, request)
    }

    #[inline(always)]
    fn take_given_up(&mut self, key: &RequestKey, started_ns: u64, request: &mut Request) -> bool {
        REQUESTS.get_ptr(&store::given_up(self.thread)).is_none() && store::take(key, started_ns, request)
    }

    #[inline(always)]
    fn find_persistent(&mut self, key: &RequestKey, request: &mut Request) -> bool {
        let Some(known) = REQUESTS.get_ptr_mut(key) else { return false };
        // SAFETY: map value pointer; one word, read once.
        if !unsafe { (*known).can_be_started() } {
            return false;
        }
        // SAFETY: map value pointer; of an operation that can be started, only the thread that starts it writes.
        *request = unsafe { *known };
        self.found = known;
        true
    }

    #[inline(always)]
    fn keep_started(&mut self, _key: &RequestKey, request: &Request) {
        if self.found.is_null() {
            return;
        }
        // SAFETY: as above.
        unsafe {
            let state = request.state;
            *self.found = Request { state: 0, ..*request };
            barrier();
            (&raw mut (*self.found).state).write_volatile(state);
        }
    }

    #[inline(always)]
    fn forget_persistent(&mut self, key: &RequestKey, started_ns: u64) {
        if REQUESTS.remove(&store::given_up(self.thread)).is_ok() {
            return;
        }
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

    #[inline(always)]
    fn writes_changes(&self) -> bool {
        TRACED
    }

    #[inline(always)]
    fn see_persistent(&mut self, _key: &RequestKey, request: &mut Request) -> bool {
        let Some(known) = REQUESTS.get_ptr(&store::given_up(self.thread)) else { return false };
        // SAFETY: map value pointer.
        *request = unsafe { *known };
        true
    }

    #[inline(always)]
    fn changed(&mut self, key: &RequestKey, request: &Request, what: What) {
        if TRACED {
            let thread = ptr::from_ref(self.thread).cast_mut();
            let how = match what {
                What::Starts { .. } => {
                    write_start(thread, self.layout, request, key.handle);
                    return;
                }
                What::Releases => how::RELEASES,
                What::Readies => how::READIES,
                What::Completes { status } => status,
            };
            write_change(thread, self.layout, request, key.handle, how);
        }
    }

    #[inline(always)]
    fn is_alive(&self, communicator: u32, handle: u64) -> bool {
        communicator::is_alive(communicator, handle)
    }
}
