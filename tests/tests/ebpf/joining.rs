//! Processes and libraries that come after mpiprobe.
#![expect(clippy::indexing_slicing, reason = "profiles in JSON, where what is missing is null")]

use std::{collections::BTreeSet, time::Instant};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::hang::{PATIENCE, answer};
use mpiprobe_tests::truth::Image;
use mpiprobe_tests::{Job, JobBuilder, Language, Mpi, Profile, Profiler, program};
use rustix::process::Signal;
use serde_json::Value;

use crate::check::{complete, expect_counts, expect_row, expect_rows, functions};
use crate::hang::{HUNG_IN, is_hung_in};
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "a_job_that_starts_later_is_waited_for", wait_for_job),
        trial(mpi, Language::C, "a_job_that_will_count_itself_is_waited_for", wait_for_wrapped_job),
        trial(mpi, Language::C, "a_job_that_was_waited_for_and_missed_is_the_end", missed),
        trial(mpi, Language::C, "a_job_that_was_waited_for_and_hangs_by_then_is_understood", hung_by_then),
        trial(mpi, Language::C, "a_job_that_joins_is_counted_from_its_first_call", |mpi| join(mpi, false)),
        trial(mpi, Language::C, "a_job_that_comes_and_goes_unseen_is_counted_and_has_ranks", |mpi| join(mpi, true)),
        trial(mpi, Language::C, "a_job_whose_notices_were_dropped_is_counted", dropped_notices),
        trial(mpi, Language::Python, "mpi_loaded_later_is_waited_for", wait_for_library),
    ]
}

/// mpiprobe first, then the job: everything after the library was found is counted.
fn wait_for_job(mpi: Mpi) -> Result<(), Failed> {
    waited_for(ring(mpi))
}

/// Nobody knows yet that it will have the wrapper: the kernel waits for it, and goes on.
fn wait_for_wrapped_job(mpi: Mpi) -> Result<(), Failed> {
    waited_for(ring(mpi).profiled([] as [&str; 0])?)
}

fn ring(mpi: Mpi) -> JobBuilder {
    Job::builder(mpi, program::RING).ranks(3).args(["20"]).gates(&["start"]).truth(true).own_name()
}

fn waited_for(job: JobBuilder) -> Result<(), Failed> {
    let mut profiler = Profiler::waiting(["--json", "--interval", "1h", "--pid-of", job.name()])?;
    let mut job = job.spawn()?;
    profiler.wait_for_processes(job.ranks()?.len())?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    let profile = complete(&profiler.wait()?)?;
    assert_ne!(profile.engine.attached_by, "LD_PRELOAD");
    expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)
}

/// The job is over before its library is probed, for mpiprobe sleeps: that it was missed is said, and nobody waits for another one.
/// Invariant OTHERS-COME-AND-GO.
fn missed(mpi: Mpi) -> Result<(), Failed> {
    for way in ["session", "multi", "perf-event"] {
        let builder = Job::builder(mpi, program::RING).ranks(2).args(["5"]).own_name().own_library();
        let arguments = ["--json", "--interval", "1h", "--functions", "MPI_Send", "--attach", way, "--pid-of"];
        let profiler = Profiler::waiting(arguments.into_iter().chain([builder.name()]))?;
        profiler.signal(Signal::STOP)?;
        builder.spawn()?.wait()?.success()?;
        profiler.signal(Signal::CONT)?;
        let ended = profiler.wait()?;
        let profile = ended.profile()?;
        assert!(!profile.complete && ended.status.code() == Some(3), "{way}: {}", ended.printed());
    }
    Ok(())
}

/// All ranks are in the calls that they hang in before their library is probed, for mpiprobe sleeps: those have begun before, and are open;
/// that something was missed is said.
fn hung_by_then(mpi: Mpi) -> Result<(), Failed> {
    let builder = Job::builder(mpi, program::HANG).ranks(2).own_name();
    let mut profiler = Profiler::waiting(["--json", "--interval", "1", "--pid-of", builder.name()])?;
    profiler.signal(Signal::STOP)?;
    let job = builder.spawn()?;
    let answer = answer(&job, &[], |answer| is_hung_in(answer, &HUNG_IN))?;
    assert!(is_hung_in(&answer, &HUNG_IN), "{answer}");
    profiler.signal(Signal::CONT)?;
    let until = Instant::now() + PATIENCE;
    for nth in 0.. {
        let profile: Value = serde_json::from_str(&profiler.wait_for_output(nth)?)?;
        let open = |(rank, function): (u64, &str)| {
            let mut rows = profile["ranks"].as_array().into_iter().flatten();
            let row = rows.find(|row| row["rank"] == rank)?;
            row["open_calls"].as_array()?.iter().find(|call| call["function"] == function)
        };
        if HUNG_IN.into_iter().all(|call| open(call).is_some()) {
            assert_eq!(profile["complete"], false, "{profile}");
            return Ok(());
        }
        assert!(Instant::now() < until, "{profile}");
    }
    Ok(())
}

/// The library is under probes because of another job: nothing of the new one is missed, however short it is, and even if mpiprobe
/// itself sleeps from before its start until after its end.
fn join(mpi: Mpi, asleep: bool) -> Result<(), Failed> {
    let builder = |arguments: &str| Job::builder(mpi, program::RING).ranks(2).args([arguments.to_owned()]).truth(true);
    let mut host = builder("5").gates(&["1"]).own_name().spawn()?;
    host.wait_for_gate("1")?;
    let at_gate = host.snapshot()?;
    let profiler = Profiler::observe(["--pid-of", host.called(), "--all-jobs"])?;
    if asleep {
        profiler.signal(Signal::STOP)?;
    }
    let mut guest = builder("1").called(host.called()).spawn()?;
    guest.wait()?.success()?;
    profiler.signal(Signal::CONT)?;
    host.open_gate("1")?;
    host.wait()?.success()?;

    let profile = complete(&profiler.wait()?)?;
    let wanted = functions("default")?;
    expect_rows(&profile, &guest.snapshot()?, None, &wanted)?;
    expect_rows(&profile, &host.snapshot()?, Some(&at_gate), &wanted)?;
    assert_eq!(profile.ranks.len(), 4, "{:?}", profile.ranks);
    // Also of whom nobody has looked at in time.
    let jobs = |job: &Job| -> Result<BTreeSet<Option<String>>, Failed> {
        let images = job.snapshot()?.ranks;
        let rows = profile.ranks.iter().filter(|row| images.values().any(|image| image.pid == row.pid));
        Ok(rows.map(|row| row.job.clone()).collect())
    };
    let (of_host, of_guest) = (jobs(&host)?, jobs(&guest)?);
    assert!(of_host.len() == 1 && of_guest.len() == 1 && of_host != of_guest, "{of_host:?} {of_guest:?}");
    assert!(!of_host.contains(&None) && !of_guest.contains(&None), "{of_host:?} {of_guest:?}");
    Ok(())
}

/// There is no room for the kernel's notices of the new job, because mpiprobe sleeps and another one makes too many. That some were
/// dropped is said.
/// Invariant EVERYBODY-OR-SAID.
fn dropped_notices(mpi: Mpi) -> Result<(), Failed> {
    let mut host = Job::builder(mpi, program::FLOODS).ranks(1).gates(&["1", "2"]).own_name().spawn()?;
    host.wait_for_gate("1")?;
    // Its threads end within calls, with nothing that would have to be cleaned up.
    let profiler =
        Profiler::observe(["--pid-of", host.called(), "--all-jobs", "--functions", "all", "--returns", "on"])?;
    profiler.signal(Signal::STOP)?;
    host.open_gate("1")?;
    host.wait_for_gate("2")?;
    let guest = Job::builder(mpi, program::RING).ranks(2).args(["1"]).truth(true).called(host.called());
    let mut guest = guest.spawn()?;
    guest.wait()?.success()?;
    profiler.signal(Signal::CONT)?;
    host.open_gate("2")?;
    host.wait()?.success()?;

    let ended = profiler.wait()?;
    let profile = ended.profile()?;
    assert!(profile.lost().get("events_dropped").is_some_and(|&dropped| dropped >= 2), "{:?}", profile.lost());
    for image in guest.snapshot()?.ranks.values() {
        let row = profile.ranks.iter().find(|row| row.pid == image.pid).ok_or_else(|| ended.printed())?;
        // Nobody is left who could tell its rank.
        expect_row(row, &Image { rank: row.rank, ..image.clone() }, None, &functions("all")?);
    }
    Ok(())
}

/// Python loads MPI on import, long after its start. Without the truth library, which would load it earlier: the calls are known
/// from the source.
fn wait_for_library(mpi: Mpi) -> Result<(), Failed> {
    let mut job =
        Job::builder(mpi, program::RING_MPI4PY).ranks(2).args(["20"]).gates(&["start", "1"]).own_name().spawn()?;
    job.wait_for_gate("start")?;
    let mut profiler = Profiler::waiting(["--json", "--interval", "1h", "--pid-of", job.called()])?;
    job.open_gate("start")?;
    profiler.wait_for_processes(job.ranks()?.len())?;
    job.wait_for_gate("1")?;
    job.open_gate("1")?;
    job.wait()?.success()?;
    let profile: Profile = complete_or_late(&profiler.wait()?)?;
    assert_eq!(profile.ranks.len(), 2, "{:?}", profile.ranks);
    for row in &profile.ranks {
        let counted = row.completed();
        // mpi4py may use the functions with large counts.
        let of = |name: &str| counted.get(name).unwrap_or(&0) + counted.get(format!("{name}_c").as_str()).unwrap_or(&0);
        for name in ["MPI_Send", "MPI_Recv", "MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Sendrecv", "MPI_Allreduce"] {
            assert_eq!(of(name), 20, "rank {:?}, {name}: {counted:?}", row.rank);
        }
        assert_eq!(
            (of("MPI_Bcast"), of("MPI_Barrier"), of("MPI_Finalize")),
            (1, 2, 1),
            "rank {:?}: {counted:?}",
            row.rank
        );
    }
    Ok(())
}

/// MPI_Init may have been called before the library was found: then, and only then, the profile is incomplete.
fn complete_or_late(ended: &mpiprobe_tests::Ended) -> Result<Profile, Failed> {
    let profile = ended.profile()?;
    let has_begun = |rank: &mpiprobe_tests::Rank| rank.completed().contains_key("MPI_Init_thread");
    assert_eq!(profile.complete, profile.ranks.iter().all(has_begun), "{}", ended.printed());
    let is_late = |why: &String| why.contains("were seen only after they had initialised MPI");
    assert!(profile.complete || profile.incomplete_because.iter().all(is_late), "{}", ended.printed());
    assert!(profile.lost().keys().all(|cause| *cause == "returns_without_entry"), "{}", ended.printed());
    Ok(profile)
}
