//! What the service observes unasked, for those who watch the node: figures of every job, which are few and grow with no number of
//! ranks. [`watch`] looks which jobs there are and has each of them observed, [`figures`] keeps of its profiles what is wanted,
//! [`board`] all jobs together, [`metrics`] and [`otlp`] say it to
//! monitoring, and [`summary`] what is kept of a job that has ended.

mod board;
mod figures;
mod metrics;
mod otlp;
mod summary;
mod watch;

pub(super) use board::Board;
pub use metrics::{Family, families};
pub(super) use metrics::{Format, OfService, exposition};
pub use summary::{GroupSummary, JobSummary, OpenCall};
pub(super) use watch::watch;
