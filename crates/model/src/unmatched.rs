//! Sends and receives without their other end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::{self, Name};

/// A send or receive that has been under way for a while, and nothing is seen that would meet it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnmatchedRow {
    pub job: Option<String>,
    /// Rank in `MPI_COMM_WORLD`; `null`: unknown.
    pub rank: Option<u32>,
    pub pid: u32,
    /// The call that is open, or that has made the request.
    #[serde(deserialize_with = "names::name")]
    pub function: Name,
    /// It is a request, not an open call.
    pub is_request: bool,
    pub is_send: bool,
    /// Rank in `MPI_COMM_WORLD` at the other end; `null`: anybody's.
    pub peer: Option<u32>,
    /// `null`: any.
    pub tag: Option<i32>,
    /// [`CommunicatorProfile::id`](super::CommunicatorProfile::id); `null`: not known.
    pub communicator: Option<u32>,
    /// Since when, ns.
    pub age_ns: u64,
    pub other_end: OtherEndSeen,
    /// Tag of the one that differs in it.
    pub other_tag: Option<i32>,
    /// Communicator of the one that differs in it.
    pub other_communicator: Option<u32>,
}

/// What there is instead of the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OtherEndSeen {
    /// Nothing that would meet it.
    Missing,
    /// One without an end of its own that differs in the tag.
    OtherTag,
    /// The same that differs in the communicator.
    OtherCommunicator,
}
