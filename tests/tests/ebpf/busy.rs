//! Attached to and detached from a job that runs meanwhile: the counts lie between what is certain to have been seen and what
//! can have been seen.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::truth::Snapshot;
use mpiprobe_tests::{Job, Language, Mpi, Profile, Profiler, program};

use crate::check::functions;
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "busy_job_to_its_end", to_the_end),
        trial(mpi, Language::C, "busy_job_until_interrupted", until_interrupted),
        trial(mpi, Language::C, "busy_job_for_a_duration", for_a_duration),
    ]
}

/// A ring that runs, and what it had called before and after mpiprobe was attached.
struct Busy {
    job: Job,
    profiler: Profiler,
    before: Snapshot,
    attached: Snapshot,
}

fn start(mpi: Mpi, arguments: &[&str]) -> Result<Busy, Failed> {
    let mut job = Job::builder(mpi, program::RING).ranks(3).args(["--forever"]).truth(true).own_name().spawn()?;
    job.wait_for_calls("MPI_Allreduce", 50)?;
    let before = job.snapshot()?;
    let profiler = Profiler::observe(["--pid-of", job.called()].iter().chain(arguments))?;
    let attached = job.snapshot()?;
    let calls = attached.rank(0)?.calls("MPI_Allreduce").completed;
    job.wait_for_calls("MPI_Allreduce", calls + 500)?;
    Ok(Busy { job, profiler, before, attached })
}

/// `seen_until`: a moment before the end of observation; `end`: one after it.
fn expect_between(
    profile: &Profile,
    busy: (&Snapshot, &Snapshot),
    seen_until: &Snapshot,
    end: &Snapshot,
) -> Result<(), Failed> {
    let (before, attached) = busy;
    let wanted = functions("default")?;
    for &rank in end.ranks.keys() {
        let row = profile.rank(rank).ok_or_else(|| format!("no row for rank {rank}"))?;
        let counted = row.completed();
        for id in wanted.iter() {
            let name = id.function().name;
            let of = |snapshot: &Snapshot| snapshot.rank(rank).map(|image| image.calls(name));
            // A call that had begun before attach is not counted: only what began afterwards is certain.
            let least = of(seen_until)?.completed.saturating_sub(of(attached)?.entered);
            let most = of(end)?.completed - of(before)?.completed;
            let calls = counted.get(name).copied().unwrap_or(0);
            assert!((least..=most).contains(&calls), "rank {rank}, {name}: {calls} is not in {least}..={most}");
        }
    }
    Ok(())
}

fn to_the_end(mpi: Mpi) -> Result<(), Failed> {
    let Busy { mut job, profiler, before, attached } = start(mpi, &[])?;
    job.stop()?;
    job.wait()?.success()?;
    let ended = profiler.wait()?;
    let profile = ended.profile()?;
    assert!(profile.complete && ended.status.success(), "{}", ended.printed());
    let end = job.snapshot()?;
    expect_between(&profile, (&before, &attached), &end, &end)
}

fn until_interrupted(mpi: Mpi) -> Result<(), Failed> {
    let Busy { mut job, profiler, before, attached } = start(mpi, &[])?;
    let seen = job.snapshot()?;
    let ended = profiler.interrupt()?;
    let after = job.snapshot()?;
    let profile = ended.profile()?;
    assert!(profile.complete && ended.status.success(), "{}", ended.printed());
    assert_eq!(profile.end.as_deref(), Some("interrupted"));
    expect_between(&profile, (&before, &attached), &seen, &after)?;
    job.stop()?;
    job.wait()?.success()?;
    Ok(())
}

fn for_a_duration(mpi: Mpi) -> Result<(), Failed> {
    let Busy { mut job, profiler, before, attached } = start(mpi, &["--duration", "1s"])?;
    let ended = profiler.wait()?;
    let after = job.snapshot()?;
    let profile = ended.profile()?;
    assert!(profile.complete && ended.status.success(), "{}", ended.printed());
    assert_eq!(profile.end.as_deref(), Some("duration"));
    assert!(profile.observed_ns >= 1_000_000_000, "{} ns", profile.observed_ns);
    expect_between(&profile, (&before, &attached), &attached, &after)?;
    job.stop()?;
    job.wait()?.success()?;
    Ok(())
}
