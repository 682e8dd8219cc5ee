//! Gates hold the ranks at known points, with and without the truth library.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, JobError, Language, Mpi, program};

use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "gates_hold_the_ranks_at_known_counts", known_counts),
        trial(mpi, Language::C, "gates_need_no_truth_library", without_truth),
        trial(mpi, Language::Fortran, "gates_work_in_fortran", fortran),
        trial(mpi, Language::Python, "gates_work_in_python", python),
        trial(mpi, Language::C, "a_gate_that_was_not_asked_for_is_an_error", unknown_gate),
        trial(mpi, Language::C, "a_job_without_any_library_prints_the_same", untouched),
        trial(mpi, Language::C, "a_job_that_runs_for_ever_stops_when_asked", stop),
    ]
}

fn known_counts(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING).args(["20"]).gates(&["start", "1", "2", "3"]).truth(true).spawn()?;
    // Gate, and how often a rank has called MPI_Init and MPI_Allreduce when it gets there.
    for (gate, init, allreduce) in [("start", 0, 0), ("1", 1, 0), ("2", 1, 10), ("3", 1, 20)] {
        job.wait_for_gate(gate)?;
        for (rank, image) in job.snapshot()?.ranks {
            let counts = ["MPI_Init", "MPI_Allreduce"].map(|name| image.calls(name).entered);
            assert_eq!(counts, [init, allreduce], "rank {rank} at gate {gate}");
            assert!(image.threads.iter().all(|thread| thread.inside.is_none()), "rank {rank} at gate {gate}");
        }
        job.open_gate(gate)?;
    }
    let ranks: Vec<u32> = job.snapshot()?.ranks.into_keys().collect();
    assert_eq!(ranks, [0, 1, 2, 3]);
    job.wait()?.success()?;
    Ok(())
}

fn without_truth(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING).args(["10"]).gates(&["start", "3"]).spawn()?;
    job.wait_for_gate("start")?;
    let pids = job.ranks()?;
    assert_eq!(pids.len(), 4);
    job.open_gate("start")?;
    job.wait_for_gate("3")?;
    assert_eq!(job.living_ranks()?, [0, 1, 2, 3]);
    assert!(job.snapshot()?.ranks.is_empty());
    job.open_gate("3")?;
    job.wait()?.success()?;
    Ok(())
}

fn fortran(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING_USE_MPI).ranks(2).args(["10"]).gates(&["1"]).truth(true).spawn()?;
    job.wait_for_gate("1")?;
    assert_eq!(job.snapshot()?.rank(1)?.calls("MPI_Comm_set_name").completed, 1);
    job.open_gate("1")?;
    job.wait()?.success()?;
    Ok(())
}

fn python(mpi: Mpi) -> Result<(), Failed> {
    let mut job =
        Job::builder(mpi, program::RING_MPI4PY).ranks(2).args(["10"]).gates(&["start", "1"]).truth(true).spawn()?;
    job.wait_for_gate("start")?;
    assert_eq!(job.snapshot()?.rank(1)?.calls("MPI_Init_thread").entered, 0);
    job.open_gate("start")?;
    job.wait_for_gate("1")?;
    assert_eq!(job.snapshot()?.rank(1)?.calls("MPI_Init_thread").completed, 1);
    job.open_gate("1")?;
    job.wait()?.success()?;
    Ok(())
}

fn unknown_gate(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING).ranks(2).args(["5"]).gates(&["1"]).spawn()?;
    let error = job.wait_for_gate("2").err();
    assert!(matches!(&error, Some(JobError::NoGate { gate, .. }) if gate == "2"), "{error:?}");
    Ok(())
}

fn untouched(mpi: Mpi) -> Result<(), Failed> {
    let mut plain = Job::builder(mpi, program::RING).ranks(2).args(["10"]).as_it_is().spawn()?;
    let mut counted = Job::builder(mpi, program::RING).ranks(2).args(["10"]).truth(true).spawn()?;
    let (plain, counted) = (plain.wait()?.success()?, counted.wait()?.success()?);
    assert_eq!(plain.stdout, "ring: 2 ranks, 10 iterations, all messages correct\n");
    assert_eq!((plain.stdout, plain.stderr), (counted.stdout, counted.stderr));
    Ok(())
}

fn stop(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING).ranks(2).args(["--forever"]).gates(&["1"]).truth(true).spawn()?;
    job.wait_for_gate("1")?;
    job.stop()?;
    job.open_gate("1")?;
    job.wait()?.success()?;
    // The request is there before the first iteration, which is then the last.
    assert_eq!(job.snapshot()?.rank(1)?.calls("MPI_Allreduce").completed, 1);
    Ok(())
}
