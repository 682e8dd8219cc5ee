//! From tables to a profile.

mod aggregate;
mod beginning;
mod change;
mod communicator_names;
mod communicators;
mod findings;
mod flows;
mod input;
mod merge;
mod names;
mod open_call;
mod over_communicators;
mod over_ranks;
mod pending;
mod percentile;
mod phases;
mod profile;
mod rank;
mod recent;
mod self_cost;
mod span;
mod threads;
mod tools;
mod traffic;
mod unusual;
mod waited;
mod waiting;
mod whole;

pub use beginning::is_seen_from_its_beginning;
pub use change::{Bytes, Change, FunctionChange, Look, RankChange, RankId, identify};
pub use findings::{ProfileOutput, findings, first_failure, found, is_deadlocked};
pub use input::{Beginning, EndedCall, Expected, Identity, Observed, Session};
pub use merge::{MergeError, merge, merge_nodes};
pub use open_call::{arguments_of_call, datatype_of_call, datatype_of_open_call};
pub use over_communicators::over_communicators;
pub use pending::others as other_requests;
pub use percentile::percentile_bounds;
pub use profile::profile;
pub use self_cost::SelfCost;
pub use span::between;
pub use unusual::is_unusually_long;
pub use waited::{ByProcess, ProcessWaits, WaitChange, WaitId, Waited, wait_id};
pub use waiting::{
    Cause, Certainty, Need, Operation, OtherEnd, Posted, Wait, Waiting, Why, causes, longest, operations, unmatched,
    unmatched_rows, waiting,
};
