//! Not only counts: time in MPI against the truth library's clock. How exactly they agree is measured by `cargo xtask bench times`.

use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Language, Mpi, Profiler, program};

use crate::check::{complete, functions};
use crate::trial;

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    vec![trial(mpi, Language::C, "time_in_mpi_agrees_with_an_independent_clock", compare)]
}

/// Rank 1 computes twice as long as rank 0, which waits for it: long calls. The library's clock is read before the probe and after it, so
/// that it tells at least as much, and more only by what either side costs and by when others had the processor in between.
fn compare(mpi: Mpi) -> Result<(), Failed> {
    let mut job = Job::builder(mpi, program::RING)
        .ranks(2)
        .args(["60", "--pause-us", "4000", "--imbalance"])
        .gates(&["start"])
        .truth(true)
        .own_name()
        .spawn()?;
    job.wait_for_gate("start")?;
    let profiler = Profiler::observe(["--pid-of", job.called()])?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    let profile = complete(&profiler.wait()?)?;
    let wanted = functions("default")?;
    for (rank, image) in job.snapshot()?.ranks {
        let row = profile.rank(rank).ok_or("no such rank")?;
        let is_wanted = |name: &str| mpiprobe_functions::by_name(name).is_some_and(|id| wanted.contains(id));
        let truth: Duration =
            image.functions.iter().filter(|(name, _)| is_wanted(name)).map(|(_, calls)| calls.time).sum();
        let measured = Duration::from_nanos(row.mpi_ns);
        assert!(measured <= truth, "rank {rank}: {measured:?} of {truth:?}");
        assert!(rank != 0 || measured >= truth / 2, "rank {rank}: {measured:?} of {truth:?}");
        let of_functions: u64 = row.functions.iter().map(|function| function.time_ns).sum();
        assert_eq!(row.mpi_ns, of_functions, "rank {rank}");
        assert!(row.wall_ns >= row.mpi_ns, "rank {rank}: {row:?}");
    }
    Ok(())
}
