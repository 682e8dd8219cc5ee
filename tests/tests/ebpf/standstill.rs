//! Jobs that come to a standstill while they are observed: that stacks tell why where calls do not, and that nothing of it stays when ranks go
//! on.
//!
//! Invariant NO-WRONG-CAUSE.
#![expect(clippy::indexing_slicing, reason = "profiles in JSON, where what is missing is null")]

use std::time::Instant;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Job, Language, Mpi, Profiler, Program,
    hang::{PATIENCE, causes_found},
    program,
};
use serde_json::Value;

use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let polls =
        |mpi| deadlock(mpi, program::POLLS_HANG, "test", &[0, 1], "Rank 0 polls MPI_Test (receive from 1 tag 3");
    let threads = |mpi| deadlock(mpi, program::THREADS_HANG, "lock", &[0, 1], "Rank 0 (thread ");
    vec![
        trial(mpi, Language::C, "ranks_that_poll_in_a_circle_are_told_while_they_are_observed", polls),
        trial(mpi, Language::C, "threads_that_wait_for_a_lock_are_told_while_they_are_observed", threads),
        trial(mpi, Language::C, "what_was_told_of_a_standstill_goes_when_ranks_go_on", goes_on),
    ]
}

/// An observation that waits for a job of this name.
fn waiting_for(name: &str) -> Result<Profiler, Failed> {
    Ok(Profiler::waiting(["--json", "--traffic", "--interval", "1", "--pid-of", name])?)
}

/// The first profile from `nth` on that is as wanted, and its number.
fn profile_with(
    profiler: &mut Profiler,
    from: usize,
    is_wanted: impl Fn(&Value) -> bool,
) -> Result<(usize, Value), Failed> {
    let until = Instant::now() + PATIENCE;
    for nth in from.. {
        let profile: Value = serde_json::from_str(&profiler.wait_for_output(nth)?)?;
        if is_wanted(&profile) {
            return Ok((nth, profile));
        }
        if Instant::now() >= until {
            return Err(format!("the last of the profiles is not as wanted, either: {profile}").into());
        }
    }
    Err("no more profiles".into())
}

/// What stacks tell of these findings.
fn told(profile: &Value) -> Vec<String> {
    let findings = profile["findings"].as_array().into_iter().flatten();
    findings.filter_map(|finding| Some(finding["stacks"].as_str()?.to_owned())).collect()
}

/// The circle is told with each rank's place, and also after all have been killed in it.
fn deadlock(mpi: Mpi, program: Program, case: &str, circle: &[u32], line: &str) -> Result<(), Failed> {
    let ranks = if program.name == program::THREADS_HANG.name { 2 } else { 3 };
    let builder = Job::builder(mpi, program).ranks(ranks).args([case]).own_name();
    let mut profiler = waiting_for(builder.name())?;
    let mut job = builder.spawn()?;
    let is_told = |profile: &Value| !told(profile).is_empty();
    let (_, profile) = profile_with(&mut profiler, 0, is_told)?;
    let expect_circle = |profile: &Value| {
        let mut found = causes_found(profile);
        for (_, ranks) in &mut found {
            ranks.sort_unstable();
        }
        assert_eq!(found, [("circle".to_owned(), circle.to_vec())], "{profile}");
    };
    expect_circle(&profile);
    assert!(told(&profile).iter().any(|text| text.contains(line)), "{line}: {:?}", told(&profile));
    job.kill_ranks()?;
    let ended = profiler.wait()?;
    expect_circle(&serde_json::from_str(ended.stdout.last().ok_or("no profile")?)?);
    Ok(())
}

/// Of the rank that others wait for it is told where it is, until it goes on.
fn goes_on(mpi: Mpi) -> Result<(), Failed> {
    let builder = Job::builder(mpi, program::LATE).ranks(2).gates(&["1", "2"]).own_name();
    let mut profiler = waiting_for(builder.name())?;
    let mut job = builder.spawn()?;
    let (nth, profile) = profile_with(&mut profiler, 0, |profile| !told(profile).is_empty())?;
    assert_eq!(causes_found(&profile), [("waited_for".to_owned(), vec![1])], "{profile}");
    let text = told(&profile).remove(0);
    assert!(text.starts_with("Rank 0 waits for rank 1, which is not in MPI: "), "{text}");
    job.open_gate("1")?;
    job.wait_for_gate("2")?;
    let (_, profile) =
        profile_with(&mut profiler, nth, |profile| profile["ranks"][0]["open_calls"] == Value::Array(Vec::new()))?;
    assert_eq!((causes_found(&profile), told(&profile)), (Vec::new(), Vec::new()), "{profile}");
    job.open_gate("2")?;
    job.wait()?.success()?;
    profiler.wait()?;
    Ok(())
}
