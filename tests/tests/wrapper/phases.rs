//! What programs ask for by `MPI_Pcontrol`, against what `tests/programs/phases.c` says it calls.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::phases::{barriers, expect_completed_unseen, expect_deep_phases, expect_phases};
use mpiprobe_tests::{Job, Language, Mpi, program};

use crate::check::complete;
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "phases_have_their_own_counts", move || {
            Ok(expect_phases(&complete(&run(mpi, &[], &[])?)?)?)
        }),
        trial(mpi, Language::C, "phases_are_ignored_if_asked_for", move || ignored(mpi)),
        trial(mpi, Language::C, "operations_completed_unseen_are_complete", move || {
            let mut job = Job::builder(mpi, program::COMPLETED_UNSEEN).ranks(2).profiled([] as [&str; 0])?.spawn()?;
            job.wait()?.success()?;
            // One of them is waited for inside a call that is not counted.
            Ok(expect_completed_unseen(&complete(&job)?, 1)?)
        }),
        trial(mpi, Language::C, "phases_too_deep_are_counted_in_the_innermost", move || {
            Ok(expect_deep_phases(&run(mpi, &["deep"], &[])?.profile()?)?)
        }),
    ]
}

fn run(mpi: Mpi, arguments: &[&'static str], options: &[&'static str]) -> Result<Job, Failed> {
    let builder = Job::builder(mpi, program::PHASES).ranks(2).args(arguments.iter().copied());
    let mut job = builder.profiled(options.iter().copied())?.spawn()?;
    job.wait()?.success()?;
    Ok(job)
}

fn ignored(mpi: Mpi) -> Result<(), Failed> {
    let profile = complete(&run(mpi, &[], &["--ignore-pcontrol"])?)?;
    assert!(profile.phases.is_empty());
    for rank in 0..2 {
        assert_eq!(barriers(&profile, rank)?, 47 + 9, "rank {rank}");
    }
    Ok(())
}
