//! Recording what calls mean disturbs neither the program nor the count, however it ends.

use std::collections::BTreeMap;

use libtest_mimic::Failed;
use mpiprobe_tests::{Job, Mpi, Program, program};

/// Runs a program on two ranks to its end, which need not be a success.
fn finished(mpi: Mpi, program: Program, arguments: &[&str]) -> Result<Job, Failed> {
    let mut job = Job::builder(mpi, program).ranks(2).args(arguments.iter().copied()).semantics().spawn()?;
    job.wait()?;
    Ok(job)
}

pub(super) fn own_counts(mpi: Mpi) -> Result<(), Failed> {
    for (program, ranks, arguments) in
        [(program::GROUPS, 4, &[][..]), (program::NESTED_IO, 2, &["6"]), (program::VERIFY, 4, &["8"])]
    {
        let mut job = Job::builder(mpi, program).ranks(ranks).args(arguments.iter().copied()).semantics().spawn()?;
        job.wait()?.success()?;
        for (rank, image) in job.snapshot()?.ranks {
            let own = job.own_counts(rank)?;
            let own: BTreeMap<&str, u64> = own.iter().map(|(name, calls)| (name.as_str(), *calls)).collect();
            assert_eq!(image.completed(), own, "{}, rank {rank}", program.name);
            // What the library calls itself, such as the broadcasts of its files, is not the program's traffic.
            for (function, amounts) in image.traffic.functions() {
                assert!(amounts.calls == 0 || own.contains_key(function), "{}, rank {rank}: {function}", program.name);
            }
        }
    }
    Ok(())
}

pub(super) fn abort_and_fork(mpi: Mpi) -> Result<(), Failed> {
    // The launcher may kill the other rank before it has heard of the last sum.
    for (mode, rank) in [("abort", 1), ("segfault", 1), ("no-finalize", 0), ("fork", 0)] {
        let snapshot = finished(mpi, program::EXITS, &[mode])?.snapshot()?;
        let allreduce = snapshot.rank(rank)?.traffic.functions().get("MPI_Allreduce").copied().unwrap_or_default();
        assert_eq!(allreduce.calls, 10, "{mode}");
    }
    Ok(())
}

pub(super) fn longjmp(mpi: Mpi) -> Result<(), Failed> {
    for image in finished(mpi, program::EXITS, &["longjmp"])?.snapshot()?.ranks.values() {
        let functions = image.traffic.functions();
        assert_eq!((functions.get("MPI_Send"), functions.get("MPI_Allreduce").map(|sum| sum.calls)), (None, Some(11)));
        assert_eq!(image.calls("MPI_Send").entered, 10);
    }
    Ok(())
}

pub(super) fn exceptions(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::THROWS).ranks(2).args(["10"]).semantics().spawn()?;
    assert_eq!(job.wait()?.success()?.stdout, "throws: 10 exceptions caught\n");
    for image in job.snapshot()?.ranks.values() {
        assert_eq!(image.traffic.functions().get("MPI_Barrier").map(|sum| sum.calls), Some(1));
        assert_eq!((image.calls("MPI_Send").entered, image.calls("MPI_Send").completed), (10, 0));
    }
    Ok(())
}

pub(super) fn short_lived_threads(mpi: Mpi) -> Result<(), Failed> {
    let job = finished(mpi, program::THREADS, &["--short-lived", "2000"])?;
    for image in job.snapshot()?.ranks.values() {
        let sum = image.traffic.functions().get("MPI_Sendrecv").copied().unwrap_or_default();
        assert_eq!((sum.calls, sum.sends, sum.sent, sum.received.bytes), (2000, 2000, 8000, 8000));
    }
    Ok(())
}
