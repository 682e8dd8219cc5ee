//! Why a trace cannot be opened or written.

use std::io;

use thiserror::Error;

/// Why a file is not read as a trace.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    #[error("cannot open {path}: {error}")]
    Io { path: String, error: io::Error },
    #[error("{path} is no trace of mpiprobe")]
    Foreign { path: String },
    #[error(
        "{path} is a trace of format {version}, and this mpiprobe reads format {known}: use the version that wrote it, or a later one"
    )]
    OtherVersion { path: String, version: u32, known: u32 },
    #[error(
        "{path} has calls of {function}, which this mpiprobe does not know: use the version that wrote it, or a later one"
    )]
    UnknownFunction { path: String, function: String },
    #[error("no file of a trace was given")]
    Nothing,
}

/// Why a trace cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    #[error("cannot write the trace: {0}")]
    Io(#[from] io::Error),
    #[error("cannot write what the trace's events refer to: {0}")]
    Definitions(#[from] serde_json::Error),
}

/// Why a chunk of a trace that is being written is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("what was recorded makes no sense: {0}")]
pub struct FollowError(pub(super) &'static str);
