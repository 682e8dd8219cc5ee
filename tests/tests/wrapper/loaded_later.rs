//! Programs that load MPI while they run: counted all the same.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::truth::Image;
use mpiprobe_tests::{Job, Language, Mpi, program};

use crate::check::{complete, expect_row, functions};
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let has_python = !matches!(mpi, Mpi::Mpich5Abi | Mpi::IntelAbi);
    let python = || trial(mpi, Language::Python, "mpi4py_loads_mpi_itself", move || python(mpi));
    has_python.then(python).into_iter().collect()
}

/// The truth library brings MPI with it: so it counts a run of its own. The program checks its messages itself.
fn python(mpi: Mpi) -> Result<(), Failed> {
    let job = || Job::builder(mpi, program::RING_MPI4PY).ranks(2).args(["10"]);
    let mut told = job().truth(true).spawn()?;
    told.wait()?.success()?;
    let mut counted = job().profiled(["--functions", "all"])?.spawn()?;
    counted.wait()?.success()?;
    let (profile, truth) = (complete(&counted)?, told.snapshot()?);
    assert_eq!(profile.ranks.len(), truth.ranks.len());
    for (rank, image) in &truth.ranks {
        let row = profile.rank(*rank).ok_or("no such rank")?;
        expect_row(row, &Image { pid: row.pid, ..image.clone() }, None, &functions("all")?);
    }
    Ok(())
}
