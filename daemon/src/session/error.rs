//! Why an observation could not be made.

use std::io;

use mpiprobe_attach::AttachError;
use mpiprobe_discover::{ProcRootError, ProcessError, SelectError};
use mpiprobe_report::present::{OutputError, recording::RecordingError};
use mpiprobe_view::ViewError;
use thiserror::Error;

use super::{probe_error::ProbeError, trace::TraceError};
use crate::{asking::AskError, nodes::NodesError};

/// Each message says what failed, why, and what to do; nothing stays attached.
#[derive(Debug, Error)]
pub enum SessionError {
    #[error(transparent)]
    Select(#[from] SelectError),
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Probe(#[from] ProbeError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Proc(#[from] ProcRootError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    View(#[from] ViewError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error(transparent)]
    Service(#[from] AskError),
    #[error(transparent)]
    Nodes(#[from] NodesError),
    #[error("{0}")]
    NotPermitted(String),
    #[error("cannot watch processes or signals: {0}")]
    Watch(#[source] io::Error),
    #[error(
        "all {0} target processes ended before they could be probed; with --wait mpiprobe is there before the next ones"
    )]
    GoneBeforeAttach(usize),
    #[error(
        "{attach}\n  Or start the job with `mpiprobe run -- COMMAND`: its processes count themselves then, which needs no rights."
    )]
    NoEngine {
        #[source]
        attach: AttachError,
    },
    #[error(
        "{} without the wrapper; start the job with `mpiprobe run -- COMMAND`, or leave the choice to --engine auto",
        if *.0 == 1 { "the process runs".to_owned() } else { format!("all {} processes run", .0) }
    )]
    NotWrapped(usize),
    #[error("interrupted while waiting for a target: nothing was observed")]
    InterruptedWaiting,
}

impl SessionError {
    /// Whether there is simply nobody here who could be observed.
    pub(crate) fn is_absence(&self) -> bool {
        match self {
            Self::Select(error) => error.is_absence(),
            Self::Service(error) => error.is_absence(),
            Self::GoneBeforeAttach(_) => true,
            _ => false,
        }
    }
}
