//! What a profile says, in the terms of MPI: plain data, serialised as the JSON output.

mod arguments;
mod call_site;
mod communicator;
mod cost;
mod efficiency;
mod function;
mod losses;
mod names;
mod pending;
mod phase;
mod profile;
mod rank;
mod recent;
#[cfg(test)]
pub(crate) mod sample;
mod spread;
mod sum;
mod tool;
mod unmatched;
mod volume;
mod warning;

pub use arguments::{CallArguments, CommunicatorArgument, DatatypeArgument, Peer};
pub use call_site::{CallSite, SourceFrame};
pub use communicator::{
    Amounts, CommunicatorProfile, CommunicatorSize, FunctionAmounts, OtherCommunicators, PartnerRow, TrafficProfile,
};
pub use cost::OwnCost;
pub use efficiency::{Efficiency, Spent, Window};
pub use function::{FunctionProfile, FunctionRow, GroupProfile, GroupRow, GroupTraffic, InnerCalls, Rates};
pub use losses::{Losses, without_options};
pub use pending::PendingRow;
pub use phase::{PhaseProfile, RankPhase};
pub use profile::{EndReason, EngineInfo, JobInfo, LibraryInfo, Profile, SCHEMA, SlowSite, Totals};
pub use rank::{OpenCallInfo, OtherThreads, RankProfile, RankState, ThreadLife, ThreadProfile};
pub use recent::{ArgumentValue, NamedArgument, RecentCallInfo, RecentCalls};
pub use spread::Spread;
pub(crate) use sum::SaturatingSum;
pub use tool::{FunctionLayers, LibraryLayer, ToolCalls, ToolInfo, ToolLayer};
pub use unmatched::{OtherEndSeen, UnmatchedRow};
pub use volume::{CommunicatorRow, FlowRow, FunctionTraffic, Partner, RankTraffic, Volume};
pub use warning::Warning;
