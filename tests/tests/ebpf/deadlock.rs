//! Ranks that wait for each other.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, Profiler, program};
use rustix::process::Signal;

use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "one_look_shows_the_circle_of_a_deadlock", one_look),
        trial(mpi, Language::C, "datatypes_of_open_calls_have_their_names", datatypes),
    ]
}

/// How long is looked: the circle is one when its calls have been open for a second.
const LOOK: &str = "4s";

fn one_look(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::CIRCLE).ranks(4).gates(&["1"]).truth(true).own_name().spawn()?;
    job.wait_for_gate("1")?;
    let mut profiler = Profiler::start(["--plain", "--once", "--duration", LOOK, "--pid-of", job.called()])?;
    profiler.wait_for("mpiprobe: observing ")?;
    job.open_gate("1")?;
    let ended = profiler.wait()?;
    let text = ended.stdout.join("\n");
    assert!(text.contains("DEADLOCK: each of these ranks waits for the next one: 0 → 1 → 2 → 3 → 0"), "{text}");
    assert_eq!(text.matches("Ranks, since").count(), 1, "{text}");
    for rank in job.living_ranks()? {
        // The launcher may have killed it meanwhile.
        let _ = job.kill_rank(rank, Signal::KILL);
    }
    job.wait()?;
    Ok(())
}

fn datatypes(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::NAMED_DATATYPE).ranks(2).gates(&["1"]).truth(true).own_name().spawn()?;
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
    for rank in job.living_ranks()? {
        let _ = job.kill_rank(rank, Signal::KILL);
    }
    job.wait()?;
    Ok(())
}
