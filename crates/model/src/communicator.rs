//! Communicators over ranks, and what went over them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Rows,
    names::{self, Name},
};

/// Completed calls that have something in common, and what they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Amounts {
    /// A call with two partners counts for each of them.
    pub calls: u64,
    /// Time in them, ns. Of a call with two partners with the one it sends to.
    pub time_ns: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Of those, what is known as an upper bound only.
    pub received_at_most_bytes: u64,
    /// Calls of which it is not known how much they moved.
    pub calls_of_unknown_bytes: u64,
}

impl Amounts {
    /// Of a recording they may be anything.
    pub fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
        self.sent_bytes = self.sent_bytes.saturating_add(other.sent_bytes);
        self.received_bytes = self.received_bytes.saturating_add(other.received_bytes);
        self.received_at_most_bytes = self.received_at_most_bytes.saturating_add(other.received_at_most_bytes);
        self.calls_of_unknown_bytes = self.calls_of_unknown_bytes.saturating_add(other.calls_of_unknown_bytes);
    }
}

/// Who sent how much to whom over what, over ranks (`--traffic`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrafficProfile {
    /// In the order in which they were made.
    pub communicators: Vec<CommunicatorProfile>,
    /// Those for which there was no room, and, of very many, those that were used least; `null` without any.
    pub other_communicators: Option<OtherCommunicators>,
    /// The same by size, smallest first.
    pub communicator_sizes: Vec<CommunicatorSize>,
    /// The communication matrix: most bytes first.
    pub partners: Rows<PartnerRow>,
}

/// One communicator, whatever its handles are in the processes that are in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommunicatorProfile {
    /// Means the same communicator in all profiles of one run.
    pub id: u32,
    /// As the program has called it, or else how it was made: `world`, `self`, `split#2 of world`.
    pub name: String,
    /// Whether the program has chosen that name.
    pub is_named: bool,
    pub job: Option<String>,
    /// The library's number for it.
    pub context: u64,
    /// Processes in it, or in one of its groups; `null`: not known.
    pub size: Option<u32>,
    /// Processes in the other group; `null`: no inter-communicator, or not known.
    pub remote_size: Option<u32>,
    /// Ranks in `MPI_COMM_WORLD` by rank, `null` for those that are not known or of another world. `null`: none is known, or they
    /// are very many.
    pub members: Option<Vec<Option<u32>>>,
    /// Of the other group.
    pub remote_members: Option<Vec<Option<u32>>>,
    /// The [`Self::id`] of the communicator that it was made from; `null`: of none, or not known.
    pub parent: Option<u32>,
    /// The function that has made it; `null`: not seen.
    #[serde(deserialize_with = "names::optional", default)]
    pub made_by: Option<Name>,
    /// Ranks observed that are in it.
    pub ranks: u32,
    /// All of those have freed it.
    pub freed: bool,
    #[serde(flatten)]
    pub amounts: Amounts,
    /// By function, most time first.
    pub functions: Vec<FunctionAmounts>,
}

/// What the calls of one function have moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionAmounts {
    #[serde(deserialize_with = "names::name")]
    pub function: Name,
    #[serde(flatten)]
    pub amounts: Amounts,
}

/// Communicators that are not told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherCommunicators {
    /// How many; of those without room, as many as the processes in them have counted.
    pub communicators: u64,
    #[serde(flatten)]
    pub amounts: Amounts,
}

/// All communicators of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommunicatorSize {
    /// Processes, those of both groups of an inter-communicator together.
    pub size: u32,
    pub communicators: u64,
    #[serde(flatten)]
    pub amounts: Amounts,
}

/// What one rank did with another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartnerRow {
    pub job: Option<String>,
    /// Ranks in `MPI_COMM_WORLD`: whose calls these are, and who was at the other end.
    pub rank: u32,
    pub peer: u32,
    #[serde(flatten)]
    pub amounts: Amounts,
}
