//! Many threads, and more of them than there is room for.

use std::collections::BTreeMap;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Ended, Job, Language, Mpi, Profiler, program,
    threads::{expect_bounded_threads, expect_threads_of_ended_ranks},
};

use crate::check::{complete, completed, expect_counts, functions};
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "threads_at_once", at_once),
        trial(mpi, Language::C, "living_threads_one_by_one", one_by_one),
        trial(mpi, Language::C, "ended_threads_one_by_one", ended_one_by_one),
        trial(mpi, Language::C, "threads_of_a_killed_rank", killed),
        trial(mpi, Language::C, "twenty_thousand_threads", short_lived),
        // Invariant LOSS-COUNTED.
        trial(mpi, Language::C, "too_many_threads_are_a_counted_loss", too_many),
    ]
}

fn observed(mpi: Mpi, arguments: &[&str], options: &[&str]) -> Result<(Job, Ended), Failed> {
    let mut job = Job::builder(mpi, program::THREADS)
        .ranks(2)
        .args(arguments.iter().map(ToString::to_string))
        .gates(&["start"])
        .truth(true)
        .own_name()
        .spawn()?;
    job.wait_for_gate("start")?;
    let profiler = Profiler::observe(["--pid-of", job.called()].iter().chain(options))?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    Ok((job, profiler.wait()?))
}

fn at_once(mpi: Mpi) -> Result<(), Failed> {
    let (job, ended) = observed(mpi, &["8", "250"], &[])?;
    let profile = complete(&ended)?;
    expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)?;
    for row in &profile.ranks {
        assert_eq!(row.completed().get("MPI_Send"), Some(&2000));
        // Its first thread, and those that it started.
        assert_eq!(row.threads_in_mpi, 9, "rank {:?}", row.rank);
    }
    Ok(())
}

/// Threads that a rank starts besides its first one.
const THREADS: u64 = 6;

/// A job under observation whose threads stand still after their first messages.
fn standing(mpi: Mpi) -> Result<(Job, Profiler), Failed> {
    let builder = Job::builder(mpi, program::THREADS).ranks(2).args([THREADS.to_string(), "5".to_owned()]);
    let mut job = builder.gates(&["start", "MPI_Send"]).truth(true).own_name().spawn()?;
    job.wait_for_gate("start")?;
    let profiler = Profiler::observe(["--functions", "all", "--pid-of", job.called()])?;
    job.open_gate("start")?;
    job.wait_for_calls("MPI_Send", THREADS)?;
    Ok((job, profiler))
}

/// Threads that stand still after their first messages: what each has done, and that the rank is their sum.
fn one_by_one(mpi: Mpi) -> Result<(), Failed> {
    let (mut job, profiler) = standing(mpi)?;
    let ended = profiler.interrupt()?;
    let profile = complete(&ended)?;
    let snapshot = job.snapshot()?;
    for (rank, image) in &snapshot.ranks {
        let row = profile.rank(*rank).ok_or("no such rank")?;
        let seen: BTreeMap<u32, u64> = row.threads.iter().map(|thread| (thread.tid, thread.calls)).collect();
        let told: BTreeMap<u32, u64> = image.threads.iter().map(|thread| (thread.tid, thread.calls)).collect();
        assert_eq!(seen, told, "calls by thread, rank {rank}");
        assert_eq!(seen.len() as u64, THREADS + 1);
        assert_eq!(row.calls, seen.values().sum::<u64>());
        // No time twice: threads, functions and rank are the same time, and it is a share of the time that the threads had.
        assert_eq!(row.mpi_ns, row.threads.iter().map(|thread| thread.mpi_ns).sum::<u64>());
        assert_eq!(row.mpi_ns, row.functions.iter().map(|function| function.time_ns).sum::<u64>());
        assert!(row.threads.iter().all(|thread| thread.mpi_ns <= row.wall_ns), "{row:?}");
        let share = 100.0 * row.mpi_ns as f64 / row.thread_wall_ns as f64;
        // Not known if the gate was opened late, seen from the end.
        let is_known = row.unseen_ns.saturating_mul(10) <= row.wall_ns;
        assert_eq!(row.mpi_percent.is_some(), is_known, "{row:?}");
        assert!((row.mpi_percent.unwrap_or(share) - share).abs() < 1e-6 && share <= 100.0, "{share} % of {row:?}");
        assert!(row.wall_ns <= row.thread_wall_ns && row.thread_wall_ns <= (THREADS + 1) * row.wall_ns, "{row:?}");
    }
    job.open_gate("MPI_Send")?;
    job.wait()?.success()?;
    Ok(())
}

/// What each has done is known after the job's end.
/// Invariant THREADS-ADD-UP.
fn ended_one_by_one(mpi: Mpi) -> Result<(), Failed> {
    let (job, ended) = observed(mpi, &["6", "50"], &["--functions", "all"])?;
    expect_threads_of_ended_ranks(&complete(&ended)?, &job.snapshot()?)
}

/// Threads that stand still after their first messages when one of the ranks is killed.
fn killed(mpi: Mpi) -> Result<(), Failed> {
    let (mut job, profiler) = standing(mpi)?;
    job.kill_ranks()?;
    let profile = complete(&profiler.wait()?)?;
    expect_threads_of_ended_ranks(&profile, &job.snapshot()?)?;
    assert!(profile.ranks.iter().all(|row| row.threads_in_mpi == THREADS + 1), "{:?}", profile.ranks);
    Ok(())
}

/// Some of them are remembered one by one, and the others by their sums.
fn short_lived(mpi: Mpi) -> Result<(), Failed> {
    let (job, ended) = observed(mpi, &["--short-lived", "10000"], &["--functions", "all"])?;
    let (profile, truth) = (complete(&ended)?, job.snapshot()?);
    expect_counts(&profile, &truth, None, &functions("all")?)?;
    assert_eq!(profile.ranks.iter().map(|row| row.threads_in_mpi).sum::<u64>(), 20_002);
    expect_bounded_threads(&profile, &truth)?;
    Ok(())
}

/// What is not counted is known to the call, and the exit status tells.
fn too_many(mpi: Mpi) -> Result<(), Failed> {
    let (job, ended) = observed(mpi, &["6", "50"], &["--max-threads", "4"])?;
    let profile = ended.profile()?;
    assert_eq!(ended.status.code(), Some(3), "{}", ended.printed());
    assert!(!profile.complete);
    assert!(
        profile.incomplete_because.iter().any(|why| why.contains("--max-threads")),
        "{:?}",
        profile.incomplete_because
    );
    let wanted = functions("default")?;
    let truth: u64 =
        job.snapshot()?.ranks.values().flat_map(|image| completed(image, None, &wanted).into_values()).sum();
    let counted: u64 = profile.ranks.iter().map(|row| row.calls).sum();
    let mut lost = profile.lost();
    // The truth library is a tool before MPI, and its layer cannot be told in those threads either.
    lost.remove("tool_calls_lost");
    let [("thread_table_full", lost)] = lost.into_iter().collect::<Vec<_>>()[..] else {
        return Err(format!("{:?}", profile.lost()).into());
    };
    assert!(lost > 0);
    assert_eq!(counted + lost, truth, "{}", ended.printed());
    Ok(())
}
