//! Who waits for whom, while the kernel counts, against what is found in a trace of the same run, and what there is to be matched.

use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::waits::{checks, count, matched, of_ring, wait_states};
use mpiprobe_tests::{Job, JobBuilder, Language, Mpi, Profiler, program};
use serde_json::Value;

use crate::trial_with;

const DEADLINE: Duration = Duration::from_mins(5);

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let checks = checks(mpi).into_iter();
    let mut trials: Vec<Trial> =
        checks.map(|(name, check)| trial_with(mpi, Language::C, name, move || check(mpi, "ebpf"))).collect();
    trials.push(trial_with(mpi, Language::C, "waits_of_a_job_that_runs", move || of_running(mpi)));
    trials.push(trial_with(mpi, Language::C, "waits_over_what_was_made_long_ago", move || of_halves(mpi)));
    trials
}

/// Wait states of a job that is at a gate when it is attached to, and goes on from there to its end.
fn from_gate(builder: JobBuilder, gate: &str) -> Result<Value, Failed> {
    let mut job = builder.gates(&[gate]).truth(true).own_name().deadline(DEADLINE).spawn()?;
    job.wait_for_gate(gate)?;
    let mut profiler = Profiler::start(["--waits", "--functions", "all", "--json", "--pid-of", job.called()])?;
    profiler.wait_for("mpiprobe: observing ")?;
    job.open_gate(gate)?;
    job.wait()?.success()?;
    wait_states(&profiler.wait()?.stdout.join("\n"))
}

/// A job that is there before: nothing is matched before it is sure which ends belong together, and everything then.
fn of_running(mpi: Mpi) -> Result<(), Failed> {
    const RANKS: u32 = 3;
    const ITERATIONS: u64 = 300;
    let arguments = [ITERATIONS.to_string(), "--pause-us".into(), "300".into()];
    let states = from_gate(Job::builder(mpi, program::RING).ranks(RANKS).args(arguments), "start")?;
    expect_what_is_sure(&states, RANKS.into(), ITERATIONS)
}

/// `halves`: what all call together tells which calls of a half belong together.
fn of_halves(mpi: Mpi) -> Result<(), Failed> {
    const RANKS: u64 = 4;
    const STEPS: u64 = 200;
    /// Between two barriers.
    const UNSURE: u64 = 4;
    let states = from_gate(Job::builder(mpi, program::HALVES).ranks(4), "1")?;
    let unmatched = states.get("unmatched").ok_or("nothing is said of ends")?;
    // Who has come late to the first barriers may have been in others before, which nobody has seen.
    let is_sure_after = |barriers: u64| {
        let left = RANKS * (UNSURE * barriers + barriers - 1);
        let all = RANKS * (STEPS + STEPS / 4 + 1);
        matched(&states) == [Some(0), Some(all - left)] && count(&states, "incomplete_collective_calls") == Some(left)
    };
    assert!((1..=5).any(is_sure_after), "{unmatched}");
    Ok(())
}

/// Of a ring that was attached to before it called MPI, as far as anybody knows.
pub(crate) fn expect_what_is_sure(states: &Value, ranks: u64, iterations: u64) -> Result<(), Failed> {
    let [Some(messages), Some(collective)] = of_ring(ranks, iterations) else { return Err("nothing to match".into()) };
    // It may have called MPI already: which MPI_Bcast belong together is not sure before all have met in the first barrier.
    let unmatched = states.get("unmatched").ok_or("nothing is said of ends")?;
    let [found, found_collective] = matched(states);
    assert_eq!(found_collective, Some(collective - ranks), "{unmatched}");
    assert_eq!(count(states, "incomplete_collective_calls"), Some(ranks), "{unmatched}");
    // Of channels in which nobody waits, nothing tells whether messages were on their way. Each rank waits for the token.
    let missing = messages - found.unwrap_or(0);
    assert!(found > Some(0) && count(states, "unsure") == Some(2 * missing), "{unmatched}");
    for other in ["lost_calls", "contradictions", "sends", "receives"] {
        assert_eq!(count(states, other), Some(0), "{other}: {unmatched}");
    }
    Ok(())
}
