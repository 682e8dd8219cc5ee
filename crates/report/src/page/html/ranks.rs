//! Ranks.

use mpiprobe_model::{Profile, RankState};
use serde::Serialize;

/// One row a rank, in the order of the profile.
#[derive(Debug, Default, Serialize)]
pub(super) struct Ranks<'a> {
    rank: Vec<Option<u32>>,
    job: Vec<Option<&'a str>>,
    host: Vec<&'a str>,
    pid: Vec<u32>,
    executable: Vec<&'a str>,
    state: Vec<RankState>,
    thread_wall_ns: Vec<u64>,
    mpi_ns: Vec<u64>,
    mpi_percent: Vec<Option<f64>>,
    calls: Vec<u64>,
    sent_bytes: Vec<Option<u64>>,
    received_bytes: Vec<Option<u64>>,
    threads: Vec<u64>,
}

impl<'a> Ranks<'a> {
    pub(super) fn of(profile: &'a Profile) -> Self {
        let mut rows = Self::default();
        for rank in &profile.ranks {
            let moved = rank.moved_bytes();
            rows.rank.push(rank.rank);
            rows.job.push(rank.job.as_deref());
            rows.host.push(&rank.host);
            rows.pid.push(rank.pid);
            rows.executable.push(&rank.executable);
            rows.state.push(rank.state);
            rows.thread_wall_ns.push(rank.thread_wall_ns);
            rows.mpi_ns.push(rank.mpi_ns);
            rows.mpi_percent.push(rank.mpi_percent);
            rows.calls.push(rank.calls);
            rows.sent_bytes.push(moved.map(|(sent, _)| sent));
            rows.received_bytes.push(moved.map(|(_, received)| received));
            rows.threads.push(rank.threads_in_mpi);
        }
        rows
    }
}
