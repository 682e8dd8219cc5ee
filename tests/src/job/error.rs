use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use thiserror::Error;

use crate::compile::CompileError;
use crate::mpi::Mpi;
use crate::python::PythonError;
use crate::truth::TruthError;

/// Every error of a running job carries what the job has printed, as that usually tells why.
#[derive(Debug, Error)]
pub enum JobError {
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error(transparent)]
    Truth(#[from] TruthError),
    #[error("{launcher} cannot be started: {source}; is {mpi} installed?")]
    Launch { mpi: Mpi, launcher: String, source: io::Error },
    #[error(transparent)]
    Python(#[from] PythonError),
    #[error("{action} {path}: {source}")]
    File { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{job}: waited {waited:?} for {what}\n{output}")]
    Timeout { job: String, what: String, waited: Duration, output: String },
    #[error("{job} ended ({status}) while the test waited for {what}\n{output}")]
    Ended { job: String, what: String, status: ExitStatus, output: String },
    #[error("{job} failed: {status}\n{output}")]
    Failed { job: String, status: ExitStatus, output: String },
    #[error("{job} has no gate {gate}; it was started with {gates:?}")]
    NoGate { job: String, gate: String, gates: Vec<String> },
    #[error("{job} has no living rank {rank}\n{output}")]
    NoRank { job: String, rank: u32, output: String },
    #[error("{job}: {path} is not a list of calls: line {line:?}")]
    OwnCounts { job: String, path: PathBuf, line: String },
    #[error("cannot send a signal to process {pid} of {job}: {source}")]
    Signal { job: String, pid: u32, source: io::Error },
}
