//! Python interpreters with mpi4py.

use std::path::PathBuf;

use crate::job::JobError;
use crate::mpi::Mpi;

pub(crate) fn interpreter(mpi: Mpi) -> Result<PathBuf, JobError> {
    match mpi {
        Mpi::OpenMpi => Ok(PathBuf::from("/usr/bin/python3")),
        Mpi::Mpich => Err(JobError::Python { mpi, reason: "not supported".to_owned() }),
    }
}
