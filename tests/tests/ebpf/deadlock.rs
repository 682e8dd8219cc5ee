//! Ranks that wait for each other, and what they wait in.

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Language, Mpi, Profiler,
    open_calls::{circle, expect_circle, expect_names, expect_waiting_at_end, kill_in_circle, named_datatype},
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
    ]
}

fn killed(mpi: Mpi) -> Result<(), Failed> {
    let mut job = circle(mpi, false).spawn()?;
    job.wait_for_gate("1")?;
    let profiler = Profiler::observe(["--pid-of", job.called()])?;
    kill_in_circle(&mut job)?;
    // Older kernels have let go of return probes by then.
    expect_waiting_at_end(&profiler.wait()?.profile()?, false)
}
