//! Work that is not evenly divided.

use mpiprobe_model::{Profile, analyse::Change};

use super::{Diagnosis, SHORTEST_NS};
use crate::units::{or_unknown, percent};

/// Less is no longer good.
const LEAST_BALANCE: f64 = 0.8;

#[derive(Debug)]
pub(super) struct Imbalance;

impl Diagnosis for Imbalance {
    fn name(&self) -> &'static str {
        "imbalance"
    }

    fn meaning(&self) -> &'static str {
        "Some ranks compute much longer than the average, and the others wait for them."
    }

    fn advice(&self) -> &'static str {
        "Divide the work more evenly; look at what the rank with most to do has more of."
    }

    fn find(&self, profile: &Profile) -> Option<String> {
        let balance = profile.totals.efficiency.filter(|_| profile.observed_ns >= SHORTEST_NS)?.load_balance;
        if balance >= LEAST_BALANCE || profile.ranks.len() < 2 {
            return None;
        }
        let (place, share) = Change::since(None, profile).busiest()?;
        let (of, share) = (or_unknown(profile.ranks.get(place)?.rank), percent(share));
        Some(format!("load balance is {} %; rank {of} computes most, {share} % of its time", percent(100.0 * balance)))
    }
}
