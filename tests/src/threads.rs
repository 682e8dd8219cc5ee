//! What a profile says of threads, against what the truth library counted.
#![expect(clippy::missing_panics_doc, reason = "these are assertions")]

use libtest_mimic::Failed;

use crate::profiler::{Profile, Rank, Thread};
use crate::truth::{Image, Snapshot};

/// Of further threads of a process that have ended there are sums only; its first thread is not one of these.
const REMEMBERED: usize = 256;

/// What a rank has done is what its threads have done. When it has ended, so have they.
pub fn expect_sums_of_threads(row: &Rank) {
    let others = row.other_threads.unwrap_or_default();
    let sum = |of: fn(&Thread) -> u64| row.threads.iter().map(of).sum::<u64>();
    assert_eq!(row.threads_in_mpi, row.threads.len() as u64 + others.threads, "rank {:?}", row.rank);
    assert_eq!(row.calls, sum(|thread| thread.calls) + others.calls, "rank {:?}", row.rank);
    assert_eq!(row.mpi_ns, sum(|thread| thread.mpi_ns) + others.mpi_ns, "rank {:?}", row.rank);
    let is_alive = |state: &str| state == "running";
    assert!(is_alive(&row.state) || !row.threads.iter().any(|thread| is_alive(&thread.state)), "{row:?}");
}

/// Ids and calls, sorted: an id may be that of several threads, one after the other.
fn told(image: &Image) -> Vec<(u32, u64)> {
    let living = image.threads.iter().map(|thread| (thread.tid, thread.calls));
    let mut all: Vec<_> = living.chain(image.ended_threads.iter().map(|thread| (thread.tid, thread.calls))).collect();
    all.sort_unstable();
    all
}

/// The same of a profile, whose times are checked against each other.
fn shown(row: &Rank) -> Vec<(u32, u64)> {
    expect_sums_of_threads(row);
    for thread in &row.threads {
        assert!(thread.mpi_ns <= thread.wall_ns && thread.wall_ns <= row.wall_ns, "{row:?}");
        // The entry of a call that never returned may be the last that was seen of a process that was killed.
        assert!(thread.calls == 0 || 0 < thread.mpi_ns, "{row:?}");
    }
    let mut all: Vec<_> = row.threads.iter().map(|thread| (thread.tid, thread.calls)).collect();
    all.sort_unstable();
    all
}

/// Of processes that have ended, with all functions counted: each thread is there, with the calls that it has completed. A thread
/// that ended inside a call has entered one more.
pub fn expect_threads_of_ended_ranks(profile: &Profile, truth: &Snapshot) -> Result<(), Failed> {
    for (rank, image) in &truth.ranks {
        let row = profile.rank(*rank).ok_or("no such rank")?;
        expect_threads(row, image);
        assert_eq!(row.state, "ended", "rank {rank}");
    }
    Ok(())
}

/// The same of one process image, that has ended or become another one.
pub fn expect_threads(row: &Rank, image: &Image) {
    let mut told = told(image);
    for call in row.open_calls.iter().filter(|call| call.ended_inside) {
        told.iter_mut().filter(|(tid, _)| *tid == call.tid).for_each(|(_, calls)| *calls -= 1);
    }
    assert_eq!((shown(row), row.other_threads), (told, None), "calls by thread, rank {:?}", row.rank);
}

/// The same where there were more threads than are remembered: the first ones to end, and the rank's first thread, have rows. The
/// ranks have called functions only that are counted.
pub fn expect_bounded_threads(profile: &Profile, truth: &Snapshot) -> Result<(), Failed> {
    for (rank, image) in &truth.ranks {
        let row = profile.rank(*rank).ok_or("no such rank")?;
        let threads = u64::from(image.threads_ended) + image.threads.len() as u64;
        let shown = shown(row);
        assert_eq!(shown.len(), REMEMBERED + 1, "rank {rank}");
        let told = told(image);
        assert!(shown.iter().all(|thread| told.contains(thread)), "{shown:?} are not among {told:?}");
        assert!(shown.iter().any(|(tid, _)| *tid == row.pid), "the first thread of rank {rank}: {shown:?}");
        let others = row.other_threads.ok_or("no others")?;
        let calls: u64 = image.functions.values().map(|function| function.completed).sum();
        assert_eq!(others.threads, threads - shown.len() as u64, "rank {rank}");
        assert_eq!(others.calls, calls - shown.iter().map(|(_, calls)| calls).sum::<u64>(), "rank {rank}");
        assert!(0 < others.mpi_ns && others.mpi_ns <= others.wall_ns, "{others:?}");
    }
    Ok(())
}
