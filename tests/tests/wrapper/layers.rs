//! Calls through Fortran layers are charged to the program's source lines by the wrapper too.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Mpi, Program, call_sites, program};

use crate::check::complete;
use crate::{is_debians, trial};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let rings = [program::RING_USE_MPI, program::RING_USE_MPI_F08].into_iter().filter(|_| is_debians(mpi));
    rings
        .map(|program| {
            trial(mpi, program.language, &format!("call_sites_of_{}", program.name), move || flows(mpi, program))
        })
        .collect()
}

/// Invariant USERS-SITES.
fn flows(mpi: Mpi, program: Program) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program).ranks(2).args(["10"]).profiled([] as [&str; 0])?.spawn()?;
    job.wait()?.success()?;
    call_sites::are_told(&complete(&job)?, program)
}
