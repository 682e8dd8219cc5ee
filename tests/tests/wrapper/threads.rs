//! Many threads, and more of them than there is room for.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Job, Language, Mpi, Profile, program,
    threads::{expect_bounded_threads, expect_threads_of_ended_ranks},
};

use crate::check::{complete, expect_counts, functions};
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "threads_at_once", move || at_once(mpi)),
        trial(mpi, Language::C, "ended_threads_one_by_one", move || ended_one_by_one(mpi)),
        trial(mpi, Language::C, "threads_of_a_killed_rank", move || killed(mpi)),
        trial(mpi, Language::C, "twenty_thousand_threads", move || short_lived(mpi)),
    ]
}

fn counted(mpi: Mpi, arguments: &[&str]) -> Result<(Job, Profile), Failed> {
    let job = Job::builder(mpi, program::THREADS).ranks(2).args(arguments.iter().copied()).truth(true);
    let mut job = job.profiled(["--functions", "all"])?.spawn()?;
    job.wait()?.success()?;
    let profile = complete(&job)?;
    expect_counts(&profile, &job.snapshot()?, None, &functions("all")?)?;
    Ok((job, profile))
}

fn at_once(mpi: Mpi) -> Result<(), Failed> {
    for row in &counted(mpi, &["8", "250"])?.1.ranks {
        assert_eq!(row.completed().get("MPI_Send"), Some(&2000));
        // Its first thread, and those that it started.
        assert_eq!(row.threads_in_mpi, 9, "rank {:?}", row.rank);
    }
    Ok(())
}

/// What each has done is known after the job's end.
fn ended_one_by_one(mpi: Mpi) -> Result<(), Failed> {
    let (job, profile) = counted(mpi, &["6", "50"])?;
    expect_threads_of_ended_ranks(&profile, &job.snapshot()?)
}

/// Threads that stand still after their first messages when the ranks are killed.
fn killed(mpi: Mpi) -> Result<(), Failed> {
    const THREADS: u64 = 6;
    let builder = Job::builder(mpi, program::THREADS).ranks(2).args([THREADS.to_string(), "5".to_owned()]);
    let mut job = builder.gates(&["MPI_Send"]).truth(true).profiled(["--functions", "all"])?.spawn()?;
    job.wait_for_calls("MPI_Send", THREADS)?;
    job.kill_ranks()?;
    job.wait()?;
    let profile = complete(&job)?;
    expect_threads_of_ended_ranks(&profile, &job.snapshot()?)?;
    assert!(profile.ranks.iter().all(|row| row.threads_in_mpi == THREADS + 1), "{:?}", profile.ranks);
    Ok(())
}

/// One after the other they need no more room than those that live at once. Some of them are remembered one by one, and the others by
/// their sums.
/// Invariant THREADS-ADD-UP.
fn short_lived(mpi: Mpi) -> Result<(), Failed> {
    let (job, profile) = counted(mpi, &["--short-lived", "10000"])?;
    assert_eq!(profile.ranks.iter().map(|row| row.threads_in_mpi).sum::<u64>(), 20_002);
    expect_bounded_threads(&profile, &job.snapshot()?)
}
