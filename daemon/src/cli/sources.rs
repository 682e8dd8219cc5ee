//! Runs that are kept, as they are named on the command line: the same by every command that takes them.

use std::path::{Path, PathBuf};

use clap::Args;
use mpiprobe_discover::with_callers_rights;
use mpiprobe_report::present::recording::At;
use mpiprobe_report::{Part, Source, SourceError, Span};
use thiserror::Error;

use crate::session::wrapped::{TablesError, kept_tables};

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

/// Opens one run: recordings, profiles as JSON, directories of tables; several are parts of one job.
pub(super) fn open_source(paths: &[PathBuf], span: Span, any_owner: bool) -> Result<Source, OpenError> {
    let part = |path: &PathBuf| -> Result<Part, OpenError> {
        if !is_directory(path) {
            return Ok(Part::open(path)?);
        }
        Ok(Part::of_profile(path.display().to_string(), kept_tables(path, any_owner)?))
    };
    let parts = paths.iter().map(part).collect::<Result<_, _>>()?;
    Ok(Source::of_parts(parts, span)?)
}

fn is_directory(path: &Path) -> bool {
    with_callers_rights(|| path.metadata()).is_ok_and(|found| found.is_dir())
}
