//! What events refer to, as it is written: one by one, the later taking the place of the earlier.

use mpiprobe_functions::FUNCTIONS;
use mpiprobe_model::CallSite;
use serde::{Deserialize, Serialize};

use crate::definitions::{
    ClockPair, CommunicatorKind, File, Location, LocationId, Neighbours, Node, NodeId, Process, ProcessId, SiteId,
};

/// An entry of [`Definitions`](crate::Definitions), or what one is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Definition {
    /// Names of functions, by the number that events have.
    Functions(Vec<String>),
    Node(NodeId, Node),
    /// One more pair of a node's clocks.
    Clock(NodeId, ClockPair),
    Process(ProcessId, Process),
    Location(LocationId, Location),
    CallSite(SiteId, CallSite),
    /// A communicator as one process knows it: events have its number.
    Communicator(LocalCommunicator),
    /// Number of a window in a process, and of the communicator that it was made with.
    Window {
        process: ProcessId,
        number: u32,
        communicator: Option<u32>,
    },
    /// The same of a file.
    File {
        process: ProcessId,
        number: u32,
        communicator: Option<u32>,
        file: File,
    },
    /// Nothing follows: whoever has written the file has come to its end.
    End,
}

impl Definition {
    /// The functions of this program, as it numbers them.
    pub(super) fn own_functions() -> Self {
        Self::Functions(FUNCTIONS.iter().map(|function| function.name.to_owned()).collect())
    }
}

/// A communicator as one process knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalCommunicator {
    pub process: ProcessId,
    /// Its number in that process, from 1 on.
    pub number: u32,
    pub name: String,
    pub kind: CommunicatorKind,
    /// The library's number for it; 0: not known. Used again when it has been freed.
    pub context: u64,
    /// Processes in the process's own group, and in the other one of an inter-communicator.
    pub size: u32,
    pub remote_size: u32,
    /// The process's rank in it.
    pub rank: u32,
    /// Number of the one that it was made from; `None`: not known.
    pub parent: Option<u32>,
    /// Name of the function that has made it; `None`: not seen.
    #[serde(default)]
    pub made_by: Option<String>,
    /// Ranks in the world of the first, the middle and the last member of the process's group; of an inter-communicator, the last is the first
    /// of the other group.
    #[serde(default)]
    pub outline: [Option<u32>; 3],
    /// Ranks in the world by rank, as far as they are known; may be empty: each process knows its own place, and that does.
    pub members: Vec<Option<u32>>,
    pub remote_members: Vec<Option<u32>>,
    /// The process's own in its topology; `None`: it has none, or they are not known.
    #[serde(default)]
    pub neighbours: Option<Neighbours>,
    /// The process was seen to make it: all communicators made by it are there, in their order.
    pub was_made: bool,
    /// When it was made, or else first used, ns.
    pub first_ns: u64,
    pub freed_ns: Option<u64>,
}

impl LocalCommunicator {
    /// How it was made: `world`, `self`, `split` of `MPI_Comm_split`, `cart` of `MPI_Cart_create`, else `comm`.
    pub fn made(&self) -> String {
        match self.kind {
            CommunicatorKind::World => "world".to_owned(),
            CommunicatorKind::Own => "self".to_owned(),
            CommunicatorKind::Made => self.made_by.as_deref().map_or_else(|| "comm".to_owned(), short_name),
        }
    }

    /// What its process calls it, or else how it was made.
    pub fn own_name(&self) -> String {
        let is_predefined = matches!(self.kind, CommunicatorKind::World | CommunicatorKind::Own);
        if self.name.is_empty() || is_predefined { self.made() } else { self.name.clone() }
    }
}

fn short_name(function: &str) -> String {
    let name = function.strip_prefix("MPI_").unwrap_or(function).to_lowercase();
    let name = name.strip_prefix("comm_").unwrap_or(&name);
    let name = name.strip_suffix("_adjacent").unwrap_or(name);
    name.strip_suffix("_create").unwrap_or(name).to_owned()
}
