//! Operations that are under way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Partner,
    names::{self, Name},
};

/// A request that has been posted or started, and that no call has said to be complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PendingRow {
    /// Function that made the request.
    #[serde(deserialize_with = "names::name")]
    pub function: Name,
    /// Nobody has seen it posted: the library says what it does, and the function is only one that makes such requests.
    #[serde(default)]
    pub is_of_library: bool,
    /// Call that has started it, of a persistent one; `null` of any other.
    #[serde(deserialize_with = "names::optional", default)]
    pub started_by: Option<Name>,
    /// Number of the communicator among those of the rank; `null`: none, or not known.
    pub communicator: Option<u32>,
    /// Of a receive who is expected, else who is sent to.
    pub partner: Partner,
    /// Rank in `MPI_COMM_WORLD` of the partner; `null` if it is no rank.
    pub peer: Option<u32>,
    /// Tag; `null`: it has none. A wildcard is the number that the library uses for it.
    pub tag: Option<i32>,
    /// What leaves, bytes; `null`: nothing, or not known.
    pub sent_bytes: Option<u64>,
    /// What arrives, bytes; of a receive the size of its buffer; `null`: nothing, or not known.
    pub received_bytes: Option<u64>,
    /// Since the call that posted it returned, ns.
    pub age_ns: u64,
    /// Thread whose open call waits for it; `null`: none does, or nobody has looked.
    #[serde(default)]
    pub awaited_by: Option<u32>,
    /// Whether the library says that it is under way, of one that an open call waits for: if not, that call waits for others. `null`: not known.
    #[serde(default)]
    pub is_under_way: Option<bool>,
    /// Return address of the call that made it.
    pub call_site: u64,
    /// The same as a place in the source, as near as the program's files allow; `null`: not known.
    pub site: Option<String>,
}
