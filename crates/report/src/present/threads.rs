//! Threads as text.

use std::cmp::Reverse;

use mpiprobe_model::{OtherThreads, Profile, RankProfile, SaturatingSum as _, ThreadLife, ThreadProfile};

use super::{
    table::{TextOptions, left, right, section, table},
    units::{count, or_unknown, percent, time_unless, unless},
};

/// Threads that are shown, of those with most time.
const THREADS_SHOWN: usize = 32;

/// What each thread has done, most time first, of ranks that have several in MPI; empty without such ranks.
pub(super) fn threads(options: &TextOptions, profile: &Profile) -> String {
    let of_several = || profile.ranks.iter().filter(|rank| rank.threads_in_mpi > 1);
    let mut all: Vec<_> = of_several().flat_map(|rank| rank.threads.iter().map(move |thread| (rank, thread))).collect();
    if all.is_empty() {
        return String::new();
    }
    all.sort_by_key(|(_, thread)| Reverse((thread.mpi_ns, thread.calls)));
    let columns = [
        right("rank"),
        right("pid"),
        right("thread"),
        left("state").spare(),
        right("calls"),
        right("MPI time"),
        right("MPI % of its life"),
    ];
    let others = of_several().filter_map(|rank| rank.other_threads).reduce(plus);
    let shown = options.rows(THREADS_SHOWN);
    let untimed = of_several().map(|rank| rank.untimed_calls).saturating_sum();
    let rows = all.iter().take(shown).map(|(rank, thread)| row(rank, thread));
    let mut text = table(options, &columns, rows.chain(others.map(|others| row_of_others(untimed, &others))));
    text += &options.more(shown, all.len(), "threads");
    section("Threads", &text)
}

fn row(rank: &RankProfile, thread: &ThreadProfile) -> Vec<String> {
    let state = match thread.state {
        ThreadLife::Running => "running",
        ThreadLife::Ended => "ended",
    };
    let mut row = vec![or_unknown(rank.rank), rank.pid.to_string(), thread.tid.to_string(), state.into()];
    row.extend(figures(rank.untimed_calls, thread.calls, thread.mpi_ns, thread.wall_ns));
    row
}

/// All threads without rows of their own, in all ranks.
fn row_of_others(untimed: u64, others: &OtherThreads) -> Vec<String> {
    let mut row = vec![String::new(), String::new(), format!("{} others", count(others.threads)), "ended".into()];
    row.extend(figures(untimed, others.calls, others.mpi_ns, others.wall_ns));
    row
}

/// Of a thread whose rank has so many calls without times (`untimed`).
fn figures(untimed: u64, calls: u64, mpi_ns: u64, wall_ns: u64) -> [String; 3] {
    let share = share_of_life(mpi_ns, wall_ns).map_or_else(|| "-".into(), percent);
    [count(calls), time_unless(untimed, mpi_ns), unless(untimed, share)]
}

/// Time in MPI of a thread's life since its first call, per cent; `None`: not known how long that was, as in recordings of earlier
/// versions.
pub fn share_of_life(mpi_ns: u64, wall_ns: u64) -> Option<f64> {
    (wall_ns > 0).then(|| (100.0 * mpi_ns as f64 / wall_ns as f64).min(100.0))
}

fn plus(one: OtherThreads, other: OtherThreads) -> OtherThreads {
    OtherThreads {
        threads: one.threads.saturating_add(other.threads),
        calls: one.calls.saturating_add(other.calls),
        mpi_ns: one.mpi_ns.saturating_add(other.mpi_ns),
        wall_ns: one.wall_ns.saturating_add(other.wall_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpiprobe_model::sample::{SECOND, profile, ranks};

    fn thread(tid: u32, state: ThreadLife, seconds: u64) -> ThreadProfile {
        ThreadProfile { tid, state, calls: 1000 * seconds, mpi_ns: seconds * SECOND, wall_ns: 10 * SECOND }
    }

    /// Three ranks, of which the first one has two threads in MPI, the second one four, and the third one its own only.
    fn job() -> Profile {
        let mut ranks = ranks(3);
        ranks[0].threads = vec![thread(4000, ThreadLife::Running, 5), thread(5000, ThreadLife::Ended, 2)];
        ranks[1].threads = vec![thread(4001, ThreadLife::Running, 1)];
        ranks[1].other_threads = Some(OtherThreads { threads: 3, calls: 30, mpi_ns: 3 * SECOND, wall_ns: 12 * SECOND });
        ranks[2].threads = vec![thread(4002, ThreadLife::Running, 9)];
        for (rank, threads) in ranks.iter_mut().zip([2, 4, 1]) {
            rank.threads_in_mpi = threads;
        }
        profile(ranks)
    }

    #[test]
    fn most_time_comes_first_and_what_is_known_of_all_together_last() {
        insta::assert_snapshot!(threads(&TextOptions::default(), &job()));
    }

    #[test]
    fn it_is_said_how_many_are_not_shown() {
        let mut profile = job();
        profile.ranks[0].threads = (0..1500).map(|tid| thread(5000 + tid, ThreadLife::Ended, 1)).collect();
        let text = threads(&TextOptions::default(), &profile);
        assert_eq!(text.lines().count(), 2 + THREADS_SHOWN + 2);
        assert!(text.ends_with("\n1,469 more threads: -v, --top N, or see --json\n"), "{text}");
    }

    /// Invariant NO-TIME-NO-ZERO.
    #[test]
    fn a_time_that_nobody_knows_is_not_none() {
        let mut profile = job();
        for rank in &mut profile.ranks {
            (rank.untimed_calls, rank.mpi_ns) = (1000, 0);
            rank.threads.iter_mut().for_each(|thread| thread.mpi_ns = 0);
            rank.other_threads.iter_mut().for_each(|others| others.mpi_ns = 0);
        }
        let text = threads(&TextOptions::default(), &profile);
        let ends = |line: &str| line.split_whitespace().rev().take(2).collect::<Vec<_>>() == ["?", "?"];
        assert_eq!(text.lines().filter(|line| ends(line)).count(), 4, "{text}");
    }

    #[test]
    fn ranks_of_one_thread_have_no_table() {
        let mut ranks = ranks(1);
        ranks[0].threads = vec![thread(4000, ThreadLife::Ended, 5)];
        assert_eq!(threads(&TextOptions::default(), &profile(ranks)), "");
    }
}
