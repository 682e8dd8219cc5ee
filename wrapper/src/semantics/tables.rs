//! The tables of a thread, as the rules that all engines have in common see them.

use mpiprobe_common::{
    Amount, FunctionStats, Loss, Request, RequestKey,
    flow::Sought,
    request::state,
    rules::{
        operation, recording,
        tables::{Counts, Operations, What},
    },
};

use super::{add_received_to, add_sent_to, arguments::Own, communicator, flow, library::Library, store};
use crate::{process, statistics, thread::Local, trace};

/// Those of the calling thread.
pub(super) struct OfThread<'a> {
    local: *mut Local,
    library: &'a Library,
    /// When the call returned that is accounted for.
    returned_ns: u64,
    /// What it does to requests is written down.
    writes_changes: bool,
    /// What the handle meant that the call gives up.
    given_up: Option<&'a Request>,
}

impl<'a> OfThread<'a> {
    /// # Safety
    /// `local` must be the thread's own.
    pub(super) unsafe fn new(local: *mut Local, library: &'a Library, returned_ns: u64, writes_changes: bool) -> Self {
        Self { local, library, returned_ns, writes_changes, given_up: None }
    }

    /// The same of a call that gives up a request; without a state: one that is not known.
    pub(super) fn giving_up(self, given_up: &'a Request) -> Self {
        Self { given_up: Some(given_up), ..self }
    }
}

impl Counts for OfThread<'_> {
    /// Null: there is no room, or they are not wanted.
    type Statistics = *mut FunctionStats;

    #[inline]
    fn statistics(&mut self, function: u16) -> *mut FunctionStats {
        // SAFETY: by the contract of `new`.
        unsafe { statistics::of(self.local, u32::from(function)) }
    }

    fn find_flow(&mut self, sought: &Sought) -> u32 {
        flow::look_up(self.local, self.library, sought)
    }

    #[inline]
    fn own_flow(&mut self, flow_plus_1: u32) -> u32 {
        flow::own(self.local, flow_plus_1)
    }

    #[inline]
    fn add_sent(&mut self, statistics: *mut FunctionStats, flow_plus_1: u32, amount: Amount) {
        add_sent_to(statistics, flow_plus_1, amount);
    }

    #[inline]
    fn add_received(&mut self, statistics: *mut FunctionStats, flow_plus_1: u32, amount: Amount) {
        add_received_to(statistics, flow_plus_1, amount);
    }

    #[inline]
    fn add_unknown(&mut self, statistics: *mut FunctionStats, flow_plus_1: u32) {
        // SAFETY: the thread's own.
        unsafe {
            if let Some(statistics) = statistics.as_mut() {
                statistics.unknown += 1;
            }
            if let Some(flow) = flow::mine(flow_plus_1) {
                flow.unknown += 1;
            }
        }
    }

    #[inline]
    fn add_calls(&mut self, flow_plus_1: u32, calls: u64, ns: u64) {
        // SAFETY: the thread's own.
        if let Some(flow) = unsafe { flow::mine(flow_plus_1) } {
            flow.calls = flow.calls.wrapping_add(calls);
            flow.time_ns = flow.time_ns.wrapping_add(ns);
        }
    }

    #[inline]
    fn add_completed(&mut self, flow_plus_1: u32, pending_ns: u64, waited_ns: u64) {
        // SAFETY: the thread's own.
        if let Some(flow) = unsafe { flow::mine(flow_plus_1) } {
            flow.completed += 1;
            flow.pending_ns += pending_ns;
            flow.waited_ns += waited_ns;
        }
    }

    fn count_loss(&mut self, loss: Loss) {
        process::count_loss(loss);
    }
}

impl Operations for OfThread<'_> {
    #[inline]
    fn keep(&mut self, key: &RequestKey, request: &Request) {
        if let Some(complete) = store::keep(*key, request) {
            operation::given_again(self, &complete);
        }
    }

    fn keep_message(&mut self, key: &RequestKey, message: &Request) {
        store::keep(*key, &Request { state: message.posted_ns << state::BITS | state::ACTIVE, ..*message });
    }

    #[inline]
    fn take(&mut self, key: &RequestKey, started_ns: u64, request: &mut Request) -> bool {
        let Some(taken) = store::take(key.kind, key.handle, started_ns) else { return false };
        *request = taken;
        // Another thread may have got the handle again, and posted this one meanwhile.
        if request.posted_ns > self.returned_ns {
            request.posted_ns = self.returned_ns;
        }
        true
    }

    fn take_given_up(&mut self, _key: &RequestKey, _started_ns: u64, request: &mut Request) -> bool {
        *request = self.given_up.copied().unwrap_or_default();
        request.state & state::ACTIVE != 0
    }

    #[inline]
    fn find_persistent(&mut self, key: &RequestKey, request: &mut Request) -> bool {
        match store::persistent(key.kind, key.handle) {
            Some(found) => {
                *request = found;
                true
            }
            None => false,
        }
    }

    #[inline]
    fn keep_started(&mut self, key: &RequestKey, request: &Request) {
        self.keep(key, request);
    }

    /// It was taken out at the call's entry.
    fn forget_persistent(&mut self, _key: &RequestKey, _started_ns: u64) {}

    fn see_persistent(&mut self, _key: &RequestKey, request: &mut Request) -> bool {
        *request = self.given_up.copied().unwrap_or_default();
        request.state & state::PERSISTENT != 0
    }

    #[inline]
    fn writes_changes(&self) -> bool {
        self.writes_changes
    }

    #[inline]
    fn changed(&mut self, key: &RequestKey, request: &Request, what: What) {
        if self.writes_changes {
            // SAFETY: the thread's own.
            unsafe {
                let state = (*self.local).state;
                let call = ((*state).id as u32, (*state).numbered_calls().wrapping_sub(1) as u32);
                let change = recording::changed(&self.library.layout, &Own, call, key.handle, request, what);
                trace::change(self.local, &change);
            }
        }
    }

    fn is_alive(&self, communicator: u32, handle: u64) -> bool {
        communicator::is_alive(communicator, handle)
    }
}
