//! What the service observes unasked, for those who watch the node: figures of every job, which are few and grow with no number of
//! ranks. [`watch`] looks which jobs there are and has each of them observed, [`figures`] keeps of its profiles what is wanted,
//! [`board`] all jobs together, [`metrics`] and [`otlp`] say it to
//! monitoring, and [`summary`] what is kept of a job that has ended.

mod board;
mod figures;
mod format;
mod metrics;
mod otlp;
mod summary;
mod watch;

pub(super) use board::Board;
pub(super) use format::Format;
pub(super) use metrics::OfService;
pub use metrics::{Family, families};
pub(super) use summary::Written;
pub use summary::{GroupSummary, JobSummary, OpenCall};
pub(super) use watch::watch;

/// Everything at this moment.
pub(super) fn exposition(board: &Board, service: &OfService, with_user: bool, format: Format) -> Vec<u8> {
    let view = board.view();
    let metrics = metrics::metrics(&view, service, with_user);
    match format {
        Format::OpenMetrics | Format::Text => metrics::text(&metrics, format).into_bytes(),
        Format::Otlp => otlp::request(&metrics, service.began),
    }
}
