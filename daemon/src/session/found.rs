//! What it means that nobody was found.

use super::SessionError;
use crate::discover::{SelectError, Selection};

/// Nobody there is no error for those who wait.
pub(super) fn found(selected: Result<Selection, SelectError>, wait: bool) -> Result<Option<Selection>, SessionError> {
    match selected {
        Ok(selection) => Ok(Some(selection)),
        Err(
            SelectError::NoSuchName { .. }
            | SelectError::NotMpi { .. }
            | SelectError::NoMpi { .. }
            | SelectError::JustAppeared { .. },
        ) if wait => Ok(None),
        Err(error) => Err(error.into()),
    }
}
