//! Runs that are kept, as they are named on the command line: the same by every command that takes them.

use std::path::{Path, PathBuf};

use clap::Args;
use mpiprobe_common::file::SUFFIX;
use mpiprobe_discover::with_callers_rights;
use mpiprobe_report::present::recording::At;
use mpiprobe_report::{Moments, Part, Source, SourceError, Span};
use thiserror::Error;

use crate::session::wrapped::{TablesError, kept_tables};

/// Of files in a directory that are recordings and profiles.
const ENDINGS: [&str; 2] = ["rec", "json"];

/// Which part of a run is meant.
#[derive(Args, Clone, Copy, Debug)]
pub struct SpanArguments {
    /// What had happened by this moment: 90s or +01:30 since the beginning, 12:34:56 by the clock (UTC), or #13 by its number.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["from", "until"], help_heading = "Span")]
    pub at: Option<At>,
    /// What has happened since this moment.
    #[arg(long, value_name = "TIME", help_heading = "Span")]
    pub from: Option<At>,
    /// What had happened until this moment.
    #[arg(long, value_name = "TIME", help_heading = "Span")]
    pub until: Option<At>,
}

impl From<SpanArguments> for Span {
    fn from(SpanArguments { at, from, until }: SpanArguments) -> Self {
        Self { at, from, until }
    }
}

/// Why a run cannot be read.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Tables(#[from] TablesError),
}

/// Opens one run: recordings, profiles as JSON, directories of tables, or of recordings and profiles; several are parts of one job.
pub(super) fn open_source(paths: &[PathBuf], span: Span, any_owner: bool) -> Result<Source, OpenError> {
    Ok(Source::of_parts(parts(paths, any_owner)?, span)?)
}

/// The same, of which nothing is read yet: of a damaged one, some moments may be whole.
pub(super) fn open_moments(paths: &[PathBuf], span: Span, any_owner: bool) -> Result<Moments, OpenError> {
    Ok(Moments::of_parts(parts(paths, any_owner)?, span)?)
}

fn parts(paths: &[PathBuf], any_owner: bool) -> Result<Vec<Part>, OpenError> {
    let mut parts = Vec::new();
    for path in paths {
        let files = if is_directory(path) { kept_in(path) } else { Some(vec![path.clone()]) };
        match files {
            Some(files) => {
                for file in files {
                    parts.push(Part::open(&file)?);
                }
            }
            None => parts.push(Part::of_profile(path.display().to_string(), kept_tables(path, any_owner)?)),
        }
    }
    Ok(parts)
}

fn is_directory(path: &Path) -> bool {
    with_callers_rights(|| path.metadata()).is_ok_and(|found| found.is_dir())
}

/// Recordings and profiles in a directory, in the order of their names, each of a node of one job; `None`: there are none, or there are
/// tables.
fn kept_in(directory: &Path) -> Option<Vec<PathBuf>> {
    let entries = with_callers_rights(|| directory.read_dir()).ok()?;
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let is_table = |path: &PathBuf| path.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes());
    let is_kept = |path: &PathBuf| path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
    let mut kept: Vec<PathBuf> = paths.iter().filter(|path| is_kept(path)).cloned().collect();
    kept.sort();
    (!kept.is_empty() && !paths.iter().any(is_table)).then_some(kept)
}
