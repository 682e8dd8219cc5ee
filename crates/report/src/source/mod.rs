//! One run, whatever it is kept in.

mod error;
mod json;
mod moments;
mod part;
mod timeline;

use std::{ops::Deref, path::PathBuf};

use crate::present::recording::At;
use mpiprobe_model::{Profile, analyse::between};

pub use self::{error::SourceError, moments::Moments, part::Part};

/// Which part of a run is meant; all of it without any of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// From the beginning up to this moment.
    pub at: Option<At>,
    /// What has happened since this moment; `None`: since the beginning.
    pub from: Option<At>,
    /// What had happened until this moment; `None`: until the last one.
    pub until: Option<At>,
}

/// One run: a recording, profiles as JSON, tables, or several of these that are of one job. Its [`Moments`], and what has happened in
/// the span that was chosen.
#[derive(Debug)]
pub struct Source {
    moments: Moments,
    profile: Profile,
}

impl Source {
    /// Of files: recordings, and profiles as JSON. Several are parts of one job, of a node each.
    pub fn open(paths: &[PathBuf], span: Span) -> Result<Self, SourceError> {
        Self::of_parts(paths.iter().map(|path| Part::open(path)).collect::<Result<_, _>>()?, span)
    }

    /// Of a single profile, such as that of a directory of tables.
    pub fn of_profile(name: impl Into<String>, profile: Profile) -> Self {
        Self { moments: Moments::of_part(Part::of_profile(name, profile.clone())), profile }
    }

    /// Of parts of one job.
    pub fn of_parts(parts: Vec<Part>, span: Span) -> Result<Self, SourceError> {
        let moments = Moments::of_parts(parts, span)?;
        let until = moments.moment(moments.count().saturating_sub(1))?;
        let profile = if moments.begin_later() { between(&moments.moment(0)?, &until) } else { until };
        Ok(Self { moments, profile })
    }

    /// What has happened in the span that was chosen: without one, in all of the run.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }
}

impl Deref for Source {
    type Target = Moments;

    fn deref(&self) -> &Moments {
        &self.moments
    }
}

#[cfg(test)]
mod tests;
