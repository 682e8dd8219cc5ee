//! What an engine keeps, and adds to.

use crate::{Amount, Loss, Request, RequestKey, flow::Sought};

/// What a call does to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It starts an operation that has the epoch.
    Starts { next_epoch: u64 },
    /// It completes it, with the status at the address (0: the program does not want one; or [`FAILED`](crate::request::FAILED)).
    Completes { status: u64 },
    /// It gives it up.
    Releases,
    /// It lets partitions of it go.
    Readies,
}

/// Statistics of functions, flows (by index plus one; 0: none) and what was lost.
pub trait Counts {
    /// Where the statistics of a function are.
    type Statistics: Copy;

    /// Those of a function, in the phase that the process is in.
    fn statistics(&mut self, function: u16) -> Self::Statistics;

    /// The flow of a call or operation with a partner, made on first use; 0: there is no room.
    fn find_flow(&mut self, sought: &Sought) -> u32;

    /// A flow that may be another thread's, as that of this thread, where each has its own.
    fn own_flow(&mut self, flow_plus_1: u32) -> u32 {
        flow_plus_1
    }

    /// Adds bytes that have left, which are known.
    fn add_sent(&mut self, statistics: Self::Statistics, flow_plus_1: u32, amount: Amount);

    /// The same of bytes that have arrived.
    fn add_received(&mut self, statistics: Self::Statistics, flow_plus_1: u32, amount: Amount);

    /// Adds a call or an operation of which it is not known what it has moved.
    fn add_unknown(&mut self, statistics: Self::Statistics, flow_plus_1: u32);

    /// Adds to the calls of a flow; numbers that wrap round take away.
    fn add_calls(&mut self, flow_plus_1: u32, calls: u64, ns: u64);

    /// An operation of a flow is complete.
    fn add_completed(&mut self, flow_plus_1: u32, pending_ns: u64, waited_ns: u64);

    fn count_loss(&mut self, loss: Loss);
}

/// Operations that are under way, by handle.
pub trait Operations: Counts {
    /// Whether the true source of a receive from anybody is looked up here. That is too long for a program whose paths are gone
    /// through before it runs; there it is for another program, which such operations are handed over to.
    const FINDS_SOURCES: bool = true;

    /// Remembers an operation, as the latest of its handle.
    fn keep(&mut self, key: &RequestKey, request: &Request);

    /// Remembers a message that was matched, to be received.
    fn keep_message(&mut self, key: &RequestKey, message: &Request);

    /// Takes an operation out, to account for it: the handle's that was active when a call was entered at `started_ns`; `false`:
    /// there is none. It was not posted after the call had returned.
    fn take(&mut self, key: &RequestKey, started_ns: u64, request: &mut Request) -> bool;

    /// The same for a call that gives up the handle; `false` also if it is that of a persistent operation which is not active. As soon as
    /// the library has given it up the handle may be another thread's: engines set aside what it meant at the call's entry.
    #[inline(always)]
    fn take_given_up(&mut self, key: &RequestKey, started_ns: u64, request: &mut Request) -> bool {
        self.take(key, started_ns, request)
    }

    /// Looks for the persistent operation of a handle, to be started; `false`: there is none.
    fn find_persistent(&mut self, key: &RequestKey, request: &mut Request) -> bool;

    /// Keeps the one that was found, as it was started.
    fn keep_started(&mut self, key: &RequestKey, request: &Request);

    /// A request is given up by a call entered at `started_ns`: a persistent one is none any more.
    fn forget_persistent(&mut self, key: &RequestKey, started_ns: u64);

    /// The persistent operation of a handle, to be looked at only; `false`: there is none.
    #[inline(always)]
    fn see_persistent(&mut self, key: &RequestKey, request: &mut Request) -> bool {
        self.find_persistent(key, request)
    }

    /// Whether it is written down what becomes of requests.
    #[inline(always)]
    fn writes_changes(&self) -> bool {
        false
    }

    /// Writes down what the call does to a request, if anything is.
    #[inline(always)]
    fn changed(&mut self, _key: &RequestKey, _request: &Request, _what: What) {}

    /// Whether a handle still means the communicator with that number.
    fn is_alive(&self, communicator: u32, handle: u64) -> bool;
}
