//! What events refer to.

use std::collections::{BTreeMap, HashMap};

use mpiprobe_model::CallSite;
use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
            #[serde(transparent)]
            pub struct $name(pub u32);

            impl $name {
                pub const fn index(self) -> usize {
                    self.0 as usize
                }
            }
        )*
    };
}

ids! {
    /// Index in [`Definitions::nodes`].
    NodeId;
    /// Index in [`Definitions::processes`].
    ProcessId;
    /// Index in [`Definitions::locations`].
    LocationId;
    /// Index in [`Definitions::communicators`].
    CommunicatorId;
    /// Index in [`Definitions::windows`].
    WindowId;
    /// Index in [`Definitions::files`].
    FileId;
    /// Index in [`Definitions::call_sites`].
    SiteId;
}

/// Everything that events refer to. While a job is being recorded, lists get longer, and what is known of an entry gets more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Definitions {
    pub nodes: Vec<Node>,
    pub processes: Vec<Process>,
    pub locations: Vec<Location>,
    pub communicators: Vec<Communicator>,
    pub windows: Vec<Window>,
    pub files: Vec<File>,
    pub call_sites: Vec<CallSite>,
}

/// A machine, and its clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub host: String,
    /// What tells this run of the machine from others (`/proc/sys/kernel/random/boot_id`).
    pub boot: String,
    /// In the order of time.
    pub clock: Vec<ClockPair>,
}

/// The clock of the events (`CLOCK_MONOTONIC`) and that of the world (`CLOCK_REALTIME`) at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockPair {
    pub monotonic_ns: u64,
    /// Since 1970.
    pub realtime_ns: u64,
    /// The two were read at most so long one after the other.
    pub within_ns: u64,
    /// How far the clock of the world may be wrong, as the kernel says (`adjtimex`); `None`: it is not synchronised, or nobody knows.
    pub max_error_ns: Option<u64>,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub node: NodeId,
    pub pid: u32,
    /// The name of its job; `None`: not known.
    pub job: Option<String>,
    /// In its `MPI_COMM_WORLD`; `None`: not known.
    pub rank: Option<u32>,
    /// Ranks in `MPI_COMM_WORLD`; `None`: not known.
    pub world_size: Option<u32>,
    pub executable: String,
    /// The MPI library, as it calls itself; empty: not known.
    pub library: String,
    /// From when on it was recorded, ns.
    pub recorded_from_ns: u64,
    /// It had called MPI before.
    pub began_before: bool,
    /// `None`: when recording ended, it went on, or it is not known.
    pub ended_ns: Option<u64>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    pub process: ProcessId,
    /// Thread id; the initial thread's is the process's.
    pub tid: u32,
    /// When it called MPI first, or was recorded first, ns.
    pub began_ns: u64,
    /// `None`: when recording ended, it went on, or it is not known.
    pub ended_ns: Option<u64>,
    pub losses: Losses,
}

/// Calls of a thread that are not in the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// For want of room: they came more quickly than they were written down.
    pub lost: u64,
    /// What became of further requests of a call, for want of room.
    pub lost_changes: u64,
    /// In parts of the file that are damaged.
    pub damaged: u64,
    /// That were left without a return (`longjmp`, an exception).
    #[serde(default)]
    pub left_without_return: u64,
    pub left_out: LeftOut,
}

/// What was not to be recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub by_function: u64,
    pub by_communicator: u64,
    pub by_duration: u64,
    /// Polling calls that found nothing, while there was little room.
    pub by_pressure: u64,
    /// Outside the windows that were recorded.
    pub by_time: u64,
}

/// A communicator, the same for all processes in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Communicator {
    /// As the program calls it, or how it was made.
    pub name: String,
    pub kind: CommunicatorKind,
    /// Whose world it is of; `None`: not known.
    pub job: Option<String>,
    /// Ranks in `MPI_COMM_WORLD` by rank, `None` for those that are not known. Empty: nothing is known of members.
    pub members: Vec<Option<u32>>,
    /// Of the other group; empty: no inter-communicator.
    pub remote_members: Vec<Option<u32>>,
    /// The one that it was made from; `None`: none, or not known.
    pub parent: Option<CommunicatorId>,
    /// All that are in it were seen to make it: whatever was done over it is there.
    #[serde(default)]
    pub was_made: bool,
    /// In its topology, by rank, as far as they are known; empty: it has none, or nothing is known of it.
    #[serde(default)]
    pub neighbours: BTreeMap<u32, Neighbours>,
}

/// Whom collective calls over neighbourhoods move data from and to, by ranks in the communicator, in the order of the standard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbours {
    pub sources: Vec<u32>,
    pub destinations: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommunicatorKind {
    World,
    /// `MPI_COMM_SELF`: each process has one of its own.
    Own,
    Made,
}

/// A window for one-sided communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub communicator: Option<CommunicatorId>,
}

/// A file that processes have opened together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub communicator: Option<CommunicatorId>,
    /// `None`: not known.
    pub path: Option<String>,
}

impl Losses {
    /// Calls that were to be recorded and are not there.
    pub const fn missing(&self) -> u64 {
        self.lost.saturating_add(self.damaged).saturating_add(self.left_without_return)
    }
}

impl LeftOut {
    pub const fn calls(&self) -> u64 {
        let chosen = self.by_function.saturating_add(self.by_communicator).saturating_add(self.by_duration);
        chosen.saturating_add(self.by_pressure).saturating_add(self.by_time)
    }
}

impl Communicator {
    /// Processes in it, of both groups; `None`: not known.
    pub fn size(&self) -> Option<usize> {
        if self.members.is_empty() { None } else { Some(self.members.len() + self.remote_members.len()) }
    }

    pub fn is_inter(&self) -> bool {
        !self.remote_members.is_empty()
    }

    /// Rank of a process in its own group, by its rank in the world.
    pub fn rank_of(&self, world_rank: u32) -> Option<u32> {
        let place = |members: &[Option<u32>]| members.iter().position(|&member| member == Some(world_rank));
        place(&self.members).or_else(|| place(&self.remote_members)).and_then(|rank| u32::try_from(rank).ok())
    }

    /// The world rank of `rank`, as a process of the group that has `world_rank` calls it.
    pub fn member(&self, world_rank: Option<u32>, rank: u32) -> Option<u32> {
        let is_remote =
            self.is_inter() && !self.remote_members.iter().any(|&member| member.is_some() && member == world_rank);
        let members = if is_remote { &self.remote_members } else { &self.members };
        members.get(rank as usize).copied().flatten()
    }
}

impl Definitions {
    pub fn process(&self, id: ProcessId) -> Option<&Process> {
        self.processes.get(id.index())
    }

    pub fn location(&self, id: LocationId) -> Option<&Location> {
        self.locations.get(id.index())
    }

    pub fn communicator(&self, id: CommunicatorId) -> Option<&Communicator> {
        self.communicators.get(id.index())
    }

    pub fn call_site(&self, id: SiteId) -> Option<&CallSite> {
        self.call_sites.get(id.index())
    }

    /// "rank 3", "rank 3 of job 17" where there are several jobs, "process 1234" if the rank is not known; `None`: there is no such process.
    pub fn process_name(&self, id: ProcessId) -> Option<String> {
        let process = self.process(id)?;
        let is_several = self.processes.iter().any(|other| other.job != process.job);
        Some(match (process.rank, &process.job) {
            (Some(rank), Some(job)) if is_several => format!("rank {rank} of {job}"),
            (Some(rank), _) => format!("rank {rank}"),
            (None, _) => format!("process {}", process.pid),
        })
    }

    /// Calls that were made while recording was on and are not in the trace, all threads together. Whoever has written the trace decides what
    /// it says: the sum ends at the highest number.
    pub fn missing_calls(&self) -> u64 {
        self.locations.iter().fold(0, |sum, location| sum.saturating_add(location.losses.missing()))
    }

    /// Polling calls that had found nothing and were left out because there was no room for them, all threads together. Nobody has asked for
    /// that, unlike for the other reasons of [`LeftOut`].
    pub fn calls_without_room(&self) -> u64 {
        self.locations.iter().fold(0, |sum, location| sum.saturating_add(location.losses.left_out.by_pressure))
    }

    /// All locations' ids.
    pub fn location_ids(&self) -> impl Iterator<Item = LocationId> + use<> {
        (0..u32::try_from(self.locations.len()).unwrap_or(u32::MAX)).map(LocationId)
    }

    /// Those of a process.
    pub fn threads(&self, process: ProcessId) -> impl Iterator<Item = LocationId> + '_ {
        self.location_ids().filter(move |&id| self.location(id).is_some_and(|location| location.process == process))
    }

    /// The process of each (job, rank in the world).
    pub fn by_rank(&self) -> HashMap<(Option<&str>, u32), ProcessId> {
        let processes = (0..).map(ProcessId).zip(&self.processes);
        processes.filter_map(|(id, process)| Some(((process.job.as_deref(), process.rank?), id))).collect()
    }

    /// The process that `from` means by `rank` of a communicator: in an inter-communicator, one of the other group. `None`: it is not
    /// recorded, or its rank in the world is not known. Whoever asks often keeps [`Self::by_rank`].
    pub fn process_at(
        &self,
        by_rank: &HashMap<(Option<&str>, u32), ProcessId>,
        from: ProcessId,
        communicator: CommunicatorId,
        rank: u32,
    ) -> Option<ProcessId> {
        let known = self.communicator(communicator)?;
        let process = self.process(from)?;
        if known.kind == CommunicatorKind::Own {
            return (rank == 0).then_some(from);
        }
        let world_rank = known.member(process.rank, rank)?;
        by_rank.get(&(process.job.as_deref(), world_rank)).copied()
    }
}
