//! The profile of tables that were kept: of one node or several, of processes that have ended or still run.

use std::path::PathBuf;

use mpiprobe_discover::{ProcRoot, ProcRootError};
use mpiprobe_model::{EndReason, analyse::Expected, filter::Filter};
use mpiprobe_present::{Output, OutputError};
use thiserror::Error;

use super::{
    images::{Images, Keeping},
    profile::{RunFacts, profile},
};
use crate::{
    preload::DirectoryError,
    session::{
        options::Outcome,
        profile_file::{Form, ProfileTo, WriteError, made, text, write_file},
        sites::Sites,
    },
};

/// One report.
#[derive(Debug)]
pub struct ReportOptions {
    pub directory: PathBuf,
    pub json: bool,
    /// Rows that are shown.
    pub filter: Option<Filter>,
    /// Where the profile goes; `None`: standard output.
    pub profile: Option<ProfileTo>,
    /// Tables of other users are taken in as well.
    pub any_owner: bool,
}

/// Why there is no report.
#[derive(Debug, Error)]
pub enum ReportError {
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Proc(#[from] ProcRootError),
    #[error(
        "{} has no tables of MPI processes; they are where `mpiprobe run --output DIR -- COMMAND` has put them, in files \
         that end in {}", .0.display(), mpiprobe_common::file::SUFFIX
    )]
    Empty(PathBuf),
    #[error("no tables in {} can be read:\n  {}", .directory.display(), .refused.join("\n  "))]
    NoneReadable { directory: PathBuf, refused: Vec<String> },
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Puts all tables of a directory together and prints their profile.
pub fn report(options: &ReportOptions) -> Result<Outcome, ReportError> {
    let file = made(options.profile.as_ref())?;
    let mut images = Images::new(ProcRoot::system()?);
    images.keep(Keeping::Closed);
    if options.any_owner {
        images.take_of_any_owner();
    }
    let mut sites = Sites::default();
    for slot in images.take_all(&options.directory)? {
        if let Some(process) = images.process(slot) {
            sites.add(slot, process);
        }
    }
    if images.is_empty() {
        let (directory, refused) = (options.directory.clone(), images.refused().collect::<Vec<_>>());
        return Err(if refused.is_empty() {
            ReportError::Empty(directory)
        } else {
            ReportError::NoneReadable { directory, refused }
        });
    }
    let end = (!images.is_anybody_left()).then_some(EndReason::TargetsEnded);
    let expected = if end.is_some() { Expected::AllRanks } else { Expected::Some };
    let facts = RunFacts { end, expected, names_sites: true, is_last: true, ..RunFacts::default() };
    let profile = profile(&mut images, &mut sites, facts);
    let text = text(&profile, Form { json: options.json, filter: options.filter.as_ref() })?;
    match file {
        Some(file) => write_file(&text, file)?,
        None => Output.text(&text)?,
    }
    Ok(if profile.complete { Outcome::Complete } else { Outcome::Incomplete })
}
