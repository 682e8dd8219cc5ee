//! What programs ask for by `MPI_Pcontrol`, against what `tests/programs/phases.c` says it calls.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::phases::{barriers, expect_deep_phases, expect_phases};
use mpiprobe_tests::{Job, Language, Mpi, Profile, Profiler, program};

use crate::check::complete;
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "phases_have_their_own_counts", phases),
        trial(mpi, Language::C, "phases_are_ignored_if_asked_for", ignored),
        trial(mpi, Language::C, "phases_too_deep_are_counted_in_the_innermost", deep),
    ]
}

fn observe(mpi: Mpi, arguments: &[&'static str], options: &[&str]) -> Result<(Job, Profiler), Failed> {
    let gates: &[&str] = if arguments.is_empty() { &["1", "2"] } else { &["1"] };
    let builder = Job::builder(mpi, program::PHASES).ranks(2).args(arguments.iter().copied()).gates(gates).own_name();
    let mut job = builder.spawn()?;
    job.wait_for_gate("1")?;
    let profiler = Profiler::observe(["--traffic", "--pid-of", job.called()].iter().chain(options))?;
    job.open_gate("1")?;
    Ok((job, profiler))
}

fn phases(mpi: Mpi) -> Result<(), Failed> {
    let (mut job, mut profiler) = observe(mpi, &[], &[])?;
    // Written out when rank 0 asks for it: nobody else does in an hour.
    let flushed: Profile = serde_json::from_str(&profiler.wait_for_output(0)?)?;
    assert_eq!(flushed.end, None);
    assert_eq!(barriers(&flushed, 0)?, 10 + 20 + 2 + 3 + 4 + 1 + 1);
    job.wait_for_gate("2")?;
    job.open_gate("2")?;
    job.wait()?.success()?;
    let profile = complete(&profiler.wait()?)?;
    expect_phases(&profile)?;
    Ok(())
}

fn ignored(mpi: Mpi) -> Result<(), Failed> {
    let (mut job, profiler) = observe(mpi, &[], &["--ignore-pcontrol"])?;
    job.wait_for_gate("2")?;
    job.open_gate("2")?;
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    let profile = complete(&ended)?;
    assert_eq!(ended.stdout.len(), 1, "{}", ended.printed());
    assert!(profile.phases.is_empty());
    for rank in 0..2 {
        assert_eq!(barriers(&profile, rank)?, 47 + 9, "rank {rank}");
    }
    Ok(())
}

fn deep(mpi: Mpi) -> Result<(), Failed> {
    let (mut job, profiler) = observe(mpi, &["deep"], &[])?;
    job.wait()?.success()?;
    let profile = profiler.wait()?.profile()?;
    expect_deep_phases(&profile)?;
    Ok(())
}
