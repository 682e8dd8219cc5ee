//! Many threads, and more of them than there is room for.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, Profile, program};

use crate::check::{complete, expect_counts, functions};
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "threads_at_once", move || at_once(mpi)),
        trial(mpi, Language::C, "twenty_thousand_threads", move || short_lived(mpi)),
    ]
}

fn counted(mpi: Mpi, arguments: &[&str]) -> Result<Profile, Failed> {
    let job = Job::builder(mpi, program::THREADS).ranks(2).args(arguments.iter().copied()).truth(true);
    let mut job = job.profiled([] as [&str; 0])?.spawn()?;
    job.wait()?.success()?;
    let profile = complete(&job)?;
    expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)?;
    Ok(profile)
}

fn at_once(mpi: Mpi) -> Result<(), Failed> {
    for row in &counted(mpi, &["8", "250"])?.ranks {
        assert_eq!(row.completed().get("MPI_Send"), Some(&2000));
        // Its first thread, and those that it started.
        assert_eq!(row.threads_in_mpi, 9, "rank {:?}", row.rank);
    }
    Ok(())
}

/// One after the other they need no more room than those that live at once.
fn short_lived(mpi: Mpi) -> Result<(), Failed> {
    let profile = counted(mpi, &["--short-lived", "10000"])?;
    assert_eq!(profile.ranks.iter().map(|row| row.threads_in_mpi).sum::<u64>(), 20_002);
    Ok(())
}
