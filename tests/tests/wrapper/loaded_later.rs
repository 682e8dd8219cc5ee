//! Programs that load MPI while they run: counted all the same.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, program};

use crate::exact::count_apart;
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let has_python = !matches!(mpi, Mpi::Mpich5Abi | Mpi::IntelAbi);
    let python = || trial(mpi, Language::Python, "mpi4py_loads_mpi_itself", move || python(mpi));
    has_python.then(python).into_iter().collect()
}

/// The truth library brings MPI with it: so it counts a run of its own. The program checks its messages itself.
fn python(mpi: Mpi) -> Result<(), Failed> {
    count_apart(|| Job::builder(mpi, program::RING_MPI4PY).ranks(2).args(["10"]))
}
