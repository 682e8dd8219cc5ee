//! One mpiprobe that stays while jobs come and go.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::{CampaignError, complete};
use crate::proc::peak_kib;
use crate::profiler::{Profiler, ProfilerError};
use crate::{Job, Mpi, program};

const PATIENCE: Duration = Duration::from_mins(5);
const POLL: Duration = Duration::from_millis(2);
const ITERATIONS: u64 = 20;
/// What mpiprobe opens once for all after it has said that it observes.
const OPENED_LATER: usize = 1;

/// Runs `count` jobs of one name after another under the same mpiprobe, which is held by a first one that waits. All calls of
/// all jobs are counted, and mpiprobe has no more files open in the end than in the beginning. Gives its largest size in KiB.
pub fn visitors(mpi: Mpi, count: u32, mut progress: impl FnMut(u32)) -> Result<u64, CampaignError> {
    let mut host = Job::builder(mpi, program::RING).ranks(2).args(["5"]).gates(&["1"]).own_name().spawn()?;
    host.wait_for_gate("1")?;
    let name = host.called().to_owned();
    let mut profiler = Profiler::observe(["--pid-of", &name, "--all-jobs"])?;
    let open = open_files(profiler.pid(), 0)? + OPENED_LATER;
    for round in 1..=count {
        let mut visitor = Job::builder(mpi, program::RING)
            .ranks(2)
            .args([ITERATIONS.to_string()])
            .gates(&["1"])
            .called(&name)
            .spawn()?;
        visitor.wait_for_gate("1")?;
        for _ in visitor.ranks()? {
            profiler.wait_for("mpiprobe: joined: ")?;
        }
        visitor.open_gate("1")?;
        visitor.wait()?.success()?;
        expect_open_files(profiler.pid(), open, round)?;
        progress(round);
    }
    let peak = peak_kib(profiler.pid()).unwrap_or(0);
    host.open_gate("1")?;
    host.wait()?.success()?;
    let profile = complete(&profiler.wait()?, count)?;
    let complete_rows = profile.ranks.iter().filter(|row| {
        let counted = row.completed();
        ["MPI_Init", "MPI_Finalize"].map(|name| counted.get(name)) == [Some(&1), Some(&1)]
            && counted.get("MPI_Allreduce") == Some(&ITERATIONS)
    });
    let (found, expected) = (complete_rows.count(), 2 * count as usize);
    if found != expected || profile.ranks.len() != expected + 2 {
        let rows: Vec<_> = profile.ranks.iter().map(|row| (row.rank, row.pid, row.completed())).collect();
        return Err(CampaignError::wrong(count, format!("{found} of {expected} ranks counted fully: {rows:?}")));
    }
    Ok(peak)
}

fn open_files(pid: u32, round: u32) -> Result<usize, CampaignError> {
    let directory = format!("/proc/{pid}/fd");
    let entries =
        fs::read_dir(&directory).map_err(|error| CampaignError::wrong(round, format!("{directory}: {error}")))?;
    Ok(entries.count())
}

/// Waits until mpiprobe has noticed the end of a job.
fn expect_open_files(pid: u32, expected: usize, round: u32) -> Result<(), CampaignError> {
    let start = Instant::now();
    loop {
        let open = open_files(pid, round)?;
        if open <= expected {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            let what = format!("mpiprobe to have no more than {expected} files open, not {open}");
            return Err(ProfilerError::Timeout { what, waited: PATIENCE, output: format!("round {round}") }.into());
        }
        thread::sleep(POLL);
    }
}
