//! What it means that nobody was found, and what it does not mean: the end of an observation.

use mpiprobe_discover::{JobChoice, SelectError, Selection};
use mpiprobe_report::present::say;

use super::{error::SessionError, jobs::ChosenJobs};

/// Nobody there is no error for those who wait.
pub(super) fn found(selected: Result<Selection, SelectError>, wait: bool) -> Result<Option<Selection>, SessionError> {
    match selected {
        Ok(selection) => Ok(Some(selection)),
        Err(error) if wait && is_nobody(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The same of a search during an observation, where other jobs of that name come and go. Whatever is the matter with those, what has
/// been counted stays. `again` looks for the processes of one job.
pub(super) fn found_meanwhile(
    selected: Result<Selection, SelectError>,
    jobs: &ChosenJobs,
    again: impl FnOnce(&JobChoice) -> Result<Selection, SelectError>,
) -> Option<Selection> {
    let selected = match selected {
        // Two have come since the last look: it is the first one that was waited for.
        Err(SelectError::SeveralJobs { jobs: found, .. }) if !jobs.are_chosen() => {
            // They are in the order of their lowest pids.
            let first = found.first()?.id.to_string();
            say(format_args!(
                "several jobs have come at once: {first} is observed; --job or --all-jobs chooses others"
            ));
            again(&JobChoice::Named(first))
        }
        selected => selected,
    };
    match selected {
        Ok(selection) => Some(selection),
        Err(error) => {
            if !is_nobody(&error) {
                tracing::warn!("not observed: {error}");
            }
            None
        }
    }
}

fn is_nobody(error: &SelectError) -> bool {
    matches!(
        error,
        SelectError::NoSuchName { .. }
            | SelectError::NotMpi { .. }
            | SelectError::NoMpi { .. }
            | SelectError::NoSuchJob { .. }
            | SelectError::JustAppeared { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpiprobe_elf::Architecture;

    fn others() -> SelectError {
        SelectError::NoSuchJob { what: "ring".into(), wanted: "ompi:1".into(), nearest: Vec::new(), jobs: Vec::new() }
    }

    #[test]
    fn for_those_who_wait_nobody_is_there_yet() {
        assert!(matches!(found(Err(SelectError::NoMpi { refused: 0, unanswered: Vec::new() }), true), Ok(None)));
        assert!(matches!(found(Err(others()), true), Ok(None)));
        assert!(found(Err(others()), false).is_err());
        assert!(found(Err(SelectError::Own { pid: 1 }), true).is_err());
    }

    /// Invariant OTHERS-COME-AND-GO.
    #[test]
    fn other_jobs_of_the_name_do_not_end_an_observation() {
        let none = |_: &JobChoice| panic!("nobody is looked for again");
        let several = || SelectError::SeveralJobs { what: "ring".into(), jobs: Vec::new() };
        let foreign = SelectError::Foreign { pid: 1, architecture: Architecture::NATIVE };
        let chosen = ChosenJobs::Named("ompi:1".into());
        for error in [others(), several(), foreign, SelectError::NoMpi { refused: 3, unanswered: Vec::new() }] {
            assert!(found_meanwhile(Err(error), &chosen, none).is_none());
        }
        assert!(found_meanwhile(Err(several()), &ChosenJobs::new(&JobChoice::Only), none).is_none());
    }
}
