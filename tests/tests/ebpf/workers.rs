//! Processes that ranks have forked, and that look like ranks: they are none.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, Profiler, hang, program};
use serde_json::Value;

use crate::check::{complete, expect_counts, functions};
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "forked_workers_are_no_ranks", observed),
        trial(mpi, Language::C, "forked_workers_hide_no_deadlock", circle),
    ]
}

/// Invariant COPIES-ARE-NO-RANKS.
fn observed(mpi: Mpi) -> Result<(), Failed> {
    let builder = Job::builder(mpi, program::WORKERS).ranks(2).args(["exchange", "50"]).gates(&["1"]).truth(true);
    let mut job = builder.own_name().spawn()?;
    job.wait_for_gate("1")?;
    let before = job.snapshot()?;
    let listed = Profiler::start(["ps", "--json"])?.wait()?;
    let listed: Value = serde_json::from_str(&listed.stdout.join("\n"))?;
    let jobs = listed.get("jobs").and_then(Value::as_array).ok_or("no jobs")?;
    let is_own = |job: &&Value, name: &str| job.to_string().contains(name);
    let own = jobs.iter().find(|listed| is_own(listed, job.called())).ok_or_else(|| listed.to_string())?;
    assert_eq!(own.get("ranks").and_then(Value::as_array).map(Vec::len), Some(2), "{own}");
    let profiler = Profiler::observe(["--pid-of", job.called()])?;
    job.open_gate("1")?;
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    let profile = complete(&ended)?;
    assert_eq!(profile.ranks.len(), 2, "{}", ended.printed());
    assert!(ended.printed().contains("observing 2 processes of "), "{}", ended.printed());
    expect_counts(&profile, &job.snapshot()?, Some(&before), &functions("default")?)
}

fn circle(mpi: Mpi) -> Result<(), Failed> {
    let job = Job::builder(mpi, program::WORKERS).ranks(2).args(["circle"]).own_name().spawn()?;
    let told = hang::text(&job, &[], |text| text.contains("Deadlock: "))?;
    assert!(told.contains("Deadlock: 0 → 1 → 0"), "{told}");
    Ok(())
}
