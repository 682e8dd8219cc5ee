//! Counts that are not complete.

use mpiprobe_model::Profile;

use super::Diagnosis;

#[derive(Debug)]
pub(super) struct Losses;

impl Diagnosis for Losses {
    fn name(&self) -> &'static str {
        "incomplete"
    }

    fn meaning(&self) -> &'static str {
        "Something was not counted: figures are lower bounds."
    }

    fn advice(&self) -> &'static str {
        "Make the table larger that is named; `mpiprobe doctor` tells of other limits."
    }

    fn find(&self, profile: &Profile) -> Option<String> {
        (!profile.complete).then(|| profile.incomplete_because.join("; "))
    }
}
