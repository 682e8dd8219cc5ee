//! Who has moved how much to whom, over which communicator, by which function, called from where.

use bytemuck::{Pod, Zeroable};

pub use crate::peer;
use crate::request::{Amount, Request};

/// A flow as a call, or an operation, describes it.
#[derive(Clone, Copy, Debug)]
pub struct Sought {
    pub function: u16,
    pub started_by_plus_1: u16,
    /// Number of the communicator.
    pub number: u32,
    /// Its handle.
    pub communicator: u64,
    pub call_site: u64,
    /// A rank as given, or one of [`peer`].
    pub partner: i32,
}

impl Sought {
    /// That of an operation with a partner.
    #[inline]
    pub const fn of(request: &Request, partner: i32) -> Self {
        Self {
            function: request.function,
            started_by_plus_1: request.started_by_plus_1,
            number: request.communicator_number,
            communicator: request.communicator,
            call_site: request.call_site,
            partner,
        }
    }

    /// What it is kept by: `process` as in [`FlowKey::process`], and the partner's rank in the world.
    #[inline]
    pub const fn key(&self, process: u32, peer: i32) -> FlowKey {
        FlowKey {
            process,
            function: self.function,
            started_by_plus_1: self.started_by_plus_1,
            communicator: self.number,
            peer,
            call_site: self.call_site,
        }
    }
}

/// What the calls of one flow have in common.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct FlowKey {
    /// Process slot.
    pub process: u32,
    /// Function id of the call that posted the operation.
    pub function: u16,
    /// Function id plus one of the call that has started it, of a persistent request; else 0.
    pub started_by_plus_1: u16,
    /// Number of the communicator: index of its [`Communicator`]; 0: none, or unknown.
    pub communicator: u32,
    /// Rank in `MPI_COMM_WORLD` of the other side, or one of [`peer`].
    pub peer: i32,
    /// Return address of the call, in the process's address space.
    pub call_site: u64,
}

/// What a flow has carried.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Flow {
    pub key: FlowKey,
    /// Completed calls. A call with two partners counts in both flows.
    pub calls: u64,
    /// Sum of their durations, ns. Of a call with two partners in the flow of the one it sends to.
    pub time_ns: u64,
    /// Bytes that left.
    pub sent: u64,
    /// Bytes that arrived.
    pub received: u64,
    /// Of those, what is known as an upper bound only, because the program ignores the status.
    pub received_at_most: u64,
    /// Calls whose bytes are unknown.
    pub unknown: u64,
    /// Of operations with a request: those complete, according to a call that said so.
    pub completed: u64,
    /// From the return of the call that posted each to the return of that call, ns, summed.
    pub pending_ns: u64,
    /// Their part of the durations of the calls that completed them, ns.
    pub waited_ns: u64,
}

impl Flow {
    /// Adds another one's calls. Numbers wrap round: one thread may have taken away what another one has added.
    pub const fn merge(&mut self, other: &Self) {
        self.calls = self.calls.wrapping_add(other.calls);
        self.time_ns = self.time_ns.wrapping_add(other.time_ns);
        self.sent = self.sent.wrapping_add(other.sent);
        self.received = self.received.wrapping_add(other.received);
        self.received_at_most = self.received_at_most.wrapping_add(other.received_at_most);
        self.unknown = self.unknown.wrapping_add(other.unknown);
        self.completed = self.completed.wrapping_add(other.completed);
        self.pending_ns = self.pending_ns.wrapping_add(other.pending_ns);
        self.waited_ns = self.waited_ns.wrapping_add(other.waited_ns);
    }
}

/// A communicator as one process knows it, by handle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct CommunicatorKey {
    /// Process slot.
    pub process: u32,
    /// One of [`handle_of`].
    pub kind: u32,
    pub handle: u64,
}

/// What was read of a communicator when it was made, or else when it was first used.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Communicator {
    pub key: CommunicatorKey,
    /// The library's number for it, see [`crate::layout::CommFacts::context`].
    pub context: u64,
    /// The process's rank in it.
    pub rank: u32,
    /// Processes in the process's own group; 0: nothing could be read (yet).
    pub size: u32,
    /// Processes in the other group of an inter-communicator, else 0.
    pub remote_size: u32,
    /// Not 0: an inter-communicator.
    pub is_inter: u32,
    /// When it was made or first used, ns.
    pub first_ns: u64,
    /// When it was freed, ns; 0: not yet.
    pub freed_ns: u64,
    /// One of [`communicator_kind`].
    pub kind: u32,
    /// Function id plus one of the call that has made it; 0: not seen.
    pub made_by_plus_1: u32,
    /// Number of the communicator that it was made from; 0: not known.
    pub parent: u32,
    /// Some members, which tell it from others with the same context: ranks in `MPI_COMM_WORLD` of the first, middle and last of the
    /// process's own group; of an inter-communicator, `last` is the first of the other group. [`peer::UNKNOWN`] where not known.
    pub first: i32,
    pub middle: i32,
    pub last: i32,
    pub degrees: Degrees,
}

/// How many neighbours a process has in the topology of a communicator.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Degrees {
    /// Neighbours that data comes from; [`Self::NO_NUMBER`]: not known, or there is no topology.
    pub indegree: u32,
    /// Neighbours that data goes to; likewise.
    pub outdegree: u32,
    /// Bits of those, in their order, that are `MPI_PROC_NULL`: beyond the edges of a grid, where nothing comes from and nothing goes to.
    pub absent: u32,
    /// Index plus one of the [`Topology`] that says who they are; 0: that is not known.
    pub topology_plus_1: u32,
}

impl Degrees {
    pub const NO_NUMBER: u32 = u32::MAX;
    pub const UNKNOWN: Self = Self::new(Self::NO_NUMBER, Self::NO_NUMBER, 0);

    pub const fn new(indegree: u32, outdegree: u32, absent: u32) -> Self {
        Self { indegree, outdegree, absent, topology_plus_1: 0 }
    }

    /// The same, with the index plus one of who they are.
    #[must_use]
    pub const fn told_by(self, topology_plus_1: u32) -> Self {
        Self { topology_plus_1, ..self }
    }
}

/// Who a process's neighbours are in the topology of a communicator. Zeros: not known. What it says is read by
/// [`crate::rules::topology`].
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Topology {
    /// One of [`topology_kind`].
    pub kind: u32,
    /// The process's rank in the communicator, as those who gave the lists had it: of another rank they say nothing.
    pub rank: u32,
    /// How many numbers there are in each list.
    pub first_length: u32,
    pub second_length: u32,
    /// Of a grid, the lengths of its dimensions; of a graph, the ranks that data comes from.
    pub first: [i32; MOST_NEIGHBOURS],
    /// Of a grid, which of them are periodic; of a graph, the ranks that data goes to.
    pub second: [i32; MOST_NEIGHBOURS],
}

/// Of a process with as many neighbours or more, who they are is not known. A power of two.
pub const MOST_NEIGHBOURS: usize = 128;

/// Values of [`Topology::kind`].
pub mod topology_kind {
    pub const GRID: u32 = 1;
    pub const GRAPH: u32 = 2;
    /// A graph whose first list is of both ways.
    pub const BOTH_WAYS: u32 = 3;
}

/// The communicator that a window or file was made with.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Scope {
    /// Handle of the communicator, and its number.
    pub communicator: u64,
    pub number: u32,
    /// Padding, zero.
    pub reserved: u32,
}

/// Kinds of handles: values of [`CommunicatorKey::kind`].
pub mod handle_of {
    pub const COMMUNICATOR: u32 = 0;
    pub const WINDOW: u32 = 1;
    pub const FILE: u32 = 2;
}

/// What a communicator is to the program.
pub mod communicator_kind {
    /// Its members have not been looked at yet.
    pub const NOT_YET: u32 = 0;
    /// Made by a call.
    pub const MADE: u32 = 1;
    /// `MPI_COMM_WORLD`.
    pub const WORLD: u32 = 2;
    /// `MPI_COMM_SELF`.
    pub const OWN: u32 = 3;
}

/// Where a communicator comes from.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Origin {
    /// Function id plus one of the call that has made it.
    pub made_by_plus_1: u32,
    /// Number of the communicator that it was made from; 0: none, or not known.
    pub parent: u32,
    /// When that call returned, ns.
    pub made_ns: u64,
    /// As in [`Communicator`], by the arguments of that call.
    pub degrees: Degrees,
}

/// The name that the program has given to a communicator, by the communicator's number; NUL-terminated, empty without one.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct CommunicatorName {
    pub text: [u8; NAME_LENGTH],
}

/// `MPI_MAX_OBJECT_NAME` is 64 or 128.
pub const NAME_LENGTH: usize = 128;

/// How many communicators of a table of `slots` are told apart. The rest is for those that come when these are used up: each has its
/// place until it is freed, and all of them together are "other".
pub const fn distinct_communicators(slots: u32) -> u32 {
    slots - slots / 4
}

/// A call that has returned and is being accounted for: passed from one program to the next.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Completed {
    /// Handle of the communicator; 0 without one.
    pub communicator_handle: u64,
    /// Return address.
    pub call_site: u64,
    /// Duration, ns.
    pub ns: u64,
    pub function: u32,
    /// Not 0: it returned `MPI_SUCCESS`. A call that failed has moved nothing.
    pub succeeded: u32,
    /// The rank sent to and the one received from, as given; or one of [`peer`].
    pub destination: i32,
    pub source: i32,
    /// Indices plus one of the flows: of the one partner or the one sent to, and of the other one received from; 0: none.
    pub flow_plus_1: u32,
    pub second_flow_plus_1: u32,
    /// Number of the communicator.
    pub communicator: u32,
    /// Statistics entry plus one; 0: none.
    pub stats_plus_1: u32,
    /// Number of a communicator whose members are being looked at; 0: none.
    pub looked_at: u32,
    /// Number of the communicator that the call has made; 0: none, or looked at already.
    pub made: u32,
    /// How many of the members have been looked at.
    pub step: u32,
    /// Not 0: it is the same as one before, and known by that: the place of that one in the thread's [`crate::CallCache`] plus one.
    /// [`PREPARED`]: it is not, but it was tried to find the layout of the process's library by what is known of others.
    pub is_recalled: u32,
    /// How many communicators the process had freed before it was looked up which one the call was given.
    pub epoch: u32,
    /// What it returned.
    pub result: i32,
    /// What has left and what has arrived; of a call that posts an operation, by that.
    pub sent: Amount,
    pub received: Amount,
}

/// A value of [`Completed::is_recalled`].
pub const PREPARED: u32 = u32::MAX;

impl Completed {
    /// The place of the one before that it is the same as, in the thread's [`crate::CallCache`]; `None`: it was found out about by itself.
    #[inline]
    pub const fn recalled_from(&self) -> Option<u32> {
        if self.is_recalled == PREPARED { None } else { self.is_recalled.checked_sub(1) }
    }

    pub const NONE: Self = Self {
        communicator_handle: 0,
        call_site: 0,
        ns: 0,
        function: 0,
        succeeded: 0,
        destination: peer::NONE,
        source: peer::NONE,
        flow_plus_1: 0,
        second_flow_plus_1: 0,
        communicator: 0,
        stats_plus_1: 0,
        looked_at: 0,
        made: 0,
        step: 0,
        is_recalled: 0,
        epoch: 0,
        result: 0,
        sent: Amount::NOTHING,
        received: Amount::NOTHING,
    };
}

/// An array of counts that is being added up.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Sum {
    /// Address of the counts.
    pub counts: u64,
    /// Address of their datatypes; 0: all elements are of one.
    pub datatypes: u64,
    /// The datatype of all elements, if they are of one.
    pub datatype: u64,
    /// Elements so far, if they are of one datatype; else bytes.
    pub total: u64,
    /// How many counts there are; 0: there is nothing to be added up.
    pub length: u32,
    /// The next one.
    pub next: u32,
    /// Not 0: something was not readable, or not known.
    pub unknown: u32,
    /// Bits of counts that say nothing: those of absent neighbours.
    pub absent: u32,
}

/// What is still to be added up of a completed call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Summing {
    /// What leaves.
    pub sent: Sum,
    /// What arrives.
    pub received: Sum,
    /// Not 0: what leaves is what arrives.
    pub sent_is_received: u64,
}

impl Sum {
    pub const NONE: Self =
        Self { counts: 0, datatypes: 0, datatype: 0, total: 0, length: 0, next: 0, unknown: 0, absent: 0 };
}

impl Summing {
    pub const NONE: Self = Self { sent: Sum::NONE, received: Sum::NONE, sent_is_received: 0 };

    /// There is nothing to be added up. The rest of a sum means something with a length only.
    #[inline]
    pub const fn clear(&mut self) {
        self.sent.length = 0;
        self.received.length = 0;
        self.sent_is_received = 0;
    }
}

/// Where a thread's latest flows are, so that most calls need no look-up.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct RecentFlow {
    pub call_site: u64,
    /// Handle, as given.
    pub communicator: u64,
    /// Rank, as given.
    pub peer: i32,
    /// Function id plus one, 0 if nothing is remembered here.
    pub function_plus_1: u32,
    /// How many communicators the process had freed by then.
    pub epoch: u32,
    /// Index of the flow.
    pub flow: u32,
}

/// Number of [`RecentFlow`]s of a thread; a power of two.
pub const RECENT_FLOWS: usize = 1 << RECENT_BITS;
const RECENT_BITS: u32 = 4;

impl RecentFlow {
    /// What stands for the handle of a communicator with that number that has been freed: no handle and no address of a program is that large.
    #[inline]
    pub const fn freed(number: u32) -> u64 {
        1 << 63 | number as u64
    }

    /// Where among a thread's [`RECENT_FLOWS`] a flow is remembered. Loops over neighbours differ by a few in one of these numbers:
    /// Fibonacci hashing gives them places of their own.
    #[inline]
    pub const fn place(function: u32, peer: i32, call_site: u64) -> usize {
        let mixed = call_site ^ (peer.cast_unsigned() as u64) << 32 ^ (function as u64) << 52;
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - RECENT_BITS)) as usize
    }
}
