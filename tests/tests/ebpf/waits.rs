//! Who waits for whom, while the kernel counts, against what is found in a trace of the same run, and what there is to be matched.

use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::waits::{
    communicators_agree, communicators_of_threads_agree, count, epochs_agree, fences_agree, groups_agree, matched,
    of_ring, ring_agrees, switched_off_agrees, unseen_completions_are_counted, wait_states, worlds_agree,
};
use mpiprobe_tests::{Job, Language, Mpi, Profiler, neighbours, program};
use serde_json::Value;

use crate::trial_with;

const DEADLINE: Duration = Duration::from_mins(5);

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let mut trials = vec![
        trial_with(mpi, Language::C, "waits_of_a_ring_live_and_in_a_trace", move || ring_agrees(mpi, "ebpf")),
        trial_with(mpi, Language::C, "waits_of_windows_and_files_live_and_in_a_trace", move || {
            fences_agree(mpi, "ebpf")
        }),
        trial_with(mpi, Language::C, "waits_over_communicators_in_any_order", move || communicators_agree(mpi, "ebpf")),
        trial_with(mpi, Language::C, "waits_over_communicators_that_threads_make", move || {
            communicators_of_threads_agree(mpi, "ebpf")
        }),
        trial_with(mpi, Language::C, "waits_in_epochs", move || epochs_agree(mpi, "ebpf")),
        trial_with(mpi, Language::C, "waits_between_two_groups", move || groups_agree(mpi, "ebpf")),
        trial_with(mpi, Language::C, "waits_without_what_completes_requests", move || {
            unseen_completions_are_counted(mpi, "ebpf")
        }),
        trial_with(mpi, Language::C, "waits_where_counting_was_off", move || switched_off_agrees(mpi, "ebpf")),
        trial_with(mpi, Language::C, "neighbours_are_known", move || neighbours::are_known(mpi, "ebpf")),
        trial_with(mpi, Language::C, "waits_of_a_job_that_runs", move || of_running(mpi)),
        trial_with(mpi, Language::C, "waits_over_what_was_made_long_ago", move || of_halves(mpi)),
    ];
    // Debian's MPICH, and Intel's without its launcher's service, do not spawn.
    if matches!(mpi, Mpi::OpenMpi | Mpi::OpenMpi5 | Mpi::Mpich5) {
        trials
            .push(trial_with(mpi, Language::C, "waits_of_worlds_that_were_spawned", move || worlds_agree(mpi, "ebpf")));
    }
    trials
}

/// A job that is there before: nothing is matched before it is sure which ends belong together, and everything then.
fn of_running(mpi: Mpi) -> Result<(), Failed> {
    const RANKS: u32 = 3;
    const ITERATIONS: u64 = 300;
    let arguments = [ITERATIONS.to_string(), "--pause-us".into(), "300".into()];
    let builder = Job::builder(mpi, program::RING).ranks(RANKS).args(arguments).gates(&["start"]).truth(true);
    let mut job = builder.own_name().deadline(DEADLINE).spawn()?;
    job.wait_for_gate("start")?;
    let mut profiler = Profiler::start(["--waits", "--functions", "all", "--json", "--pid-of", job.called()])?;
    profiler.wait_for("mpiprobe: observing ")?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    expect_all_sure_matched(&wait_states(&profiler.wait()?.stdout.join("\n"))?, RANKS.into(), ITERATIONS)
}

/// `halves`: what all call together tells which calls of a half belong together.
fn of_halves(mpi: Mpi) -> Result<(), Failed> {
    const RANKS: u64 = 4;
    const STEPS: u64 = 200;
    /// Between two barriers.
    const UNSURE: u64 = 4;
    let builder = Job::builder(mpi, program::HALVES).ranks(4).gates(&["1"]).truth(true);
    let mut job = builder.own_name().deadline(DEADLINE).spawn()?;
    job.wait_for_gate("1")?;
    let mut profiler = Profiler::start(["--waits", "--functions", "all", "--json", "--pid-of", job.called()])?;
    profiler.wait_for("mpiprobe: observing ")?;
    job.open_gate("1")?;
    job.wait()?.success()?;
    let states = wait_states(&profiler.wait()?.stdout.join("\n"))?;
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
pub(crate) fn expect_all_sure_matched(states: &Value, ranks: u64, iterations: u64) -> Result<(), Failed> {
    let [Some(messages), Some(collective)] = of_ring(ranks, iterations) else { return Err("nothing to match".into()) };
    // It may have called MPI already: which MPI_Bcast belong together is not sure before all have met in the first barrier.
    let unmatched = states.get("unmatched").ok_or("nothing is said of ends")?;
    let [found, found_collective] = matched(states);
    assert_eq!(found_collective, Some(collective - ranks), "{unmatched}");
    assert_eq!(count(states, "incomplete_collective_calls"), Some(ranks), "{unmatched}");
    // Those of the first iteration, if it was looked at between the barrier and them: then they are sure after the next reduction.
    let missing = messages - found.unwrap_or(0);
    assert!(missing <= 3 * ranks && count(states, "unsure") <= Some(2 * missing), "{unmatched}");
    assert_eq!(count(states, "lost_calls"), Some(0), "{unmatched}");
    Ok(())
}
