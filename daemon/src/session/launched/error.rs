//! Why a command was not run, or not counted.

use std::io;

use mpiprobe_discover::ProcRootError;
use mpiprobe_report::page::html::HtmlError;
use mpiprobe_report::present::{OutputError, recording::RecordingError};
use thiserror::Error;

use super::ready::Unready;
use crate::{
    preload::{DirectoryError, LibraryError},
    session::{error::SessionError, profile_file::WriteError, trace::TraceError},
};

/// Why a command was not run, or its profile not made.
#[derive(Debug, Error)]
pub enum LaunchError {
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Proc(#[from] ProcRootError),
    #[error("cannot run {program}: {source}")]
    Start { program: String, source: io::Error },
    #[error("cannot watch the job: {0}")]
    Watch(#[source] io::Error),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error("nothing was run: {0}")]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Session(SessionError),
    #[error("nothing was run: cannot do without the rights of mpiprobe's file: {0}")]
    Rights(#[source] io::Error),
    #[error("nothing was run: {0}")]
    NoPage(#[source] HtmlError),
    #[error("nothing was run: {0}")]
    NoEbpf(#[source] Unready),
}

impl LaunchError {
    /// The exit status that shells give to commands that cannot be run.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Start { .. } => 126,
            _ => 1,
        }
    }
}

impl From<SessionError> for LaunchError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Watch(source) => Self::Watch(source),
            error => Self::Session(error),
        }
    }
}
