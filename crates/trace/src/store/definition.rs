//! What events refer to, as it is written: one by one, the later taking the place of the earlier.

use mpiprobe_model::CallSite;
use serde::{Deserialize, Serialize};

use crate::definitions::{
    CommunicatorKind, File, Location, LocationId, Neighbours, Node, NodeId, Process, ProcessId, SiteId,
};

/// An entry of [`Definitions`](crate::Definitions), or what one is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Definition {
    /// Names of functions, by the number that events have.
    Functions(Vec<String>),
    Node(NodeId, Node),
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
    /// Ranks in the world by rank, as far as they are known; may be empty.
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
