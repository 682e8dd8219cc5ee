//! What is probably wrong with a job, as data: what finds it is in [`analyse`](crate::analyse), what words it is further on.

use mpiprobe_discover::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    OpenCallInfo,
    names::{self, Name},
};

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Finding {
    /// Time that it takes from all ranks together, ns; `null`: not known, or no matter of time.
    pub cost_ns: Option<u64>,
    /// What the stacks of threads tell of it, over several lines; `null`: it follows from calls alone.
    pub stacks: Option<String>,
    #[serde(flatten)]
    pub what: Found,
}

/// Why ranks do not go on, as the stacks of all their threads have told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Standstill {
    #[serde(flatten)]
    pub what: Found,
    /// In words, with each rank's place; over several lines.
    pub text: String,
}

/// What it is, with its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Found {
    /// Of a circle, each rank waits for the next one, the last for the first; of a knot, for another one of them, and of some it is not
    /// known for which. `null`: a rank without a number.
    Deadlock { circles: Vec<Vec<Option<u32>>>, knots: Vec<Vec<Option<u32>>> },
    /// All members of a communicator are in one collective call, and mean different roots.
    DifferentRoots {
        ranks: Vec<Option<u32>>,
        #[serde(deserialize_with = "names::name")]
        function: Name,
    },
    /// So many others have waited for it for so long at least, ns, some of them for each other.
    WaitedFor { rank: Option<u32>, ranks: usize, for_ns: u64, does: Doing },
    /// All ranks of a job are in one collective call, and none has returned: nobody is missing there.
    AllAreThere {
        ranks: usize,
        #[serde(deserialize_with = "names::name")]
        function: Name,
    },
    /// It has ended all ranks by `MPI_Abort`.
    Aborted { rank: Option<u32>, code: Option<i32>, site: Option<String> },
    /// So many ranks have ended without success; the first, if it is known which, and the call in which it was, if that is.
    Failed { ranks: usize, rank: Option<u32>, failure: Failure, call: Option<Box<OpenCallInfo>> },
    /// Something was not counted.
    Incomplete { because: Vec<String> },
    /// So many ranks have ended with so many of them; the first.
    RequestsNeverCompleted {
        ranks: usize,
        requests: usize,
        rank: Option<u32>,
        #[serde(deserialize_with = "names::name")]
        function: Name,
        site: Option<String>,
    },
    /// So many ranks are in one; the longest.
    UnusuallyLongCall { ranks: usize, of_ranks: usize, rank: Option<u32>, call: Box<OpenCallInfo> },
    /// Ranks that spend much of their time in one function at one place.
    TimeAtPlace(TimeAtPlace),
    /// Some compute much longer than the average; the one that computes most, and its share of its time, per cent.
    Imbalance { load_balance_percent: f64, rank: Option<u32>, computing_percent: f64 },
    /// Share of all time, per cent, and the function with most of it.
    MostlyInMpi {
        percent: f64,
        #[serde(deserialize_with = "names::name")]
        function: Name,
    },
    /// A function that only asks, called very often; its share of the wall time of all ranks, per cent.
    Polling {
        #[serde(deserialize_with = "names::name")]
        function: Name,
        calls_per_s: f64,
        percent: f64,
    },
    TinyMessages {
        #[serde(deserialize_with = "names::name")]
        function: Name,
        messages_per_s: f64,
        mean_bytes: u64,
    },
    TinyIo {
        #[serde(deserialize_with = "names::name")]
        function: Name,
        calls: u64,
        mean_bytes: u64,
    },
    /// Of the job's time, per cent, and of a call, ns.
    HighOwnCost { percent: f64, per_call_ns: f64 },
}

/// What a rank does that others wait for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "doing", rename_all = "kebab-case")]
pub enum Doing {
    /// Not in MPI.
    Computes,
    /// By a signal or a debugger.
    Stopped,
    Ended,
    /// In a call of which it is not certain for whom it waits; the longest, if it has several threads.
    Call {
        call: Box<OpenCallInfo>,
    },
}

/// A function called at a place, in which ranks spend much of their time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimeAtPlace {
    #[serde(deserialize_with = "names::name")]
    pub function: Name,
    /// As in `flows`; `null`: not known.
    pub site: Option<String>,
    /// Those that spend much there, most first, and at most [`TimeAtPlace::RANKS`] of them.
    pub ranks: Vec<RankAtPlace>,
    /// All of those, named here or not.
    pub ranks_in_all: usize,
}

/// What one rank spends there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankAtPlace {
    pub rank: Option<u32>,
    /// Completed calls.
    pub calls: u64,
    /// In them, ns.
    pub time_ns: u64,
    /// Of the wall time of its threads that use MPI, per cent.
    pub percent: f64,
    /// The rank that most of that time has to do with; `null`: there is none, or it is not known.
    pub partner: Option<PartnerAtPlace>,
}

/// Who most of the time has to do with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartnerAtPlace {
    /// In `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Of the time, per cent.
    pub percent: f64,
    /// Messages go to it (or come from it).
    pub is_destination: bool,
}

impl TimeAtPlace {
    pub const RANKS: usize = 8;
}

impl Found {
    /// Whether some ranks never go on.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Deadlock { .. } | Self::DifferentRoots { .. })
    }

    /// Whether the job does not go on.
    pub fn hangs(&self) -> bool {
        matches!(
            self,
            Self::Deadlock { .. } | Self::DifferentRoots { .. } | Self::WaitedFor { .. } | Self::AllAreThere { .. }
        )
    }

    /// Whether it comes first whatever it costs: the job does not go on or is wrong, or figures are.
    pub fn is_grave(&self) -> bool {
        matches!(
            self,
            Self::Deadlock { .. }
                | Self::DifferentRoots { .. }
                | Self::WaitedFor { .. }
                | Self::AllAreThere { .. }
                | Self::Aborted { .. }
                | Self::Failed { .. }
                | Self::Incomplete { .. }
                | Self::RequestsNeverCompleted { .. }
                | Self::UnusuallyLongCall { .. }
        )
    }
}
