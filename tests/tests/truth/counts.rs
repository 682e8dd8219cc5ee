//! Exact counts of C programs.

use std::collections::BTreeMap;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, Program, program};

use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "every_function_group_is_counted_exactly", groups),
        trial(mpi, Language::C, "calls_inside_collective_io_are_kept_apart", nested_io),
        trial(mpi, Language::C, "verify_counts_what_it_calls", verify),
        trial(mpi, Language::C, "threads_at_once_lose_no_call", threads),
        trial(mpi, Language::C, "threads_that_come_and_go_lose_no_call", short_lived_threads),
        trial(mpi, Language::C, "a_callback_is_part_of_the_call_that_runs_it", callback),
    ]
}

/// Runs a program that counts its own calls and compares, for each rank.
fn against_own_counts(mpi: Mpi, program: Program, arguments: &[&str], ranks: u32) -> Result<Job, Failed> {
    let mut job = Job::builder(mpi, program).ranks(ranks).args(arguments).truth(true).spawn()?;
    job.wait()?.success()?;
    let snapshot = job.snapshot()?;
    assert_eq!(snapshot.ranks.len(), ranks as usize);
    for rank in 0..ranks {
        let own = job.own_counts(rank)?;
        let own: BTreeMap<&str, u64> = own.iter().map(|(name, calls)| (name.as_str(), *calls)).collect();
        assert_eq!(snapshot.rank(rank)?.completed(), own, "rank {rank}");
    }
    Ok(job)
}

fn groups(mpi: Mpi) -> Result<(), Failed> {
    let job = against_own_counts(mpi, program::GROUPS, &[], 4)?;
    let functions = job.own_counts(0)?.len();
    assert!(functions > 200, "only {functions} different functions");
    // The user-defined reduction asks for the size of a type: inside the allreduce.
    assert!(job.snapshot()?.rank(0)?.calls("MPI_Type_size").inner > 0);
    Ok(())
}

fn nested_io(mpi: Mpi) -> Result<(), Failed> {
    let job = against_own_counts(mpi, program::NESTED_IO, &["6"], 2)?;
    let snapshot = job.snapshot()?;
    let inner: u64 = snapshot.rank(0)?.functions.values().map(|calls| calls.inner).sum();
    // ROMIO is written in MPI, Open MPI's own MPI-IO is not.
    assert_eq!(inner > 0, mpi == Mpi::Mpich, "{inner} inner calls");
    Ok(())
}

fn verify(mpi: Mpi) -> Result<(), Failed> {
    against_own_counts(mpi, program::VERIFY, &["24"], 4).map(drop)
}

fn threads(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::THREADS).ranks(2).args(["4", "50"]).truth(true).spawn()?;
    job.wait()?.success()?;
    let snapshot = job.snapshot()?;
    for rank in 0..2 {
        let expected =
            [("MPI_Init_thread", 1), ("MPI_Comm_rank", 1), ("MPI_Send", 200), ("MPI_Recv", 200), ("MPI_Finalize", 1)];
        assert_eq!(snapshot.rank(rank)?.completed(), BTreeMap::from(expected), "rank {rank}");
    }
    Ok(())
}

fn short_lived_threads(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::THREADS)
        .ranks(2)
        .args(["--short-lived", "4000"])
        .gates(&["2"])
        .truth(true)
        .spawn()?;
    job.wait_for_gate("2")?;
    let snapshot = job.snapshot()?;
    for rank in 0..2 {
        let image = snapshot.rank(rank)?;
        assert_eq!(image.calls("MPI_Sendrecv").completed, 4000, "rank {rank}");
        // All have ended but the first.
        assert_eq!(image.threads.iter().map(|thread| thread.tid).collect::<Vec<_>>(), [image.pid], "rank {rank}");
        assert_eq!(image.unlisted_threads, 0, "rank {rank}");
    }
    job.open_gate("2")?;
    job.wait()?.success()?;
    Ok(())
}

fn callback(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::EXITS).ranks(2).args(["callback"]).truth(true).spawn()?;
    job.wait()?.success()?;
    for image in job.snapshot()?.ranks.values() {
        assert_eq!(image.calls("MPI_Comm_delete_attr").completed, 1);
        let size = image.calls("MPI_Comm_size");
        assert_eq!((size.entered, size.inner), (0, 1));
    }
    Ok(())
}
