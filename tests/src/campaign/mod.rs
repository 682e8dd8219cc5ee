//! Long runs, repeated until something breaks: in full by `src/bin/soak.rs`, in a short form by the tests.

pub mod any;
mod beside;
pub mod compare;
mod cycles;
pub mod hang;
pub mod kernels;
mod kills;
pub mod odd;
mod processes;
pub mod random;
mod requests;
mod short;
pub mod traffic;
mod visitors;

use thiserror::Error;

pub use cycles::{CyclesReport, cycles};
pub use kills::killed_in_flight;
pub use processes::{ProcessesReport, processes};
pub use requests::{PYTHON, RequestsReport, requests};
pub use short::{Lacks, ShortReport, short};
pub use visitors::visitors;

use crate::job::JobError;
use crate::profiler::{Ended, Profile, ProfilerError};
use crate::truth::TruthError;

/// What broke.
#[derive(Debug, Error)]
pub enum CampaignError {
    #[error(transparent)]
    Job(#[from] JobError),
    #[error(transparent)]
    Truth(#[from] TruthError),
    #[error(transparent)]
    Profiler(#[from] ProfilerError),
    #[error("round {round}: {what}")]
    Wrong { round: u32, what: String },
}

impl CampaignError {
    fn wrong(round: u32, what: impl Into<String>) -> Self {
        Self::Wrong { round, what: what.into() }
    }
}

/// The profile, if it is complete and mpiprobe says so.
fn complete(ended: &Ended, round: u32) -> Result<Profile, CampaignError> {
    let profile = ended.profile()?;
    if profile.complete && ended.status.success() {
        return Ok(profile);
    }
    Err(CampaignError::wrong(round, format!("not complete\n{}", ended.printed())))
}
