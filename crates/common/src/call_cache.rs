//! What a thread's latest calls were: one with the same arguments from the same place is the same again.
//!
//! Most calls of a program are. To compare a few words is quicker than to find out what they mean.

use bytemuck::{Pod, Zeroable};

use crate::{cache_key::KEY_WORDS, flow::RECENT_FLOWS, request::Amount, trace::CommonLine};

/// One of them. Zeroed: none.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct CachedCall {
    /// Return address.
    pub call_site: u64,
    /// Process slot.
    pub process: u32,
    /// Function id plus one; 0: nothing is known here.
    pub function_plus_1: u32,
    /// How many communicators the process had freed by then.
    pub epoch: u32,
    /// [`flags`], ORed.
    pub flags: u32,
    /// What the arguments of the key were, in the order of [`crate::cache_key::CacheKey::positions`].
    pub words: [u64; KEY_WORDS],
    /// `MPI_IN_PLACE`, and `MPI_STATUS_IGNORE`.
    pub in_place: u64,
    pub status_ignore: u64,
    /// Handle of the communicator; 0 without one.
    pub communicator_handle: u64,
    /// What each such call moves, or begins to move.
    pub sent: Amount,
    pub received: Amount,
    /// The rank sent to and the one received from, as given; or one of [`crate::flow::peer`].
    pub destination: i32,
    pub source: i32,
    /// Indices plus one of the flows, as in [`crate::flow::Completed`].
    pub flow_plus_1: u32,
    pub second_flow_plus_1: u32,
    /// Number of the communicator.
    pub communicator: u32,
    /// Where it is in the cache, plus one.
    pub place_plus_1: u32,
    /// What is written down of it, if it is [`flags::PLAIN`].
    pub line: CommonLine,
    /// `MPI_ANY_TAG`.
    pub any_tag: i32,
    /// Positions of the tags, of the flag by which it says that anything has happened, and of the status;
    /// [`NONE`](crate::descriptor::NONE): without.
    pub send_tag: u8,
    pub receive_tag: u8,
    pub is_complete: u8,
    pub status: u8,
}

/// Bits of [`CachedCall::flags`].
pub mod flags {
    /// The send and the receive buffer were `MPI_IN_PLACE`.
    pub const SEND_IN_PLACE: u32 = 1 << 0;
    pub const RECEIVE_IN_PLACE: u32 = 1 << 1;
    pub const IN_PLACE: u32 = SEND_IN_PLACE | RECEIVE_IN_PLACE;
    /// What leaves is counted when the call returns, and what arrives.
    pub const SENDS_NOW: u32 = 1 << 2;
    pub const RECEIVES_NOW: u32 = 1 << 3;
    /// What arrives is told by a status, and was not known.
    pub const TO_BE_MEASURED: u32 = 1 << 4;
    /// The call posts an operation.
    pub const POSTS: u32 = 1 << 5;
    /// It settles requests, if it is given any; or always.
    pub const SETTLES: u32 = 1 << 6;
    pub const ENDS: u32 = 1 << 7;
    /// What is written down of it follows from [`super::CachedCall::line`] and from its arguments.
    pub const PLAIN: u32 = 1 << 8;
    /// Unless it was given a wildcard, and has found something: what that is, a status tells.
    pub const TELLS: u32 = 1 << 9;
}

/// The latest calls of a thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct CallCache {
    pub calls: [CachedCall; RECENT_FLOWS],
}

// Said to users (`docs/engine.md`) as 3.2 KiB.
const _: () = assert!(size_of::<CallCache>() <= 3200);
