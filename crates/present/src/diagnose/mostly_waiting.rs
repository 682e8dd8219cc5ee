//! Ranks that are mostly in MPI.

use mpiprobe_functions::Group;
use mpiprobe_model::{FunctionProfile, Profile, analyse::Change};

use super::{Diagnosis, SHORTEST_NS};
use crate::units::percent;

/// Of all time, per cent.
const MOST: f64 = 50.0;

#[derive(Debug)]
pub(super) struct MostlyWaiting;

impl Diagnosis for MostlyWaiting {
    fn name(&self) -> &'static str {
        "mostly in MPI"
    }

    fn meaning(&self) -> &'static str {
        "Ranks communicate, or wait for others, longer than they compute."
    }

    fn advice(&self) -> &'static str {
        "Use fewer ranks, overlap communication with computing, or see whom they wait for."
    }

    fn find(&self, profile: &Profile) -> Option<String> {
        let share = Change::since(None, profile).communication_percent()?;
        if share < MOST || profile.observed_ns < SHORTEST_NS {
            return None;
        }
        let time = |function: &&FunctionProfile| function.all.spent_ns();
        // Fewer ranks would start and end no faster.
        let is_startup = |function: &&FunctionProfile| function.all.group == Group::InitFinalize.title();
        let most = profile.functions.iter().filter(|function| !is_startup(function)).max_by_key(time)?;
        Some(format!("{} % of the time, most of it in {}", percent(share), most.all.name))
    }
}
