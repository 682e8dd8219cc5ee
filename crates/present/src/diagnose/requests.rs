//! Requests that were never completed.

use mpiprobe_model::{Profile, RankState};

use super::Diagnosis;
use crate::units::or_unknown;

#[derive(Debug)]
pub(super) struct Requests;

impl Diagnosis for Requests {
    fn name(&self) -> &'static str {
        "requests never completed"
    }

    fn meaning(&self) -> &'static str {
        "Without MPI_Wait or MPI_Test nobody knows whether the data has arrived or the buffer may be used again."
    }

    fn advice(&self) -> &'static str {
        "Complete every request, for example by MPI_Waitall before the buffers are used."
    }

    fn find(&self, profile: &Profile) -> Option<String> {
        let left = profile.ranks.iter().filter(|rank| rank.state == RankState::Ended).filter_map(|rank| {
            let pending = &rank.traffic.as_ref()?.pending;
            Some((rank, pending.first()?, pending.len()))
        });
        let number: usize = left.clone().map(|(_, _, number)| number).sum();
        let (rank, first, _) = left.clone().next()?;
        let ranks = left.count();
        let site = first.site.as_ref().map(|site| format!(" at {site}")).unwrap_or_default();
        let of = or_unknown(rank.rank);
        Some(format!("{ranks} ranks ended with {number} requests, such as {}{site} of rank {of}", first.function))
    }
}
