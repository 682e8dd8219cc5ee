//! The part of mpiprobe's own cost that lies within measured durations, and is taken off again.

/// What a measured duration contains of it, ns, by calibration; `None`: not known, and nothing is taken off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SelfCost(pub Option<f64>);

impl SelfCost {
    /// How much of the time (ns) that was measured of so many completed calls it is. Never more than there is: some calls may have
    /// cost less than those of the calibration.
    pub(super) fn within(self, calls: u64, measured_ns: u64) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "limited by what was measured")]
        let cost = (self.0.unwrap_or(0.0) * calls as f64).round() as u64;
        cost.min(measured_ns)
    }
}

/// Divides what was taken off a process (ns) among its threads, of which calls and the time (ns) in them are given: by calls, but to
/// none more than it has time, so that the shares of all add up to it if they have as much time together.
pub(super) fn shares(cost_ns: u64, threads: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
    let mut bearers: Vec<Bearer> =
        threads.enumerate().map(|(place, (calls, time_ns))| Bearer { place, calls, time_ns, share_ns: 0 }).collect();
    // What the shortest calls cannot bear falls to the others.
    bearers.sort_by(|a, b| a.ns_per_call().total_cmp(&b.ns_per_call()));
    let mut calls: u128 = bearers.iter().map(|bearer| u128::from(bearer.calls)).sum();
    let mut left_ns = cost_ns;
    for bearer in &mut bearers {
        let share = u128::from(left_ns) * u128::from(bearer.calls) / calls.max(1);
        left_ns -= bearer.bear(u64::try_from(share).unwrap_or(left_ns));
        calls -= u128::from(bearer.calls);
    }
    // Shares are whole numbers.
    for bearer in &mut bearers {
        left_ns -= bearer.bear(left_ns);
    }
    bearers.sort_by_key(|bearer| bearer.place);
    bearers.into_iter().map(|bearer| bearer.share_ns).collect()
}

/// A thread, and what is taken off it.
#[derive(Debug)]
struct Bearer {
    place: usize,
    calls: u64,
    time_ns: u64,
    share_ns: u64,
}

impl Bearer {
    fn ns_per_call(&self) -> f64 {
        if self.calls == 0 { f64::INFINITY } else { self.time_ns as f64 / self.calls as f64 }
    }

    /// Takes as much of it as it can, and says how much (ns).
    fn bear(&mut self, more_ns: u64) -> u64 {
        let more_ns = more_ns.min(self.time_ns - self.share_ns);
        self.share_ns += more_ns;
        more_ns
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use mpiprobe_common::{FunctionStats, ThreadState};

    use super::*;
    use crate::analyse::{Beginning, Expected, Identity, Observed, Session, rank::Rank};
    use crate::{EngineInfo, RankProfile, RankState};
    use mpiprobe_observe::{ProcessSnapshot, ThreadSnapshot};

    #[test]
    fn it_is_so_much_for_each_call() {
        assert_eq!(SelfCost(Some(700.4)).within(10, 1_000_000), 7004);
        assert_eq!(SelfCost(Some(0.25)).within(10, 1_000), 3);
        assert_eq!(SelfCost(Some(700.0)).within(0, 0), 0);
    }

    #[test]
    fn there_is_never_more_of_it_than_time() {
        assert_eq!(SelfCost(Some(700.0)).within(10, 6_000), 6_000);
        assert_eq!(SelfCost(Some(f64::INFINITY)).within(u64::MAX, 5), 5);
        assert_eq!(SelfCost(Some(f64::NAN)).within(3, 5), 0);
    }

    #[test]
    fn what_is_not_known_is_not_taken_off() {
        assert_eq!(SelfCost(None).within(1_000, 1_000_000), 0);
    }

    /// A process of two threads that has called one function 10 times in 8 µs, and another one 10 times in 1 ms.
    fn process() -> ProcessSnapshot {
        let stats = |time_ns| Arc::new(FunctionStats { calls: 10, time_ns, ..FunctionStats::ZERO });
        let thread = |tid, calls, time_ns| {
            let mut of_thread = ThreadState::ZERO;
            (of_thread.calls, of_thread.time_ns) = (calls, time_ns);
            ThreadSnapshot { tid, slot: 0, state: of_thread }
        };
        ProcessSnapshot {
            functions: vec![(0, stats(8_000)), (1, stats(1_000_000))],
            threads: vec![thread(7, 15, 500_000), thread(8, 5, 508_000)],
            ..ProcessSnapshot::empty(1)
        }
    }

    fn profile(self_cost: SelfCost) -> RankProfile {
        let observed = Observed {
            process: 1,
            identity: Identity::default(),
            state: RankState::Running,
            stopped: false,
            since_ns: 0,
            beginning: Beginning::FirstCall,
            until_ns: None,
            failure: None,
            ended_in: Vec::new(),
            self_cost,
        };
        Rank::new(&session(), &observed, &process(), 10_000_000).profile(None, &mut |_, _| None)
    }

    pub(in crate::analyse) fn session() -> Session {
        let engine = EngineInfo {
            engine: "ebpf",
            attached_by: String::new(),
            launched: false,
            attach_ns: 0,
            libraries: Vec::new(),
            tools: Vec::new(),
        };
        Session {
            host: String::new(),
            began: String::new(),
            began_ns: 0,
            end: None,
            engine,
            per_call_ns: 0.0,
            inside_ns: None,
            nested: false,
            traffic: false,
            communicators: Vec::new(),
            expected: Expected::Some,
            incomplete_because: Vec::new(),
        }
    }

    fn times(rank: &RankProfile) -> [u64; 4] {
        let functions = || rank.functions.iter();
        let threads = rank.threads.iter().map(|thread| thread.mpi_ns).sum();
        let groups = rank.groups.iter().map(|group| group.time_ns).sum();
        [rank.mpi_ns, functions().map(|row| row.time_ns).sum(), threads, groups]
    }

    #[test]
    fn it_is_in_no_time_of_a_rank_and_what_was_measured_stays_known() {
        let rank = profile(SelfCost(Some(1_000.0)));
        // Of the shorter calls not more than there was.
        assert_eq!(times(&rank), [990_000; 4]);
        assert_eq!(rank.self_cost_ns, 18_000);
        let rows: Vec<_> = rank.functions.iter().map(|row| (row.time_ns, row.self_cost_ns, row.mean_ns)).collect();
        assert_eq!(rows, [(990_000, 10_000, 99_000.0), (0, 8_000, 0.0)]);
        assert!((rank.mpi_percent.unwrap() - 100.0 * 990_000.0 / rank.thread_wall_ns as f64).abs() < 1e-9);
    }

    #[test]
    fn a_profile_without_calibration_is_as_measured() {
        let rank = profile(SelfCost(None));
        assert_eq!((times(&rank), rank.self_cost_ns), ([1_008_000; 4], 0));
    }

    #[test]
    fn the_shares_of_all_threads_add_up() {
        let of = |cost, threads: &[(u64, u64)]| shares(cost, threads.iter().copied());
        assert_eq!(of(100, &[(1, 500), (1, 500), (1, 500)]), [33, 33, 34]);
        assert_eq!(of(100, &[(3, 500), (1, 500)]), [75, 25]);
        assert_eq!(of(0, &[(0, 0), (5, 500)]), [0, 0]);
        assert_eq!(of(u64::MAX, &[(u64::MAX, u64::MAX), (u64::MAX, 0)]), [u64::MAX, 0]);
        assert_eq!(of(5, &[]), [0; 0]);
    }

    #[test]
    fn no_thread_gets_more_taken_off_than_it_has_time() {
        let of = |cost, threads: &[(u64, u64)]| shares(cost, threads.iter().copied());
        // The rest falls to who can bear it.
        assert_eq!(of(100, &[(8, 30), (2, 500), (0, 7)]), [30, 70, 0]);
        // Read at slightly different times.
        assert_eq!(of(100, &[(8, 30), (2, 40)]), [30, 40]);
        assert_eq!(of(100, &[(0, 40)]), [40]);
    }
}
