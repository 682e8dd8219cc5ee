//! Calls, as far as it matters which ends belong together.

use mpiprobe_functions::FunctionId;
use mpiprobe_trace::{LocationId, SiteId};

use super::slab::Key;

/// A call, found again by its location and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallAt {
    /// [`Call::number`](mpiprobe_trace::Call::number).
    pub number: u64,
    /// On the common clock, ns.
    pub entry_ns: u64,
    pub return_ns: u64,
    pub location: LocationId,
    pub site: Option<SiteId>,
    pub function: FunctionId,
    /// Of several operations that the call has begun, which one is meant: [`Call::requests`](mpiprobe_trace::Call::requests) in their order.
    pub nth: u16,
}

impl CallAt {
    /// Its place among those of a process, in the order in which they return.
    pub(crate) const fn place(&self) -> (u64, u32, u64) {
        (self.return_ns, self.location.0, self.number)
    }
}

/// A message that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// In the process that has sent it.
    pub(super) key: Key,
    pub(super) call: CallAt,
    pub(super) bytes: Option<u64>,
    /// The call itself may have waited for the receiver.
    pub(super) waits: bool,
    /// All that the process had sent before over the same channel was complete.
    pub(super) is_alone: bool,
    /// Another thread has sent over the same channel meanwhile: which of them came first is not known.
    pub(super) is_concurrent: bool,
}

impl Sent {
    /// Its place among those that a process has sent over one channel.
    pub(super) const fn place(&self) -> (u64, u64, u16) {
        (self.call.entry_ns, self.call.number, self.call.nth)
    }
}

/// A receive that was completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub(super) call: CallAt,
    pub(super) waited: bool,
    pub(super) bytes: Option<u64>,
    /// By which number the process knows the call, if what it has completed is told later.
    pub(super) held: u64,
}

/// What comes of a receive that a call has completed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Known(End),
    /// Nobody will know.
    Never,
    /// It is known later.
    Later,
}

/// What a call that completes something knows of the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A message has arrived.
    Received {
        /// Which call has sent it; of a partitioned message, with the time when the last part was ready.
        send: CallAt,
        /// Which call has posted the receive; the completing call itself, if it was not another.
        posted: CallAt,
    },
    /// A probe has found a message that this call has sent.
    Found { send: CallAt },
    /// A message that the call that is named has sent is complete for the sender.
    Sent {
        posted: CallAt,
        /// Which call has posted the receive, if any had before the completing call returned.
        receive: Option<CallAt>,
    },
}

/// That a call has completed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub call: CallAt,
    /// Of all that it has completed, so many come after this.
    pub more: u32,
    pub end: End,
    /// It would not have returned without.
    pub waited: bool,
    /// The other end was found only when the call had been dealt with: between clocks that differ, or where it was not sure for a time.
    pub late: bool,
}

/// Operations whose other ends were not found, by location, number of the call and which of its operations, if somebody wants to know.
#[derive(Debug, Default)]
pub(super) struct Loose {
    pub(super) is_wanted: bool,
    /// By what they have posted.
    pub(super) sends: Vec<(LocationId, u64, u16)>,
    pub(super) receives: Vec<(LocationId, u64, u16)>,
    pub(super) collective: Vec<(LocationId, u64, u16)>,
}

impl Loose {
    pub(super) fn send(&mut self, call: &CallAt) {
        if self.is_wanted {
            self.sends.push((call.location, call.number, call.nth));
        }
    }

    pub(super) fn receive(&mut self, call: &CallAt) {
        if self.is_wanted {
            self.receives.push((call.location, call.number, call.nth));
        }
    }

    pub(super) fn collective(&mut self, call: &CallAt) {
        if self.is_wanted {
            self.collective.push((call.location, call.number, call.nth));
        }
    }
}

/// What could not be told of messages and collectives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Messages of which both ends were found.
    pub matched: u64,
    /// Sends and receives whose other end is in no process that was recorded.
    pub outside: u64,
    /// Sends whose receive is not there.
    pub sends: u64,
    /// Receives that are complete and whose send is not there.
    pub receives: u64,
    /// Receives from anybody of which it is not known from whom they were.
    pub of_unknown_source: u64,
    /// Completed requests that were posted before the recording, or by a call that was lost.
    pub of_unknown_request: u64,
    /// Requests that no recorded call has completed, though they were.
    pub completed_unseen: u64,
    /// Ends whose order was not sure: after calls were lost, or because messages may have been on their way when recording began.
    pub unsure: u64,
    /// Pairs that cannot be true: what has come is not what was sent, or was there before it was sent.
    pub contradictions: u64,
    /// Calls of collectives that all members have made.
    pub collective: u64,
    /// Calls of collectives over communicators of which some members are not recorded, or not known.
    pub of_partial_groups: u64,
    /// Epochs (`MPI_Win_start`, `MPI_Win_post`) in which nobody was seen to access anything, or whose other side is not there.
    pub epochs: u64,
    /// Calls of collectives that other members have not made, or of which it was not sure which belong together.
    pub incomplete: u64,
}

/// What waits for its other end, which may come yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Messages that were sent and not received.
    pub sends: u64,
    /// Receives that were posted and have got nothing.
    pub receives: u64,
    /// Calls of collectives that others have not made yet.
    pub collective: u64,
    /// Calls that have completed something, and of which it is not known yet whether they have waited: others are behind.
    pub calls: u64,
}

impl Pending {
    pub(super) fn add(&mut self, (sends, receives): (u64, u64)) {
        self.sends += sends;
        self.receives += receives;
    }
}

impl Unmatched {
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { matched, outside, sends, receives, of_unknown_source, of_unknown_request, .. } = other;
        let Self {
            completed_unseen, unsure, contradictions, collective, of_partial_groups, incomplete, epochs, ..
        } = other;
        self.matched += matched;
        self.outside += outside;
        self.sends += sends;
        self.receives += receives;
        self.of_unknown_source += of_unknown_source;
        self.of_unknown_request += of_unknown_request;
        self.completed_unseen += completed_unseen;
        self.unsure += unsure;
        self.contradictions += contradictions;
        self.collective += collective;
        self.of_partial_groups += of_partial_groups;
        self.incomplete += incomplete;
        self.epochs += epochs;
    }
}
