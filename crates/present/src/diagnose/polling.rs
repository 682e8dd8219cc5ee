//! Asking again and again.

use mpiprobe_model::Profile;

use super::{Diagnosis, per_second};
use crate::units::{percent, rate};

/// Calls a second, of all ranks together.
const MANY: f64 = 10_000.0;
/// Of the wall time of all ranks, per cent.
const MUCH: f64 = 10.0;

#[derive(Debug)]
pub(super) struct Polling;

impl Diagnosis for Polling {
    fn name(&self) -> &'static str {
        "polling"
    }

    fn meaning(&self) -> &'static str {
        "A loop asks whether something has happened, and takes processor time that others could use."
    }

    fn advice(&self) -> &'static str {
        "Compute something between two questions, or wait by a call that blocks (MPI_Wait, MPI_Probe)."
    }

    fn find(&self, profile: &Profile) -> Option<String> {
        let polls = |name| mpiprobe_functions::by_name(name).is_some_and(|id| id.function().polling);
        let asked = profile.functions.iter().filter(|function| polls(function.all.name));
        let most = asked.max_by_key(|function| function.all.time_ns)?;
        let calls = per_second(profile, most.all.calls);
        let share = most.all.wall_percent;
        (calls >= MANY && share >= MUCH).then(|| {
            format!("{} is called {}/s and takes {} % of the time", most.all.name, rate(calls), percent(share))
        })
    }
}
