//! Observation that costs much.

use mpiprobe_model::Profile;

use super::Diagnosis;
use crate::units::{duration, percent};

/// Of the job's time, per cent.
const MUCH: f64 = 5.0;

#[derive(Debug)]
pub(super) struct OwnCost;

impl Diagnosis for OwnCost {
    fn name(&self) -> &'static str {
        "high own cost"
    }

    fn meaning(&self) -> &'static str {
        "The job calls MPI so often that observing it slows it down: figures are of the slower job."
    }

    fn advice(&self) -> &'static str {
        "Leave out what is called most (--functions default,-NAME), or do without --traffic."
    }

    fn find(&self, profile: &Profile) -> Option<String> {
        let cost = &profile.own_cost;
        let share = cost.percent_of_wall;
        (share >= MUCH)
            .then(|| format!("{} % of the job's time, {} a call", percent(share), duration(cost.per_call_ns)))
    }
}
