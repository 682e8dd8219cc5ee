//! Whose processes are observed when more come: those of the jobs chosen at the beginning.

use mpiprobe_discover::{JobChoice, JobKey, MpiProcess};

/// The jobs under observation.
#[derive(Debug)]
pub(super) enum ChosenJobs {
    All,
    /// What the user typed after `--job`.
    Named(String),
    /// The one job there was; `None` until there is one.
    One(Option<JobKey>),
}

impl ChosenJobs {
    pub(super) fn new(choice: &JobChoice) -> Self {
        match choice {
            JobChoice::All => Self::All,
            JobChoice::Named(name) => Self::Named(name.clone()),
            JobChoice::Only => Self::One(None),
        }
    }

    /// Whether it is settled which they are.
    pub(super) fn are_chosen(&self) -> bool {
        !matches!(self, Self::One(None))
    }

    /// Whether a process belongs to them. The first one decides where there was none.
    pub(super) fn admit(&mut self, process: &MpiProcess) -> bool {
        match self {
            Self::All => true,
            Self::Named(name) => process.is_of_job(name),
            Self::One(chosen) => *chosen.get_or_insert_with(|| process.job.clone()) == process.job,
        }
    }

    /// The same as a choice for a further look at the node.
    pub(super) fn choice(&self) -> JobChoice {
        match self {
            Self::All => JobChoice::All,
            Self::Named(name) => JobChoice::Named(name.clone()),
            Self::One(Some(job)) => JobChoice::Named(job.to_string()),
            Self::One(None) => JobChoice::Only,
        }
    }
}
