//! Many threads, and more of them than there is room for.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Ended, Job, Language, Mpi, Profiler, program};

use crate::check::{complete, completed, expect_counts, functions};
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "threads_at_once", at_once),
        trial(mpi, Language::C, "twenty_thousand_threads", short_lived),
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

fn short_lived(mpi: Mpi) -> Result<(), Failed> {
    let (job, ended) = observed(mpi, &["--short-lived", "10000"], &[])?;
    let profile = complete(&ended)?;
    expect_counts(&profile, &job.snapshot()?, None, &functions("default")?)?;
    assert_eq!(profile.ranks.iter().map(|row| row.threads_in_mpi).sum::<u64>(), 20_002);
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
    let lost = profile.lost();
    let [("thread_table_full", lost)] = lost.into_iter().collect::<Vec<_>>()[..] else {
        return Err(format!("{:?}", profile.lost()).into());
    };
    assert!(lost > 0);
    assert_eq!(counted + lost, truth, "{}", ended.printed());
    Ok(())
}
