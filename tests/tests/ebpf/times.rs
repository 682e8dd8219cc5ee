//! Not only counts: time in MPI against the truth library's clock.

use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Job, Mpi, Profiler, Requirement, program, requirement};

use crate::check::{complete, functions};

/// What the counting of either side may add to a call.
const PER_CALL: Duration = Duration::from_micros(10);

pub(crate) fn tests(mpi: Mpi) -> Vec<Trial> {
    let needs = [Requirement::Bpf, Requirement::Mpi(mpi), Requirement::QuietMachine];
    let name = format!("{}::time_in_mpi_agrees_with_an_independent_clock", mpi.id());
    vec![requirement::trial(name, &needs, move || compare(mpi))]
}

/// Rank 1 computes twice as long as rank 0, which waits for it: long calls.
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
        let tolerance = truth / 20 + PER_CALL * u32::try_from(row.calls).unwrap_or(u32::MAX);
        assert!(measured.abs_diff(truth) <= tolerance, "rank {rank}: {measured:?}, not {truth:?} ± {tolerance:?}");
        let of_functions: u64 = row.functions.iter().map(|function| function.time_ns).sum();
        assert_eq!(row.mpi_ns, of_functions, "rank {rank}");
        assert!(row.wall_ns >= row.mpi_ns, "rank {rank}: {row:?}");
    }
    Ok(())
}
