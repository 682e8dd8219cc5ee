//! Who has waited for whom, and why, by the definitions of Scalasca.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the JSON form; the version is raised when a field changes its meaning or goes.
pub const WAITS_SCHEMA: &str = "mpiprobe.waits/1";

/// A wait state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitKind {
    /// A receiver waits until the message is sent.
    LateSender,
    /// A sender waits until somebody receives.
    LateReceiver,
    /// All wait for the last one to come.
    Barrier,
    /// Time in a barrier after the first one has left.
    BarrierCompletion,
    /// The same where everybody needs something of everybody.
    AllToAll,
    AllToAllCompletion,
    /// At most: where it is not known who needs something of whom (`MPI_Alltoallv`, `MPI_Alltoallw`).
    AllToAllVarying,
    /// A root waits for the first of those that send to it.
    EarlyReduce,
    /// Those that need something of a root wait for it.
    LateBroadcast,
    /// Waiting for those with lower ranks.
    EarlyScan,
    /// Waiting for neighbours in a topology.
    Neighbours,
    /// Waiting for the last one where communicators are made, or files used together.
    Common,
    /// The same with windows: making and freeing them, fences.
    Window,
    /// Whoever accesses a window waits until it is exposed (`MPI_Win_post`).
    LatePost,
    /// Whoever has exposed a window waits until those that access it have completed that (`MPI_Win_complete`).
    EarlyWait,
    /// Whoever needs a lock of a window waits until another one begins to give it up (`MPI_Win_unlock`).
    LockContention,
    /// A one-sided call waits until its target calls MPI. At most: the library may need no call of it, and be busy with what it moves.
    Progress,
    InitCompletion,
    Finalize,
}

impl WaitKind {
    pub const ALL: [Self; 19] = [
        Self::LateSender,
        Self::LateReceiver,
        Self::Barrier,
        Self::BarrierCompletion,
        Self::AllToAll,
        Self::AllToAllCompletion,
        Self::AllToAllVarying,
        Self::EarlyReduce,
        Self::LateBroadcast,
        Self::EarlyScan,
        Self::Neighbours,
        Self::Common,
        Self::Window,
        Self::LatePost,
        Self::EarlyWait,
        Self::LockContention,
        Self::Progress,
        Self::InitCompletion,
        Self::Finalize,
    ];

    /// For people, as Scalasca calls it where it has it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::LateSender => "late sender",
            Self::LateReceiver => "late receiver",
            Self::Barrier => "wait at barrier",
            Self::BarrierCompletion => "barrier completion",
            Self::AllToAll => "wait at N x N",
            Self::AllToAllCompletion => "N x N completion",
            Self::AllToAllVarying => "wait at N x N, at most",
            Self::EarlyReduce => "early reduce",
            Self::LateBroadcast => "late broadcast",
            Self::EarlyScan => "early scan",
            Self::Neighbours => "wait for neighbours",
            Self::Common => "wait at common calls",
            Self::Window => "wait at windows",
            Self::LatePost => "late post",
            Self::EarlyWait => "early wait",
            Self::LockContention => "lock contention",
            Self::Progress => "wait for progress, at most",
            Self::InitCompletion => "init completion",
            Self::Finalize => "wait at finalize",
        }
    }

    /// Whether some of the time may be no waiting.
    pub const fn is_at_most(self) -> bool {
        matches!(self, Self::AllToAllVarying | Self::Progress)
    }

    /// Whether it is time that somebody waits for somebody; otherwise it is what leaving takes.
    pub const fn is_waiting(self) -> bool {
        !matches!(self, Self::BarrierCompletion | Self::AllToAllCompletion | Self::InitCompletion)
    }
}

/// Wait states of a job, in a span of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitStates {
    /// On the clock of the first node, ns.
    pub from_ns: u64,
    pub until_ns: u64,
    /// What was before `from_ns` is gone: of a job that goes on, on several nodes, only the latest calls are looked at, as many as there is
    /// memory for.
    #[serde(default)]
    pub is_short: bool,
    /// Calls that were looked at.
    pub calls: u64,
    /// Those of them that had not returned at the end of the recording, or of their process: what they have waited for is not known.
    #[serde(default)]
    pub open_calls: u64,
    /// Time of all threads between their first and last call, but for that between calls others of which are not in the trace; and what of it
    /// was in MPI, ns.
    pub total_ns: u64,
    pub mpi_ns: u64,
    /// Everything could be matched, and nothing was lost.
    pub complete: bool,
    pub threads: Vec<WaitingThread>,
    pub call_sites: Vec<WaitSite>,
    /// Most time first.
    pub waits: Vec<WaitRow>,
    /// What others have waited for; most time first.
    pub delays: Vec<DelayRow>,
    /// `None`: the job was not seen to the end of the span.
    pub critical_path: Option<CriticalPath>,
    pub unmatched: UnmatchedEnds,
    /// What waits for its other end, which may come yet, and is in no other figure: of a job that goes on.
    #[serde(default)]
    pub pending: PendingEnds,
    pub clocks: ClockQuality,
    /// Time of a processor that was taken to find this out while the job ran; `null`: it was found out later, in a trace, ns.
    #[serde(default)]
    pub own_cpu_ns: Option<u64>,
}

/// A thread that calls MPI. Other fields name it by its index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingThread {
    pub job: Option<String>,
    pub rank: Option<u32>,
    pub host: String,
    pub pid: u32,
    pub tid: u32,
    /// It is not the only thread of its process that calls MPI.
    pub is_one_of_several: bool,
}

/// A call of one function at one place. Other fields name it by its index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitSite {
    pub function: String,
    /// As a call site is told in one line; `null`: not known.
    pub site: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Activity {
    /// It is between two calls: indices of sites; `null`: before the first, or behind the last call.
    Computing { after: Option<u32>, before: Option<u32> },
    /// In a call, without waiting.
    Calling { site: u32 },
    /// Between two calls, others of which are not in the trace: they were lost, left out, or made outside the time that was recorded.
    NotRecorded { after: Option<u32>, before: Option<u32> },
    /// Waiting itself: for what, is said of that wait.
    Waiting { site: u32 },
}

/// Time that a thread has waited in one way at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitRow {
    pub kind: WaitKind,
    pub thread: u32,
    pub site: u32,
    pub count: u64,
    pub ns: u64,
    pub longest_ns: u64,
    /// When the longest began.
    pub longest_at_ns: u64,
    /// Of late senders, what would not have been if messages had been received in the order in which they were sent.
    pub wrong_order_same_source_ns: u64,
    pub wrong_order_other_source_ns: u64,
    /// Of waits at fences, what was over with the last access to the process's own part of the window.
    #[serde(default)]
    pub early_fence_ns: u64,
    /// Of early waits, what came after the last access.
    #[serde(default)]
    pub late_complete_ns: u64,
    /// Of that time, what others were busy with meanwhile; most first.
    pub caused_by: Vec<CauseRow>,
    /// What is left: less was found than was waited, or no cause was looked for.
    pub unexplained_ns: u64,
}

/// What a wait is due to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseRow {
    /// `null`: threads and activities that are too many to be told apart.
    pub thread: Option<u32>,
    pub activity: Option<Activity>,
    pub ns: u64,
}

/// Time that others have waited for what a thread has done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelayRow {
    pub thread: u32,
    pub activity: Activity,
    /// By those who waited for it directly, and by those who waited for these.
    pub direct_ns: f64,
    pub indirect_ns: f64,
}

/// What has determined how long the job took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CriticalPath {
    pub length_ns: u64,
    /// Most time first.
    pub parts: Vec<PathRow>,
    /// By activity of all threads: what would be gained at most if it took all threads the same time.
    pub imbalance: Vec<ImbalanceRow>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathRow {
    pub thread: u32,
    pub activity: Activity,
    pub ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImbalanceRow {
    pub activity: Activity,
    pub path_ns: u64,
    /// Over all threads.
    pub mean_ns: f64,
    pub imbalance_ns: f64,
    /// What other threads lose by it, as far as the path is as long because of it.
    pub impact_ns: f64,
}

/// What could not be told of messages and collectives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnmatchedEnds {
    /// Messages of which both ends were found.
    pub matched_messages: u64,
    pub sends: u64,
    pub receives: u64,
    /// The other end is in a process that is not recorded.
    pub outside: u64,
    pub of_unknown_source: u64,
    pub of_unknown_request: u64,
    /// Requests whose completion no recorded call has seen: nobody knows who has waited for them, and how long.
    #[serde(default)]
    pub completed_unseen: u64,
    /// Their order was not sure: calls are missing, or messages may have been on their way before.
    pub unsure: u64,
    /// What has come is not what was sent, or was there before it.
    pub contradictions: u64,
    pub matched_collective_calls: u64,
    /// Of members that are not all recorded, or not known.
    pub of_partial_groups: u64,
    pub incomplete_collective_calls: u64,
    /// Epochs of one-sided communication (`MPI_Win_start`, `MPI_Win_post`) in which nobody was seen to access anything, or whose other side is
    /// not there.
    #[serde(default)]
    pub epochs: u64,
    /// Calls over neighbourhoods that are not known.
    pub unknown_neighbours: u64,
    /// Calls that are not in the trace: lost or damaged, and left out.
    pub lost_calls: u64,
    pub left_out_calls: u64,
    /// Between nodes whose clocks cannot be compared.
    pub between_clocks: u64,
    /// Indirect causes are not followed further back than so many waits ago.
    pub causes_cut_off: u64,
}

/// What waits for its other end while a job goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PendingEnds {
    /// Messages that were sent and not received.
    pub sends: u64,
    /// Receives that were posted and have got nothing.
    pub receives: u64,
    /// Calls of collectives that others have not made yet.
    pub collective_calls: u64,
    /// Calls that are over, and of which it is not known yet whether they have waited: others are behind.
    pub calls: u64,
}

/// What is known of clocks of several nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockQuality {
    pub nodes: Vec<NodeClock>,
    /// Times of two threads that cannot be true: something ended before what it needed had begun.
    pub violations: u64,
    /// By how much at most, ns.
    pub worst_violation_ns: u64,
    /// Waits between nodes that are shorter than what is known of their clocks, which are in no other figure, and how long they would be.
    #[serde(default)]
    pub unsure_waits: u64,
    #[serde(default)]
    pub unsure_ns: u64,
}

/// The clock of a node, against that of the first one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClock {
    pub host: String,
    /// What was added to its times at the beginning of the span, ns, and how much more in a second.
    pub offset_ns: i64,
    pub drift_ns_per_s: f64,
    /// The true offset is at most so far from that, as messages tell; `null`: nothing bounds it.
    pub within_ns: Option<u64>,
    /// Messages and collectives that tell.
    pub evidence: u64,
}

impl PendingEnds {
    pub const fn is_empty(&self) -> bool {
        self.sends + self.receives + self.collective_calls + self.calls == 0
    }
}

impl WaitStates {
    /// How long it is from the first to the last that was looked at, ns.
    pub const fn span_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.from_ns)
    }
}

impl UnmatchedEnds {
    /// Ends of messages, calls of collectives, and epochs, whose other ends were not found.
    pub fn unmatched_ends(&self) -> u64 {
        let all = [
            self.sends,
            self.receives,
            self.outside,
            self.of_unknown_source,
            self.of_unknown_request,
            self.completed_unseen,
            self.unsure,
            self.contradictions.saturating_mul(2),
            self.of_partial_groups,
            self.incomplete_collective_calls,
            self.epochs,
        ];
        all.into_iter().fold(0, u64::saturating_add)
    }

    /// Whether nothing is missing.
    pub const fn is_empty(&self) -> bool {
        let messages = self.sends + self.receives + self.outside + self.of_unknown_source + self.of_unknown_request;
        let messages = messages + self.completed_unseen + self.epochs;
        let collective = self.of_partial_groups + self.incomplete_collective_calls + self.unknown_neighbours;
        messages + collective + self.unsure + self.contradictions + self.lost_calls + self.between_clocks == 0
    }
}
