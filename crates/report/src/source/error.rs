//! Why a run cannot be read.

use std::{io, path::PathBuf};

use crate::present::recording::{FrameError, RecordingError};
use mpiprobe_model::analyse::MergeError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum SourceError {
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error("cannot read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "{} is neither a recording of mpiprobe (--record FILE) nor a profile as JSON (--json), nor a directory of tables \
         (run --output DIR)", .0.display()
    )]
    Foreign(PathBuf),
    #[error("{} is empty: there is no profile in it", .0.display())]
    Empty(PathBuf),
    #[error("{}: profile {number} (at byte {offset}) cannot be read: {reason}", .path.display())]
    Json { path: PathBuf, number: usize, offset: u64, reason: FrameError },
    #[error("{}: what stands at byte {offset} is no JSON: {reason}", .path.display())]
    NoJson { path: PathBuf, offset: u64, reason: serde_json::Error },
    #[error("{} holds {found:?}, and this mpiprobe reads {}", .path.display(), mpiprobe_model::SCHEMA)]
    Schema { path: PathBuf, found: String },
    #[error("there is no such moment in {name}: it goes from {from} to {to}, {count} in all")]
    NoMoment { name: String, from: String, to: String, count: usize },
    #[error("--from ({from}) is not before --until ({until}): there is nothing between them")]
    Backwards { from: String, until: String },
    #[error(transparent)]
    Merge(#[from] MergeError),
}
