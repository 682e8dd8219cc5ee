//! Ranks that wait for each other, and what they wait in.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Job, Language, Mpi, Profiler,
    open_calls::{circle, expect_circle, expect_names, expect_waiting_at_end, kill_in_circle, named_datatype},
    program,
};

use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![
        trial(mpi, Language::C, "one_look_shows_the_circle_of_a_deadlock", |mpi| {
            expect_circle(circle(mpi, false).spawn()?, false)
        }),
        trial(mpi, Language::C, "one_look_shows_a_circle_of_exchanges", |mpi| {
            expect_circle(circle(mpi, true).spawn()?, true)
        }),
        trial(mpi, Language::C, "datatypes_of_open_calls_have_their_names", |mpi| {
            expect_names(named_datatype(mpi).spawn()?)
        }),
        trial(mpi, Language::C, "a_killed_job_says_what_it_waited_for", killed),
        trial(mpi, Language::C, "calls_that_began_before_are_not_taken_for_computing", unseen),
    ]
}

/// Attached to when all are inside for good: nothing is known of them, and nothing is told.
fn unseen(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::HANG).ranks(2).args(["7"]).truth(true).own_name().spawn()?;
    job.ranks()?;
    job.wait_until_inside(1, "MPI_Recv")?;
    job.wait_until_inside(0, "MPI_Barrier")?;
    let profiler = Profiler::observe(["--pid-of", job.called()])?;
    let ended = profiler.interrupt()?;
    let profile: serde_json::Value = serde_json::from_str(ended.stdout.last().ok_or("no profile")?)?;
    let at = |pointer: &str| profile.pointer(pointer);
    for unknown in ["/ranks/0/mpi_percent", "/ranks/1/mpi_percent", "/totals/mpi_percent_of_all", "/totals/efficiency"]
    {
        assert!(at(unknown).is_some_and(serde_json::Value::is_null), "{unknown}: {profile}");
    }
    assert_eq!(at("/ranks/0/unseen_ns"), at("/ranks/0/wall_ns"), "{profile}");
    Ok(())
}

fn killed(mpi: Mpi) -> Result<(), Failed> {
    let mut job = circle(mpi, false).spawn()?;
    job.wait_for_gate("1")?;
    let profiler = Profiler::observe(["--pid-of", job.called()])?;
    kill_in_circle(&mut job)?;
    // Older kernels have let go of return probes by then.
    expect_waiting_at_end(&profiler.wait()?.profile()?, false)
}
