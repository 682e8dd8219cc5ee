//! Why something is not recorded, or not shown.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Of a whole file.
#[derive(Debug, Error)]
pub enum RecordingError {
    #[error("{} exists already, and no recording overwrites a file: choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    #[error("cannot record to {}: {source}", .path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error("cannot record any longer to {}: {source}; what is in it already can be viewed", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot start recording: {0}")]
    Start(#[source] io::Error),
    #[error("cannot read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is no recording of mpiprobe; those are written by --record FILE", .0.display())]
    Foreign(PathBuf),
    #[error(
        "{} is a recording of version {found}, this mpiprobe reads version {wanted}: view it with the mpiprobe that has written it",
        .path.display()
    )]
    Version { path: PathBuf, found: u32, wanted: u32 },
    #[error("{}: what was recorded cannot be read: {reason}", .path.display())]
    Header { path: PathBuf, reason: FrameError },
    #[error("{} holds no moment that is whole: the recorder ended, or was killed, before it had written one", .0.display())]
    Empty(PathBuf),
    #[error(
        "{}: moment {} of {count} (at byte {offset}) cannot be shown: {reason}; others may be whole",
        .path.display(), .index + 1
    )]
    Frame { path: PathBuf, index: usize, count: usize, offset: u64, reason: FrameError },
    #[error("there is no such moment in {}: it goes from {from} to {to}, {count} in all", .path.display())]
    NoMoment { path: PathBuf, from: String, to: String, count: usize },
}

/// Of one chunk.
#[derive(Debug, Error)]
pub enum FrameError {
    #[error("{0}")]
    Read(#[source] io::Error),
    #[error("it is damaged (its checksum is another one)")]
    Damaged,
    #[error("it is damaged (it is of another length than it says)")]
    Length,
    #[error("it is larger than {} MiB, which no profile is", super::format::LONGEST_PAYLOAD >> 20)]
    TooLarge,
    #[error("it cannot be decompressed: {0}")]
    Compressed(#[source] io::Error),
    #[error("it is no text")]
    NoText,
    #[error("it is no profile as this mpiprobe ({}) knows it: {error}; written by mpiprobe {by}", env!("CARGO_PKG_VERSION"))]
    Content { error: serde_json::Error, by: String },
    #[error("it tells of ranks that MPI cannot have")]
    Impossible,
    #[error("it says another time than its head")]
    Time,
}
