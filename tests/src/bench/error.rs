use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mpiprobe_attach::AttachError;
use mpiprobe_plan::{ElfError, ReadError};
use thiserror::Error;

use crate::{JobError, Mpi, ProfilerError, truth::TruthError};

/// Why there is nothing to report.
#[derive(Debug, Error)]
pub enum BenchError {
    #[error(transparent)]
    Job(#[from] JobError),
    #[error(transparent)]
    Profiler(#[from] ProfilerError),
    #[error(transparent)]
    Truth(#[from] TruthError),
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Elf(#[from] ElfError),
    #[error("the library of {mpi} is not installed; `cargo xtask setup` installs it")]
    NoLibrary { mpi: Mpi },
    #[error(
        "process {pid} has not loaded {library}, which was made for it; is LD_LIBRARY_PATH overridden by an RPATH?"
    )]
    OtherLibrary { pid: u32, library: PathBuf },
    #[error("the measured program failed: {reason}\n{output}")]
    Target { reason: String, output: String },
    #[error("{action} {path}: {source}")]
    File { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{program} cannot be started: {source}; `cargo xtask setup bench` installs what is needed")]
    Start { program: String, source: io::Error },
    #[error("{program} ended, or said nothing more for {waited:?}, before it {what}\n{output}")]
    Silent { program: String, what: &'static str, waited: Duration, output: String },
    #[error("{by} counted {counted} of {made} calls of {function}: its cost is not comparable")]
    Miscounted { by: String, function: &'static str, made: u64, counted: u64 },
    #[error("interrupted")]
    Interrupted,
}

pub(super) fn file_error(action: &'static str, path: impl AsRef<Path>, source: io::Error) -> BenchError {
    BenchError::File { action, path: path.as_ref().to_owned(), source }
}
