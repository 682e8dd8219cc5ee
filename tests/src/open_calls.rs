//! What is said of calls that are open, whichever engine counts.

use std::thread;
use std::time::Duration;

use libtest_mimic::Failed;

use crate::{Job, JobBuilder, Mpi, Profile, Profiler, program};

/// A circle is one when its calls have been open for so long.
const OPEN: Duration = Duration::from_secs(1);

const RANKS: u32 = 4;

/// Ranks that stand at their first gate, and will then wait for each other, for ever: in `MPI_Recv`, or in `MPI_Sendrecv`.
pub fn circle(mpi: Mpi, exchanges: bool) -> JobBuilder {
    let arguments = if exchanges { &["10", "exchange"][..] } else { &["10"] };
    Job::builder(mpi, program::CIRCLE).ranks(RANKS).args(arguments.iter().copied()).gates(&["1"]).truth(true).own_name()
}

/// One look at that shows the deadlock.
///
/// # Panics
/// If it does not.
pub fn expect_circle(mut job: Job, exchanges: bool) -> Result<(), Failed> {
    job.wait_for_gate("1")?;
    let mut profiler = Profiler::start(["--plain", "--once", "--duration", "1h", "--pid-of", job.called()])?;
    profiler.wait_for("mpiprobe: observing ")?;
    job.open_gate("1")?;
    let function = if exchanges { "MPI_Sendrecv" } else { "MPI_Recv" };
    for rank in 0..RANKS {
        job.wait_until_inside(rank, function)?;
    }
    thread::sleep(OPEN);
    let ended = profiler.interrupt()?;
    let text = ended.stdout.join("\n");
    assert!(text.contains("DEADLOCK: each of these ranks waits for the next one: 0 → 1 → 2 → 3 → 0"), "{text}");
    let call = if exchanges { "MPI_Sendrecv to nobody tag 8 from 1 tag 7" } else { "MPI_Recv from 1 tag 7" };
    assert!(text.contains(call), "{text}");
    assert_eq!(text.matches("Ranks, since").count(), 1, "{text}");
    kill(&mut job)
}

/// Kills the ranks in what they wait in.
pub fn kill_in_circle(job: &mut Job) -> Result<(), Failed> {
    job.open_gate("1")?;
    for rank in 0..RANKS {
        job.wait_until_inside(rank, "MPI_Recv")?;
    }
    kill(job)
}

/// The profile of a job that was killed so: what each rank waited for, and where.
///
/// # Panics
/// If it says something else.
pub fn expect_waiting_at_end(profile: &Profile, knows_site: bool) -> Result<(), Failed> {
    for rank in 0..RANKS {
        let row = profile.rank(rank).ok_or("no such rank")?;
        let [call] = row.open_calls.as_slice() else { return Err(format!("rank {rank}: {:?}", row.open_calls).into()) };
        assert_eq!((call.function.as_str(), call.ended_inside), ("MPI_Recv", true), "rank {rank}");
        let source = call.arguments.as_ref().and_then(|arguments| arguments.source.as_ref()).ok_or("no source")?;
        assert_eq!((source.rank, source.world_rank), (Some((rank + 1) % RANKS), source.rank), "rank {rank}");
        assert!(call.site.is_some() || !knows_site, "rank {rank}: {call:?}");
        assert!(call.site.as_ref().is_none_or(|site| site.starts_with("circle.c:")), "rank {rank}: {call:?}");
    }
    Ok(())
}

/// Two ranks that will wait in a receive with a datatype that has a name.
pub fn named_datatype(mpi: Mpi) -> JobBuilder {
    Job::builder(mpi, program::NAMED_DATATYPE).ranks(2).gates(&["1"]).truth(true).own_name()
}

/// mpiprobe says what it is called, and how large its elements are.
///
/// # Panics
/// If it does not.
pub fn expect_names(mut job: Job) -> Result<(), Failed> {
    job.wait_for_gate("1")?;
    let profiler = Profiler::observe(["--pid-of", job.called()])?;
    job.open_gate("1")?;
    for rank in [0, 1] {
        job.wait_until_inside(rank, "MPI_Recv")?;
    }
    let profile = profiler.interrupt()?.profile()?;
    for (rank, count, name, size) in [(0, 3, "particle", 40), (1, 5, "MPI_DOUBLE", 8)] {
        let row = profile.rank(rank).ok_or("no such rank")?;
        let arguments = row.open_calls.first().and_then(|call| call.arguments.as_ref()).ok_or("no arguments")?;
        let datatype = arguments.datatype.as_ref().ok_or("no datatype")?;
        assert_eq!((datatype.name.as_deref(), datatype.size), (Some(name), Some(size)), "rank {rank}");
        assert_eq!((arguments.count, arguments.bytes), (Some(count), Some(count * size)), "rank {rank}");
    }
    kill(&mut job)
}

/// These jobs never end by themselves.
fn kill(job: &mut Job) -> Result<(), Failed> {
    job.kill_ranks()?;
    job.wait()?;
    Ok(())
}
