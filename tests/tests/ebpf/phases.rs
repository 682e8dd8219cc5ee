//! What programs ask for by `MPI_Pcontrol`, against what `tests/programs/phases.c` says it calls.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::phases::{barriers, expect_completed_unseen, expect_deep_phases, expect_phases};
use mpiprobe_tests::{Job, JobBuilder, Language, Mpi, Profile, Profiler, program};

use crate::check::complete;
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let mut tests = vec![
        trial(mpi, Language::C, "phases_have_their_own_counts", phases),
        trial(mpi, Language::C, "phases_are_ignored_if_asked_for", ignored),
        trial(mpi, Language::C, "operations_completed_unseen_are_complete", completed_unseen),
        trial(mpi, Language::C, "phases_too_deep_are_counted_in_the_innermost", deep),
    ];
    if mpi == Mpi::Mpich {
        // Debian has no static Open MPI.
        tests.push(trial(mpi, Language::C, "phases_of_a_program_with_mpi_linked_in", linked_in));
    }
    tests
}

fn job(mpi: Mpi, arguments: &[&'static str]) -> JobBuilder {
    let gates: &[&str] = if arguments.is_empty() { &["1", "2"] } else { &["1"] };
    Job::builder(mpi, program::PHASES).ranks(2).args(arguments.iter().copied()).gates(gates).own_name()
}

/// Late: the ranks stand behind MPI_Init.
fn observe(job: JobBuilder, options: &[&str]) -> Result<(Job, Profiler), Failed> {
    let mut job = job.spawn()?;
    job.wait_for_gate("1")?;
    let profiler = Profiler::observe(["--traffic", "--pid-of", job.called()].iter().chain(options))?;
    job.open_gate("1")?;
    Ok((job, profiler))
}

/// Invariants PHASES-ADD-UP, NAMED-PHASES.
fn phases(mpi: Mpi) -> Result<(), Failed> {
    expect_all(job(mpi, &[]))
}

/// Invariant LINKED-IN.
fn linked_in(mpi: Mpi) -> Result<(), Failed> {
    expect_all(job(mpi, &[]).linked_in())
}

fn expect_all(job: JobBuilder) -> Result<(), Failed> {
    let (mut job, mut profiler) = observe(job, &[])?;
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

fn completed_unseen(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::COMPLETED_UNSEEN).ranks(2).gates(&["1"]).own_name();
    let (mut job, profiler) = observe(job, &[])?;
    job.wait()?.success()?;
    Ok(expect_completed_unseen(&complete(&profiler.wait()?)?, 0)?)
}

fn ignored(mpi: Mpi) -> Result<(), Failed> {
    let (mut job, profiler) = observe(job(mpi, &[]), &["--ignore-pcontrol"])?;
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
    let (mut job, profiler) = observe(job(mpi, &["deep"]), &[])?;
    job.wait()?.success()?;
    let profile = profiler.wait()?.profile()?;
    expect_deep_phases(&profile)?;
    Ok(())
}
