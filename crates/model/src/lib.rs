//! What a profile says, in the terms of MPI: plain data, serialised as the JSON output.
// Printing to a pipe that somebody has closed must not panic: mpiprobe_report::present::{say, Output}.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod analyse;
mod arguments;
mod budget;
mod call_site;
mod check;
mod communicator;
mod cost;
mod efficiency;
pub mod filter;
mod finding;
mod function;
mod losses;
mod names;
mod pending;
mod phase;
mod profile;
mod rank;
mod recent;
mod rows;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
mod spread;
mod sum;
mod tool;
mod unmatched;
mod volume;
mod wait_states;

/// Name and version of the JSON form; the version is raised when a field changes its meaning or goes.
pub const SCHEMA: &str = "mpiprobe.profile/1";

pub use arguments::{CallArguments, CommunicatorArgument, DatatypeArgument, Leaders, Partner, Peer, WindowArgument};
pub use budget::{Budget, Estimate, Level, Reduction, Spending};
pub use call_site::{CallSite, SourceFrame};
pub use check::{Check, Report, Verdict, finding_and_fix};
pub use communicator::{
    Amounts, CommunicatorProfile, CommunicatorSize, FunctionAmounts, OtherCommunicators, PartnerRow, TrafficProfile,
};
pub use cost::OwnCost;
pub use efficiency::{Efficiency, Spent, Window};
pub use finding::{Doing, Finding, Found, PartnerAtPlace, RankAtPlace, Standstill, TimeAtPlace};
pub use function::{FunctionProfile, FunctionRow, GroupProfile, GroupRow, GroupTraffic, InnerCalls, Rates};
pub use losses::{Losses, TableRoom};
pub use pending::PendingRow;
pub use phase::{PhaseProfile, RankPhase};
pub use profile::{EndReason, EngineInfo, JobInfo, LibraryInfo, Profile, SlowSite, Totals};
pub use rank::{BeganBeforeRow, OpenCallInfo, OtherThreads, RankProfile, RankState, ThreadLife, ThreadProfile};
pub use recent::{ArgumentValue, NamedArgument, RecentCallInfo, RecentCalls};
pub use rows::Rows;
pub use spread::Spread;
pub use sum::SaturatingSum;
pub use tool::{FunctionLayers, LibraryLayer, ToolCalls, ToolInfo, ToolLayer};
pub use unmatched::{OtherEndSeen, UnmatchedRow};
pub use volume::{CommunicatorRow, FlowRow, FunctionTraffic, RankTraffic, Volume};
pub use wait_states::{
    Activity, CauseRow, ClockQuality, CriticalPath, DelayRow, ImbalanceRow, NodeClock, PathRow, PendingEnds,
    UnmatchedEnds, WAITS_SCHEMA, WaitKind, WaitRow, WaitSite, WaitStates, WaitingThread,
};
