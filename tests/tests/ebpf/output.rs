//! Where the output goes, and what the exit status says.

use std::process::Command;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::profiler::binary;
use mpiprobe_tests::{Job, Language, Mpi, Profiler, program};
use rustix::process::Signal;

use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "a_closed_pipe_is_no_failure", closed_pipe),
        trial(mpi, Language::C, "intervals_add_up", intervals),
        trial(mpi, Language::C, "tables_without_a_terminal", tables),
        trial(mpi, Language::C, "a_terminated_mpiprobe_prints_its_profile", terminated),
    ]
}

fn running(mpi: Mpi) -> Result<Job, Failed> {
    let mut job = Job::builder(mpi, program::RING).ranks(2).args(["--forever"]).truth(true).own_name().spawn()?;
    job.wait_for_calls("MPI_Allreduce", 10)?;
    Ok(job)
}

fn stop(mut job: Job) -> Result<(), Failed> {
    job.stop()?;
    job.wait()?.success()?;
    Ok(())
}

fn closed_pipe(mpi: Mpi) -> Result<(), Failed> {
    let job = running(mpi)?;
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"{ "$0" "$@"; echo "status $?" >&2; } | head -n 1"#]).arg(binary()?);
    shell.args(["--json", "--interval", "50ms", "--pid-of", job.called()]);
    let ended = Profiler::spawn(shell)?.wait()?;
    assert_eq!(ended.stdout.len(), 1, "{}", ended.printed());
    assert_eq!(ended.stderr.last().map(String::as_str), Some("status 0"), "{}", ended.printed());
    stop(job)
}

/// Each line is a profile of everything up to then: counts never fall, and only the last has an end.
fn intervals(mpi: Mpi) -> Result<(), Failed> {
    let job = running(mpi)?;
    let mut profiler = Profiler::start(["--json", "--interval", "50ms", "--pid-of", job.called()])?;
    profiler.wait_for_output(3)?;
    // Of an interval in which the job has had a processor.
    profiler.wait_for_output_with("\"MPI_Allreduce\"")?;
    let ended = profiler.interrupt()?;
    let mut calls = 0;
    for (number, line) in ended.stdout.iter().enumerate() {
        let profile: mpiprobe_tests::Profile = serde_json::from_str(line)?;
        let now: u64 = profile.ranks.iter().map(|row| row.calls).sum();
        assert!(now >= calls, "line {number}: {now} < {calls}");
        assert_eq!(profile.end.is_some(), number + 1 == ended.stdout.len(), "line {number}");
        calls = now;
    }
    assert!(ended.stdout.len() >= 4 && calls > 0, "{}", ended.printed());
    stop(job)
}

fn tables(mpi: Mpi) -> Result<(), Failed> {
    let job = running(mpi)?;
    let mut profiler = Profiler::start(["--interval", "100ms", "--pid-of", job.called()])?;
    profiler.wait_for_output_with("Allreduce")?;
    let ended = profiler.interrupt()?;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.printed());
    stop(job)
}

/// As a batch system does at a job's time limit.
fn terminated(mpi: Mpi) -> Result<(), Failed> {
    let job = running(mpi)?;
    let profiler = Profiler::observe(["--pid-of", job.called()])?;
    profiler.signal(Signal::TERM)?;
    let ended = profiler.wait()?;
    assert_eq!(
        (ended.status.code(), ended.profile()?.end.as_deref()),
        (Some(0), Some("interrupted")),
        "{}",
        ended.printed()
    );
    stop(job)
}
