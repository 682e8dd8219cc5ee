//! The tables as they are now.

mod clock;
mod ended_threads;
mod events;
mod observer;
mod recent;
mod recent_switch;
mod shared;
mod snapshot;
mod stats;
mod table_file;

pub use clock::monotonic_ns;
pub use events::{Notice, NoticeKind};
pub use observer::{ObserveError, Observer};
pub use recent::{RecentLog, RecentRing};
pub use recent_switch::RecentSwitch;
pub use snapshot::{
    ArgumentWords, ByFunction, CommunicatorSnapshot, DatatypeSnapshot, Members, PendingRequest, PhaseSnapshot,
    ProcessSnapshot, RecentSnapshot, SHARED, Snapshot, ThreadSnapshot, ToolsSnapshot,
};
pub use stats::StatsReader;
pub use table_file::{TableFile, TableFileError};
