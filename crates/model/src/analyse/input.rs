//! What the analysis needs to know besides the tables.

use mpiprobe_discover::Failure;
use mpiprobe_observe::ArgumentWords;

use super::SelfCost;
use crate::{EndReason, EngineInfo, RankState};

/// How much of a process is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beginning {
    /// It ran already: it may have been inside a call that nobody saw begin.
    #[default]
    MidRun,
    /// It was waited for, so it was to be seen from its first call on, and may not have been.
    Awaited,
    /// Every call of it.
    FirstCall,
}

/// One process image under observation.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Process slot.
    pub process: u32,
    pub identity: Identity,
    pub state: RankState,
    /// Stopped by a signal or a debugger when it was last looked at.
    pub stopped: bool,
    /// Beginning of its observation, ns.
    pub since_ns: u64,
    pub beginning: Beginning,
    /// Its end, if it has ended, ns.
    pub until_ns: Option<u64>,
    /// With what it has ended, if it was not successful and that is known.
    pub failure: Option<Failure>,
    /// Calls in which its threads were ended.
    pub ended_in: Vec<EndedCall>,
    /// What is taken off the times of its completed calls.
    pub self_cost: SelfCost,
}

/// Who a process is, as far as is known.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// The node's name.
    pub host: String,
    pub pid: u32,
    pub rank: Option<u32>,
    pub size: Option<u32>,
    pub job: Option<String>,
    pub executable: String,
}

/// A call that its thread did not survive.
#[derive(Clone, Copy, Debug)]
pub struct EndedCall {
    pub tid: u32,
    pub function: u32,
    /// When the thread ended, ns.
    pub ended_ns: u64,
    /// How long it had been open, ns.
    pub open_ns: u64,
    pub call_site: Option<u64>,
    pub arguments: ArgumentWords,
}

/// Whether the processes observed are to be all of a job's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expected {
    /// Those of this node, or those that the user has named.
    #[default]
    Some,
    /// All: mpiprobe has started the job, or what is put together is all that was kept of it; and it has ended.
    AllRanks,
}

/// The observation as a whole.
#[derive(Clone, Debug)]
pub struct Session {
    pub host: String,
    /// UTC, RFC 3339.
    pub began: String,
    pub began_ns: u64,
    pub end: Option<EndReason>,
    pub engine: EngineInfo,
    /// Cost of a probed call, ns, and the part of it inside measured durations, if that is known.
    pub per_call_ns: f64,
    pub inside_ns: Option<f64>,
    /// Whether inner calls were asked for.
    pub nested: bool,
    /// Whether it was asked what calls have moved.
    pub traffic: bool,
    /// Patterns of names of communicators that are shown; empty: all.
    pub communicators: Vec<String>,
    pub expected: Expected,
    /// Why the picture is not whole, known before looking at any number: a rank that may not be traced, for example.
    pub incomplete_because: Vec<String>,
}
