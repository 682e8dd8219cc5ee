//! Ranks that are killed in the middle of whatever they are doing.

use rustix::process::Signal;

use super::{CampaignError, complete};
use crate::profiler::Profiler;
use crate::{Job, Mpi, program};

/// Kills a rank of a running job under observation after about `calls` calls. What mpiprobe reports must lie between what the
/// truth library saw return and what it saw begin: the rank may die on the few instructions between the two counts.
pub fn killed_in_flight(mpi: Mpi, calls: u64, round: u32) -> Result<(), CampaignError> {
    let mut job = Job::builder(mpi, program::VERIFY).ranks(2).gates(&["start"]).truth(true).own_name().spawn()?;
    job.wait_for_gate("start")?;
    let profiler = Profiler::observe(["--pid-of", job.called()])?;
    job.open_gate("start")?;
    job.wait_for_calls("MPI_Allreduce", calls)?;
    job.kill_rank(round % 2, Signal::KILL)?;
    job.wait()?;
    // A launcher may leave the others behind.
    job.kill_ranks()?;
    let profile = complete(&profiler.wait()?, round)?;
    for (rank, image) in job.snapshot()?.ranks {
        let row = profile.rank(rank).ok_or_else(|| CampaignError::wrong(round, format!("no row for rank {rank}")))?;
        let counted = row.completed();
        for function in
            ["MPI_Init", "MPI_Sendrecv", "MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce", "MPI_Bcast"]
        {
            let truth = image.calls(function);
            let calls = counted.get(function).copied().unwrap_or(0);
            if !(truth.completed..=truth.entered).contains(&calls) {
                return Err(CampaignError::wrong(
                    round,
                    format!("rank {rank}, {function}: {calls} counted, not {truth:?}"),
                ));
            }
        }
    }
    Ok(())
}
