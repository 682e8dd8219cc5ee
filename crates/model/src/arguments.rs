//! What a call was given, by what its arguments mean.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The meaning of the arguments of an open call, as far as it can be told without looking into the program's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallArguments {
    /// Whom it sends to, or whose window it uses; `null`: the function has no such argument.
    pub destination: Option<Peer>,
    /// Whom it receives from.
    pub source: Option<Peer>,
    /// The root of a collective.
    pub root: Option<Peer>,
    pub send_tag: Option<i32>,
    /// `null`: none, or any (`any_tag`).
    pub receive_tag: Option<i32>,
    /// It receives whatever tag the message has.
    pub any_tag: bool,
    pub communicator: Option<CommunicatorArgument>,
    #[serde(default)]
    pub window: Option<WindowArgument>,
    /// Ranks in `MPI_COMM_WORLD` of the group that it was given with the window or communicator; `null`: none, or not known.
    #[serde(default)]
    pub group: Option<Vec<Option<u32>>>,
    /// Who speaks for the groups of which `MPI_Intercomm_create` makes a communicator.
    #[serde(default)]
    pub leaders: Option<Leaders>,
    /// Of `MPI_Abort`.
    #[serde(default)]
    pub error_code: Option<i32>,
    /// Elements: of what it sends, otherwise of what it receives.
    pub count: Option<u64>,
    /// What those are; `null`: it has no datatype, or several.
    #[serde(default)]
    pub datatype: Option<DatatypeArgument>,
    /// Bytes of those; `null` if the size of the datatype is not known.
    pub bytes: Option<u64>,
    /// How many requests it waits for.
    pub requests: Option<u64>,
    /// Of these, those that are none of the rank's [pending](crate::PendingRow) ones and not null: complete, or not known. `null`:
    /// nobody has looked which they are.
    #[serde(default)]
    pub other_requests: Option<u64>,
}

/// Who speaks for each of two groups: ranks in `MPI_COMM_WORLD`, `null` where that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leaders {
    /// For the rank's own group.
    pub local: Option<u32>,
    /// For the other one, which only who speaks for its own is given.
    pub remote: Option<u32>,
}

/// Who was at the other end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Partner {
    /// A rank: `peer` beside it.
    Rank,
    /// Nobody in particular: collectives, files.
    Nobody,
    /// `MPI_PROC_NULL`.
    ProcNull,
    /// `MPI_ANY_SOURCE`, where the status does not tell who it was.
    AnySource,
    /// Somebody whose rank in `MPI_COMM_WORLD` is not known.
    Unknown,
}

/// A rank that an argument names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peer {
    pub partner: Partner,
    /// Its rank in the communicator; `null` if it is no rank.
    pub rank: Option<u32>,
    /// Its rank in `MPI_COMM_WORLD`; `null`: not known.
    pub world_rank: Option<u32>,
}

/// A datatype that an argument names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DatatypeArgument {
    /// As the program passes it.
    pub handle: u64,
    /// What `MPI_Type_set_name` said, or of a predefined one what the standard calls it; `null`: it has none, or it is not known.
    pub name: Option<String>,
    /// Bytes of data in one element; `null`: not known.
    pub size: Option<u64>,
}

/// A communicator that an argument names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommunicatorArgument {
    /// As the program passes it.
    pub handle: u64,
    /// Number among the [`super::CommunicatorRow`]s of the rank; `null`: it is not among them.
    pub number: Option<u32>,
    /// `null`: it has none, or it is not known.
    pub name: Option<String>,
    /// Processes in it; `null`: not known.
    pub size: Option<u32>,
}

/// A window that an argument names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WindowArgument {
    /// As the program passes it.
    pub handle: u64,
    /// `null`: it has none, or it is not known.
    pub name: Option<String>,
    /// The library's number for what its members use to tell it from others; `null`: not known.
    pub context: Option<u64>,
    /// Processes in it; `null`: not known.
    pub size: Option<u32>,
    /// Ranks in `MPI_COMM_WORLD` of its members, in their order; `null`: all, or not known.
    pub members: Option<Vec<Option<u32>>>,
}
