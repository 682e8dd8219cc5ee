//! Ranks that wait for each other.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, Profiler, program};
use rustix::process::Signal;

use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![trial(mpi, Language::C, "one_look_shows_the_circle_of_a_deadlock", one_look)]
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
