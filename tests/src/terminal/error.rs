use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::profiler::ProfilerError;

/// As with jobs, an error carries what was shown.
#[derive(Debug, Error)]
pub enum TerminalError {
    #[error(transparent)]
    Binary(#[from] ProfilerError),
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
    #[error("waited {waited:?} for {what} on the screen, which shows\n{screen}")]
    Timeout { what: String, waited: Duration, screen: String },
}

impl TerminalError {
    pub(super) fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::System { what, source: source.into() }
    }
}
