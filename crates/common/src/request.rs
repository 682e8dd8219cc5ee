//! Operations that are under way: posted by one call, completed by another.

use bytemuck::{Pod, Zeroable};

use crate::layout::{Layout, Memory, handle_kind, status_bytes, status_cancelled};

/// A request by the value of its handle, which a library uses again as soon as the request is complete.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct RequestKey {
    /// Process slot.
    pub process: u32,
    /// One of [`key_kind`].
    pub kind: u32,
    pub handle: u64,
}

/// What a [`RequestKey`] stands for.
pub mod key_kind {
    /// The latest operation of the handle.
    pub const REQUEST: u32 = 0;
    /// The one before, if another one has got its handle before the call that completes it has returned.
    pub const DISPLACED: u32 = 1;
    /// A matched message, by its own handle.
    pub const MESSAGE: u32 = 2;
    /// An access that has been begun, by the handle of the file.
    pub const ACCESS: u32 = 3;
    /// A further one before, if that of [`DISPLACED`] is still there.
    pub const DISPLACED_TOO: u32 = 4;
    /// A persistent one that is not active, which a thread's open call gives up; in place of the handle there is the thread.
    pub const GIVEN_UP: u32 = 5;
}

/// An operation.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Request {
    /// When the call that posted (or started) it returned, ns.
    pub posted_ns: u64,
    /// Duration of that call, ns.
    pub posting_ns: u64,
    /// Return address of the call that made it.
    pub call_site: u64,
    /// Handle of the communicator, as given.
    pub communicator: u64,
    /// What leaves each time.
    pub sent: Amount,
    /// What arrives each time; at most, if that is [`state::BY_STATUS`].
    pub received: Amount,
    /// Number of the communicator.
    pub communicator_number: u32,
    /// Indices plus one of the flows: of the one partner or the one sent to, and of another one received from; 0: none.
    pub flow_plus_1: u32,
    pub second_flow_plus_1: u32,
    /// As given, or one of [`crate::flow::peer`].
    pub destination: i32,
    pub source: i32,
    /// Of the receive, else of the send; 0 where there is none.
    pub tag: i32,
    /// Function that made it.
    pub function: u16,
    /// Function id plus one of the call that has started it, of a persistent one; else 0.
    pub started_by_plus_1: u16,
    /// Padding, zero.
    pub reserved: u32,
    /// [`state`], ORed, and above it a number that differs from that of the handle's earlier operations. Whoever changes it by
    /// compare-and-swap has the right to account for the operation, or to write another one here.
    pub state: u64,
}

impl Request {
    /// Index plus one of the flow of what arrives; of an operation without that, of what leaves.
    #[inline]
    pub const fn receiving_flow_plus_1(&self) -> u32 {
        receiving(self.flow_plus_1, self.second_flow_plus_1)
    }

    /// What tells the operation from others that have, or had, the same handle; another one each time that it is started.
    #[inline]
    pub const fn epoch(&self) -> u64 {
        epoch_of(self.state >> state::BITS)
    }

    /// Whether `MPI_Start` can have started it: it was made to be started, by a call that was seen.
    #[inline]
    pub const fn can_be_started(&self) -> bool {
        self.state & state::PERSISTENT != 0
    }

    /// Whether the status of the call that completes it is that of its message. MPICH and its descendants leave that of an `MPI_Isendrecv` as
    /// whoever had the request before has left it (seen with MPICH 4.0.2, MPICH 5.0.2 and Intel MPI 2021.18).
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "BPF programs have 512 bytes of stack and pay for calls")]
    pub const fn has_own_status(&self, layout: &Layout) -> bool {
        let is_exchange = self.sent.certainty != certainty::NOTHING && self.state & state::BY_STATUS != 0;
        !is_exchange || layout.handles == handle_kind::POINTER
    }

    /// What has arrived, according to the status at `address`; 0: the program does not want one; or [`FAILED`].
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "BPF programs have 512 bytes of stack and pay for calls")]
    pub fn arrived<M: Memory>(&self, layout: &Layout, address: u64, memory: &M) -> Amount {
        if address == 0 {
            return self.received;
        }
        if address == FAILED {
            return Amount::NOTHING;
        }
        // Only messages can be cancelled; Open MPI leaves that part of the status as it was for files.
        let is_message = self.state & state::TAGGED != 0;
        match if is_message { status_cancelled(layout, address, memory) } else { Some(false) } {
            Some(true) => Amount::NOTHING,
            Some(false) => status_bytes(layout, address, memory).map_or(Amount::UNKNOWN, Amount::known),
            None => Amount::UNKNOWN,
        }
    }
}

/// The [`Request::epoch`] of an operation that was posted, or started, by a call that returned then.
#[inline]
pub const fn epoch_of(posted_ns: u64) -> u64 {
    posted_ns & 0xffff_ffff
}

/// In place of the address of a status: the operation has failed, and nothing has arrived.
pub const FAILED: u64 = u64::MAX;

/// Of the flows of an operation with one partner or two, the one of what arrives: by index plus one, 0 for none.
#[inline]
pub const fn receiving(flow_plus_1: u32, second_flow_plus_1: u32) -> u32 {
    if second_flow_plus_1 == 0 { flow_plus_1 } else { second_flow_plus_1 }
}

/// Bits of [`Request::state`].
pub mod state {
    /// Posted or started, and not known to be complete.
    pub const ACTIVE: u64 = 1 << 0;
    /// Stays when it is complete, to be started again.
    pub const PERSISTENT: u64 = 1 << 1;
    /// What arrives is told by the status.
    pub const BY_STATUS: u64 = 1 << 2;
    /// It has a tag.
    pub const TAGGED: u64 = 1 << 3;
    /// Bits below the number.
    pub const BITS: u32 = 8;
    pub const FLAGS: u64 = (1 << BITS) - 1;
}

/// What a library keeps of a request, read in the memory of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRequest {
    pub operation: FoundOperation,
    pub progress: FoundProgress,
    /// Made to be started again and again.
    pub is_persistent: bool,
    /// Handle of the communicator, as a program has it.
    pub communicator: Option<u64>,
    pub peer: FoundPeer,
    pub tag: FoundTag,
    /// Bytes of the buffer.
    pub bytes: Option<u64>,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundOperation {
    Send,
    Receive,
    Collective,
    /// Files, windows, generalised requests.
    Other,
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundProgress {
    /// Persistent, and not started.
    Inactive,
    Active,
    Complete,
}

/// Who is at the other end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundPeer {
    /// Rank in the communicator.
    Rank(u32),
    Any,
    /// There is none, or nobody knows.
    Unknown,
}

/// Its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundTag {
    Tag(i32),
    Any,
    Unknown,
}

/// An amount of data that may be unknown.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Amount {
    pub bytes: u64,
    /// One of [`certainty`].
    pub certainty: u64,
}

/// What is known of an [`Amount`].
pub mod certainty {
    /// Nothing can go this way.
    pub const NOTHING: u64 = 0;
    pub const KNOWN: u64 = 1;
    pub const AT_MOST: u64 = 2;
    pub const UNKNOWN: u64 = 3;
}

impl Amount {
    pub const NOTHING: Self = Self { bytes: 0, certainty: certainty::NOTHING };
    pub const UNKNOWN: Self = Self { bytes: 0, certainty: certainty::UNKNOWN };

    /// Whether bytes are known, exactly or at most.
    #[inline]
    pub const fn is_some(&self) -> bool {
        matches!(self.certainty, certainty::KNOWN | certainty::AT_MOST)
    }

    #[inline]
    pub const fn known(bytes: u64) -> Self {
        Self { bytes, certainty: certainty::KNOWN }
    }
}

/// Handles that are remembered of one call; further ones are not followed, and counted.
pub const MOST_HANDLES: usize = 16_384;

/// Handles that each thread has room for. Few calls are given more.
pub const HANDLES: usize = 1024;

/// Handles that a call was given, as they were at its entry: 32 or 64 bits each, one behind the other.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Handles {
    pub words: [u64; HANDLES],
}

/// The same of a call that was given more.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct ManyHandles {
    pub words: [u64; MOST_HANDLES],
}

/// How far a thread is in going through the requests of its completed call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Following {
    /// The handle that the call was given, if it takes one only.
    pub handle: u64,
    /// What the call's time is to each of the requests that it has completed, ns.
    pub share_ns: u64,
    /// Which one is next, and how many there are. Of calls that complete some, positions in the array of indices.
    pub next: u32,
    pub end: u32,
    /// How many handles are remembered.
    pub handles: u32,
    /// The only one that is complete, of calls that complete one of many.
    pub only: u32,
    /// Numbers plus one of the thread slot's [`Handles`] and [`ManyHandles`]; 0: none yet. They stay with the slot.
    pub store_plus_1: u16,
    pub many_plus_1: u16,
    /// How many of them are not `MPI_REQUEST_NULL`.
    pub requests: u32,
}

impl Following {
    pub const NONE: Self = Self {
        handle: 0,
        share_ns: 0,
        next: 0,
        end: 0,
        handles: 0,
        only: 0,
        store_plus_1: 0,
        many_plus_1: 0,
        requests: 0,
    };
}
