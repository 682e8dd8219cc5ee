//! Ranks that wait for each other.

use mpiprobe_model::{Profile, analyse::waiting};

use super::Diagnosis;
use crate::circle;

#[derive(Debug)]
pub(super) struct Deadlock;

impl Diagnosis for Deadlock {
    fn name(&self) -> &'static str {
        "deadlock"
    }

    fn meaning(&self) -> &'static str {
        "Each of these ranks waits for the next one, the last for the first: none of them can go on."
    }

    fn advice(&self) -> &'static str {
        "Change the order of sends and receives in one of them, or use MPI_Sendrecv, or nonblocking calls."
    }

    fn find(&self, profile: &Profile) -> Option<String> {
        let circles = waiting(profile).circles;
        let round = circle(profile, circles.first()?);
        let more = circles.len() - 1;
        Some(if more > 0 { format!("{round}, and {more} more such circles") } else { round })
    }
}
