use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use thiserror::Error;

/// As with jobs, an error carries what was printed.
#[derive(Debug, Error)]
pub enum ProfilerError {
    #[error("cannot build mpiprobe: {reason}")]
    Build { reason: String },
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
    #[error("mpiprobe: waited {waited:?} for {what}\n{output}")]
    Timeout { what: String, waited: Duration, output: String },
    #[error("mpiprobe ended ({status:?}) before it printed {what}\n{output}")]
    Ended { what: String, status: Option<ExitStatus>, output: String },
    #[error("the output is no profile: {reason}\n{output}")]
    NoProfile { reason: String, output: String },
}

impl ProfilerError {
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
