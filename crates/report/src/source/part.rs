//! What one run, or its part on one node, is kept in.

use std::{io, os::unix::fs::FileExt as _, path::Path};

use crate::present::recording::{Recording, RecordingError, Sums};
use jiff::Timestamp;
use mpiprobe_discover::{files::with_callers_rights, open_regular, printable};
use mpiprobe_model::Profile;
use std::os::unix::ffi::OsStrExt as _;

use super::{SourceError, json::JsonFile};

/// A file, or a profile that was made of tables.
#[derive(Debug)]
pub struct Part {
    name: String,
    kept: Kept,
    /// Beginning of observation.
    began: Option<Timestamp>,
}

#[derive(Debug)]
enum Kept {
    Recording(Recording),
    Json(JsonFile),
    Profile(Box<Profile>),
}

impl Part {
    /// A recording, or profiles as JSON, told by how the file begins.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let name = printable(path.as_os_str().as_bytes());
        let foreign = match Recording::open(path) {
            Ok(recording) => {
                let began = recording.began();
                return Ok(Self { name, kept: Kept::Recording(recording), began });
            }
            Err(error @ RecordingError::Foreign(_)) => error,
            Err(RecordingError::Read { path, source }) => return Err(SourceError::Read { path, source }),
            Err(error) => return Err(error.into()),
        };
        drop(foreign);
        let cannot_read = |source: io::Error| SourceError::Read { path: path.into(), source };
        let file = with_callers_rights(|| open_regular(path)).map_err(cannot_read)?;
        let mut start = [0; 64];
        let read = file.read_at(&mut start, 0).map_err(cannot_read)?;
        match start.iter().take(read).find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') => {}
            Some(_) => return Err(SourceError::Foreign(path.into())),
            None => return Err(SourceError::Empty(path.into())),
        }
        let json = JsonFile::open(path, file)?;
        let began = json.profile(json.len() - 1)?.began.parse().ok();
        Ok(Self { name, kept: Kept::Json(json), began })
    }

    /// A profile of something else, such as a directory of tables.
    pub fn of_profile(name: impl Into<String>, profile: Profile) -> Self {
        Self { name: name.into(), began: profile.began.parse().ok(), kept: Kept::Profile(Box::new(profile)) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn notes(&self) -> &[String] {
        match &self.kept {
            Kept::Recording(recording) => recording.notes(),
            Kept::Json(json) => json.notes(),
            Kept::Profile(_) => &[],
        }
    }

    pub(super) fn began(&self) -> Option<Timestamp> {
        self.began
    }

    /// How many moments it has; at least one.
    pub(super) fn len(&self) -> usize {
        match &self.kept {
            Kept::Recording(recording) => recording.len(),
            Kept::Json(json) => json.len(),
            Kept::Profile(_) => 1,
        }
    }

    /// Time of a moment since the beginning of its observation, ns.
    pub(super) fn at_ns(&self, index: usize) -> u64 {
        match &self.kept {
            Kept::Recording(recording) => recording.at_ns(index),
            Kept::Json(json) => json.at_ns(index),
            Kept::Profile(profile) => profile.observed_ns,
        }
    }

    pub(super) fn profile(&self, index: usize) -> Result<Profile, SourceError> {
        match &self.kept {
            Kept::Recording(recording) => Ok(recording.profile(index)?),
            Kept::Json(json) => json.profile(index),
            Kept::Profile(profile) => Ok((**profile).clone()),
        }
    }

    /// `None`: they were not recorded.
    pub(super) fn sums(&self, index: usize) -> Option<Sums> {
        match &self.kept {
            Kept::Recording(recording) => recording.sums(index),
            Kept::Json(_) | Kept::Profile(_) => None,
        }
    }

    /// Whether they were recorded of all moments.
    pub(super) fn has_sums(&self) -> bool {
        matches!(&self.kept, Kept::Recording(recording) if recording.has_sums())
    }

    /// Of a profile as JSON; 0: not known.
    pub(super) fn bytes(&self, index: usize) -> u64 {
        match &self.kept {
            Kept::Recording(recording) => recording.bytes(index),
            Kept::Json(json) => json.bytes(index),
            Kept::Profile(_) => 0,
        }
    }
}
