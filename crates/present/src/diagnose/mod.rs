//! What is probably wrong with a job, each as a diagnosis of its own: what was found, what it means, what to do.

mod deadlock;
mod imbalance;
mod long_call;
mod losses;
mod mostly_waiting;
mod own_cost;
mod polling;
mod requests;
#[cfg(test)]
mod tests;
mod tiny_io;
mod tiny_messages;

use mpiprobe_model::{Profile, Warning};

/// Looks for one thing.
pub trait Diagnosis: Sync {
    /// In a word or two.
    fn name(&self) -> &'static str;

    /// What it means.
    fn meaning(&self) -> &'static str;

    /// What to do about it.
    fn advice(&self) -> &'static str;

    /// What was found in a profile, with its figures; `None`: nothing.
    fn find(&self, profile: &Profile) -> Option<String>;
}

/// All of them, the gravest first.
pub const DIAGNOSES: &[&dyn Diagnosis] = &[
    &deadlock::Deadlock,
    &losses::Losses,
    &requests::Requests,
    &long_call::LongCall,
    &imbalance::Imbalance,
    &mostly_waiting::MostlyWaiting,
    &polling::Polling,
    &tiny_messages::TinyMessages,
    &tiny_io::TinyIo,
    &own_cost::OwnCost,
];

/// Ratios mean nothing of a shorter observation, ns.
const SHORTEST_NS: u64 = 1_000_000_000;

/// What is found in a profile, the gravest first.
pub fn warnings(profile: &Profile) -> Vec<Warning> {
    let warning = |diagnosis: &&dyn Diagnosis| {
        let found = diagnosis.find(profile)?;
        let (name, meaning, advice) = (diagnosis.name(), diagnosis.meaning(), diagnosis.advice());
        Some(Warning { name, found, meaning, advice })
    };
    DIAGNOSES.iter().filter_map(warning).collect()
}

/// Calls or messages of a second of observation.
fn per_second(profile: &Profile, number: u64) -> f64 {
    number as f64 / (profile.observed_ns.max(1) as f64 / 1e9)
}
