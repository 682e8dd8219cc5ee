//! Why a file could not be probed.

use std::io;

use mpiprobe_attach::AttachError;
use mpiprobe_common::tool::TOOLS;
use mpiprobe_discover::{ProcessError, open_mapped::OpenMappedError};
use mpiprobe_plan::{ElfError, ReadError};
use thiserror::Error;

/// Why a process's MPI library could not be probed.
#[derive(Debug, Error)]
pub enum ProbeError {
    #[error(transparent)]
    Open(#[from] OpenMappedError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("cannot read {path}: {source}")]
    Read {
        path: String,
        #[source]
        source: ReadError,
    },
    #[error("cannot find the MPI functions in {path}: {source}")]
    Elf {
        path: String,
        #[source]
        source: ElfError,
    },
    #[error(
        "{path} has none of the functions asked for\n  `--functions all` probes every MPI function; a library stripped of its \
         symbol tables cannot be probed by name."
    )]
    NothingToProbe { path: String },
    #[error("cannot compare {path} with the memory of process {pid}: {source}")]
    Memory {
        path: String,
        pid: u32,
        #[source]
        source: io::Error,
    },
    #[error("{path} is one tool more than the {TOOLS} that are told apart")]
    TooManyTools { path: String },
    #[error(transparent)]
    Attach(#[from] AttachError),
}

impl ProbeError {
    /// Whether it failed because the process has ended.
    pub(super) fn is_gone(&self) -> bool {
        match self {
            Self::Open(OpenMappedError::Process(error)) | Self::Process(error) => error.is_gone(),
            // What was mapped is not there any more: the process has ended, or has another program by now.
            Self::Memory { source, .. } => {
                source.kind() == io::ErrorKind::UnexpectedEof || source.raw_os_error() == Some(libc::EIO)
            }
            Self::Attach(error) => error.errno() == Some(libc::ESRCH),
            _ => false,
        }
    }
}
