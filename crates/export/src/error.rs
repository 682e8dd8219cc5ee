//! Why a trace could not be exported.

use std::io;

use mpiprobe_trace::ReadError;

use crate::rows::VisitError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("cannot write the export: {0}")]
    Write(#[from] io::Error),
}

impl From<VisitError> for ExportError {
    fn from(error: VisitError) -> Self {
        match error {
            VisitError::Read(error) => Self::Read(error),
            VisitError::Write(error) => Self::Write(error),
        }
    }
}
