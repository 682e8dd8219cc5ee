//! Jobs that count themselves by the wrapper: their tables are files.

mod bury;
mod clocks;
mod datatypes;
mod hosts;
mod image;
mod images;
mod launch;
mod live;
mod place;
mod profile;
mod recent;
mod relay;
mod report;
mod stale;

pub use launch::{LaunchError, RunOptions, launch};
pub(super) use launch::{finish, shell_status, split};
pub(super) use live::WrappedJob;
pub(super) use profile::made;
pub use profile::{ProfileTo, WriteError};
pub(super) use relay::Relay;
pub use report::{ReportError, ReportOptions, report};
