//! Amounts of data, and who has moved them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Amounts, Partner, PendingRow, Rows,
    names::{self, Name},
};

/// Data that went one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Volume {
    /// Calls that moved data this way, or might have: messages of no bytes count.
    pub messages: u64,
    pub bytes: u64,
    /// Of the smallest and the largest, bytes; 0 without any.
    pub min_bytes: u64,
    pub max_bytes: u64,
    pub mean_bytes: f64,
    /// Messages by size: `[0]` of no bytes, `[n]` of 2ⁿ⁻¹ to 2ⁿ − 1 bytes; up to the last that is not 0.
    pub sizes: Vec<u64>,
}

/// What the calls of one function have moved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionTraffic {
    pub sent: Volume,
    pub received: Volume,
    /// Of the bytes received, those known as an upper bound only, because the program ignores the status.
    pub received_at_most_bytes: u64,
    /// Calls of which it is not known how much they moved.
    pub calls_of_unknown_bytes: u64,
}

/// What the calls of one rank have moved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankTraffic {
    /// Communicators used by calls that take one.
    pub communicators: Vec<CommunicatorRow>,
    /// Completed calls by function, place, communicator and partner: most bytes first.
    pub flows: Rows<FlowRow>,
    /// Operations under way, the oldest first: at the end of a process those that it never completed.
    pub pending: Vec<PendingRow>,
}

/// What the calls of one function from one place to one partner over one communicator have moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FlowRow {
    #[serde(deserialize_with = "names::name")]
    pub function: Name,
    /// `MPI_Start` or `MPI_Startall`, of what a persistent request of that function has moved; `null`: the call itself.
    #[serde(deserialize_with = "names::optional", default)]
    pub started_by: Option<Name>,
    /// Number of the communicator among [`CommunicatorRow`]s of the rank; `null`: none, or not known.
    pub communicator: Option<u32>,
    pub partner: Partner,
    /// Rank in `MPI_COMM_WORLD` of the partner; `null` if it is no rank.
    pub peer: Option<u32>,
    /// Return address of the calls in the process.
    pub call_site: u64,
    /// The same as a place in the source, or as near to that as the program's files allow; `null`: not known. Thousands of rows have
    /// the same one.
    #[serde(deserialize_with = "names::shared_text", default)]
    pub site: Option<Arc<str>>,
    #[serde(flatten)]
    pub amounts: Amounts,
    /// Of operations with a request: how many a call has said to be complete.
    pub completed: u64,
    /// From the return of the call that posted each of these to the return of that call, ns, summed.
    pub pending_ns: u64,
    /// Their part of the durations of those calls, ns: a call's time is divided evenly among the requests it completes.
    pub waited_ns: u64,
}

/// A communicator that a rank has used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommunicatorRow {
    /// Means the same communicator in one rank only.
    pub number: u32,
    /// [`CommunicatorProfile::id`](super::CommunicatorProfile::id) of it; `null`: one of many that are not told apart.
    pub id: Option<u32>,
    /// The library's number for it, which all members have in common; but two without a common member may have the same.
    pub context: u64,
    /// The process's rank in it; `null`: not known.
    pub rank: Option<u32>,
    /// Processes in its own group; `null`: not known.
    pub size: Option<u32>,
    /// Processes in the other group; `null`: no inter-communicator, or not known.
    pub remote_size: Option<u32>,
    /// It has been freed.
    pub freed: bool,
}
