//! How well processors are used: the efficiencies of the POP Centre of Excellence (co-design.pop-coe.eu).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Of the ranks observed; each between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Efficiency {
    /// Useful time of all ranks over what it could be: `load_balance` × `communication`.
    pub parallel: f64,
    /// Mean over maximum of useful time: below 1 where some ranks have more to do than others.
    pub load_balance: f64,
    /// Maximum of useful time over the wall time: below 1 where even the busiest rank is in MPI.
    pub communication: f64,
}

/// What a rank's time was spent on, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    pub wall_ns: u64,
    /// Of all threads that use MPI.
    pub thread_wall_ns: u64,
    /// In MPI, and of that what starts and ends MPI.
    pub mpi_ns: u64,
    pub startup_ns: u64,
    /// Of the wall time, what may have been spent in a call that nobody saw begin.
    pub unseen_ns: u64,
    /// Calls that are in no time, because nobody saw them return.
    pub untimed_calls: u64,
}

impl Spent {
    /// Whether so much of the time is known that shares of it are.
    pub fn is_known(&self) -> bool {
        self.untimed_calls == 0 && self.unseen_ns.saturating_mul(10) <= self.wall_ns
    }

    /// Time in MPI, per cent of the time of the threads that use it; 0 of no time. `None`: not known.
    pub fn mpi_percent(&self) -> Option<f64> {
        self.is_known().then(|| 100.0 * share(self.mpi_ns, self.thread_wall_ns))
    }

    /// Time outside MPI, of several threads the mean, and the time that it is a part of, ns: both without what starts and ends MPI,
    /// which is the system's work rather than the program's. `None`: not known.
    pub fn useful(&self) -> Option<(f64, f64)> {
        let without = |ns: u64| ns.saturating_sub(self.startup_ns);
        let wall = without(self.wall_ns) as f64;
        let in_mpi = share(without(self.mpi_ns), without(self.thread_wall_ns));
        self.is_known().then_some((wall * (1.0 - in_mpi), wall))
    }
}

/// Of no time, nothing.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}

impl Efficiency {
    /// Of ranks whose time was spent so; `None` if that is not known of one of them, or if none did anything useful.
    pub fn of_ranks(ranks: impl IntoIterator<Item = Spent>) -> Option<Self> {
        let useful: Option<Vec<_>> = ranks.into_iter().map(|spent| spent.useful()).collect();
        Self::of(useful?)
    }

    /// From useful time (outside MPI) and wall time of each rank, ns; a rank without wall time was not there and does not count.
    /// `None` without any useful time.
    pub fn of(ranks: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let (mut number, mut sum, mut most, mut wall) = (0.0, 0.0, 0.0_f64, 0.0_f64);
        for (useful, rank_wall) in ranks.into_iter().filter(|(_, rank_wall)| *rank_wall > 0.0) {
            number += 1.0;
            sum += useful;
            most = most.max(useful);
            wall = wall.max(rank_wall);
        }
        if most <= 0.0 || wall <= 0.0 {
            return None;
        }
        let (load_balance, communication) = (sum / number / most, most / wall);
        Some(Self { parallel: load_balance * communication, load_balance, communication })
    }
}

/// The time since the profile before: a window that moves on with each profile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// From that profile to this one, ns; in the first one, since the beginning of observation.
    pub span_ns: u64,
    /// Completed calls of all ranks.
    pub calls: u64,
    /// Time in MPI of all ranks over wall time of all ranks, per cent; `null`: not known.
    pub mpi_percent_of_all: Option<f64>,
    /// `null` where nobody was seen to do anything but MPI, or where it is not known.
    pub efficiency: Option<Efficiency>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPENT: Spent =
        Spent { wall_ns: 1000, thread_wall_ns: 1000, mpi_ns: 0, startup_ns: 0, unseen_ns: 0, untimed_calls: 0 };

    /// Invariant UNSEEN-IS-UNKNOWN.
    #[test]
    fn what_may_have_been_in_a_call_is_not_taken_for_useful() {
        assert_eq!(Spent { unseen_ns: 1000, ..SPENT }.mpi_percent(), None);
        assert_eq!(Spent { unseen_ns: 101, ..SPENT }.useful(), None);
        assert_eq!(Spent { unseen_ns: 100, mpi_ns: 500, ..SPENT }.mpi_percent(), Some(50.0));
        assert_eq!(Efficiency::of_ranks([SPENT, Spent { unseen_ns: 1000, ..SPENT }]), None);
        assert!(Efficiency::of_ranks([SPENT, SPENT]).is_some());
        assert_eq!(Spent::default().mpi_percent(), Some(0.0));
    }

    /// Invariant NO-TIME-NO-ZERO.
    #[test]
    fn time_in_calls_that_nobody_saw_return_is_not_taken_for_useful() {
        let untimed = Spent { untimed_calls: 1, ..SPENT };
        assert_eq!((untimed.mpi_percent(), untimed.useful()), (None, None));
        assert_eq!(Efficiency::of_ranks([SPENT, untimed]), None);
    }

    #[test]
    fn starting_and_ending_mpi_is_nobodys_inefficiency() {
        let of = |startup_ns, mpi_ns| Spent { mpi_ns, startup_ns, ..SPENT };
        assert_eq!(of(800, 800).useful(), Some((200.0, 200.0)));
        assert_eq!(of(800, 900).useful(), Some((100.0, 200.0)));
        assert_eq!(of(1000, 1000).useful(), Some((0.0, 0.0)));
        let found = Efficiency::of_ranks([of(800, 800), of(0, 0)]).unwrap();
        assert!((found.communication - 1.0).abs() < 1e-12, "{}", found.communication);
        // Still in MPI_Finalize.
        assert_eq!(of(800, 800).mpi_percent(), Some(80.0));
    }

    #[test]
    fn a_rank_with_more_to_do_is_imbalance_and_waiting_is_communication() {
        let found = Efficiency::of([(50.0, 100.0), (100.0, 100.0)]).unwrap();
        assert_eq!((found.load_balance, found.communication, found.parallel), (0.75, 1.0, 0.75));
        let found = Efficiency::of([(50.0, 100.0), (50.0, 100.0)]).unwrap();
        assert_eq!((found.load_balance, found.communication, found.parallel), (1.0, 0.5, 0.5));
    }

    #[test]
    fn who_was_not_there_does_not_count() {
        assert_eq!(Efficiency::of([(0.0, 0.0), (50.0, 100.0)]), Efficiency::of([(50.0, 100.0)]));
    }

    #[test]
    fn of_nothing_there_is_none() {
        assert_eq!(Efficiency::of([]), None);
        assert_eq!(Efficiency::of([(0.0, 100.0)]), None);
    }
}
