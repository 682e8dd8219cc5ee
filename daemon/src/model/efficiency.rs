//! How well processors are used: the efficiencies of the POP Centre of Excellence (co-design.pop-coe.eu).

use serde::{Deserialize, Serialize};

/// Of the ranks observed; each between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Efficiency {
    /// Useful time of all ranks over what it could be: `load_balance` × `communication`.
    pub parallel: f64,
    /// Mean over maximum of useful time: below 1 where some ranks have more to do than others.
    pub load_balance: f64,
    /// Maximum of useful time over the wall time: below 1 where even the busiest rank is in MPI.
    pub communication: f64,
}

impl Efficiency {
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// From that profile to this one, ns; in the first one, since the beginning of observation.
    pub span_ns: u64,
    /// Completed calls of all ranks.
    pub calls: u64,
    /// Time in MPI of all ranks over wall time of all ranks, per cent.
    pub mpi_percent_of_all: f64,
    /// `null` where nobody was seen to do anything but MPI.
    pub efficiency: Option<Efficiency>,
}

#[cfg(test)]
mod tests {
    use super::*;

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
