//! Attach, detach, attach, … on one running job that checks every byte of its messages.

use rustix::process::Signal;

use super::{CampaignError, complete};
use crate::proc::peak_kib;
use crate::profiler::{KernelObjects, Profiler, changed_bytes};
use crate::{Job, Mpi, program};

/// Every so many cycles mpiprobe is killed instead of asked to end.
const KILL_EVERY: u32 = 5;
/// Calls that the job makes in each cycle under probes, and again without.
const CALLS: u64 = 8;

/// What the cycles came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct CyclesReport {
    pub cycles: u32,
    /// Calls of MPI_Allreduce that rank 0 had made in the end, all with the right result.
    pub rounds: u64,
    /// Largest resident size of any mpiprobe, KiB.
    pub peak_kib: u64,
}

/// Attaches and detaches `count` times; checks after each that the code of the job is what it was and that the kernel has
/// nothing left of that mpiprobe, and in the end that every message was right.
pub fn cycles(mpi: Mpi, count: u32, mut progress: impl FnMut(u32)) -> Result<CyclesReport, CampaignError> {
    let mut job = Job::builder(mpi, program::VERIFY).ranks(2).truth(true).own_name().own_library().spawn()?;
    job.wait_for_calls("MPI_Allreduce", CALLS)?;
    let pids: Vec<u32> = job.ranks()?.into_values().collect();
    let mut report = CyclesReport::default();
    for cycle in 1..=count {
        let peak_kib = attach_and_detach(&mut job, &pids, cycle)?;
        report.peak_kib = report.peak_kib.max(peak_kib);
        advance(&mut job)?;
        report.cycles = cycle;
        progress(cycle);
    }
    job.stop()?;
    let finished = job.wait()?.success()?;
    if !finished.stdout.contains("all correct") {
        return Err(CampaignError::wrong(count, finished.stdout));
    }
    report.rounds = job.snapshot()?.rank(0)?.calls("MPI_Allreduce").completed;
    Ok(report)
}

fn attach_and_detach(job: &mut Job, pids: &[u32], cycle: u32) -> Result<u64, CampaignError> {
    let profiler = Profiler::observe(["--pid-of", job.called()])?;
    let objects = KernelObjects::of(profiler.pid())?;
    let before = job.snapshot()?;
    advance(job)?;
    let seen = job.snapshot()?;
    let peak_kib = peak_kib(profiler.pid()).ok_or_else(|| CampaignError::wrong(cycle, "no size of mpiprobe"))?;
    if cycle.is_multiple_of(KILL_EVERY) {
        profiler.signal(Signal::KILL)?;
        profiler.wait()?;
    } else {
        let profile = complete(&profiler.interrupt()?, cycle)?;
        for (&rank, image) in &seen.ranks {
            let certain = image.calls("MPI_Allreduce").completed - before.rank(rank)?.calls("MPI_Allreduce").entered;
            let counted = profile.rank(rank).and_then(|row| row.completed().get("MPI_Allreduce").copied()).unwrap_or(0);
            if counted < certain {
                return Err(CampaignError::wrong(cycle, format!("rank {rank}: {counted} of {certain} calls counted")));
            }
        }
    }
    objects.wait_until_gone()?;
    let library = job.library().map(ToOwned::to_owned).unwrap_or_default();
    for &pid in pids {
        let changed = changed_bytes(pid, &library)?;
        if changed != 0 {
            return Err(CampaignError::wrong(cycle, format!("{changed} probes left in process {pid}")));
        }
    }
    Ok(peak_kib)
}

/// Until every rank has made some more calls.
fn advance(job: &mut Job) -> Result<(), CampaignError> {
    let calls = job.snapshot()?.ranks.values().map(|image| image.calls("MPI_Allreduce").completed).max().unwrap_or(0);
    Ok(job.wait_for_calls("MPI_Allreduce", calls + CALLS)?)
}
