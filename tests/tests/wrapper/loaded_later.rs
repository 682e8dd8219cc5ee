//! Programs that load MPI while they run: not covered, and none the worse for it.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, program};

use crate::{is_debians, trial};

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let python = || trial(mpi, Language::Python, "mpi4py_runs_as_if_unwrapped", move || python(mpi));
    is_debians(mpi).then(python).into_iter().collect()
}

/// The program checks its messages itself.
fn python(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::RING_MPI4PY).ranks(2).args(["10"]);
    let mut job = job.profiled([] as [&str; 0])?.spawn()?;
    job.wait()?.success()?;
    assert!(job.profile()?.ranks.is_empty());
    Ok(())
}
