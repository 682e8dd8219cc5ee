//! The profile of tables that were kept: of one node or several, of processes that have ended or still run.

use std::path::{Path, PathBuf};

use mpiprobe_discover::{ProcRoot, ProcRootError};
use mpiprobe_model::{EndReason, Profile, analyse::Expected};
use thiserror::Error;

use super::{
    images::{Images, Keeping},
    profile::{RunFacts, profile},
};
use crate::{preload::DirectoryError, session::sites::Sites};

/// Why there is no profile.
#[derive(Debug, Error)]
pub enum TablesError {
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Proc(#[from] ProcRootError),
    #[error(
        "{} has no tables of MPI processes; they are where `mpiprobe run --output DIR -- COMMAND` has put them, in files \
         that end in {}; and it has neither recordings (.rec) nor profiles (.json)", .0.display(), mpiprobe_common::file::SUFFIX
    )]
    Empty(PathBuf),
    #[error("no tables in {} can be read:\n  {}", .directory.display(), .refused.join("\n  "))]
    NoneReadable { directory: PathBuf, refused: Vec<String> },
}

/// Puts all tables of a directory together; with those of other users, who may have written anything into them, if they are wanted.
pub fn kept_tables(directory: &Path, any_owner: bool) -> Result<Profile, TablesError> {
    let mut images = Images::new(ProcRoot::system()?);
    images.keep(Keeping::Closed);
    if any_owner {
        images.take_of_any_owner();
    }
    let mut sites = Sites::default();
    for slot in images.take_all(directory)? {
        if let Some(process) = images.process(slot) {
            sites.add(slot, process);
        }
    }
    if images.is_empty() {
        let (directory, refused) = (directory.to_owned(), images.refused().collect::<Vec<_>>());
        return Err(if refused.is_empty() {
            TablesError::Empty(directory)
        } else {
            TablesError::NoneReadable { directory, refused }
        });
    }
    let end = (!images.is_anybody_left()).then_some(EndReason::TargetsEnded);
    let expected = if end.is_some() { Expected::AllRanks } else { Expected::Some };
    let facts = RunFacts { end, expected, names_sites: true, is_last: true, ..RunFacts::default() };
    Ok(profile(&mut images, &mut sites, facts))
}
