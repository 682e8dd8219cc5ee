//! A finished profile as text, and as a file.

use std::{
    io,
    path::{Path, PathBuf},
};

use mpiprobe_discover::files::NewFile;
use mpiprobe_model::{Profile, analyse::ProfileOutput, filter::Filter};
use mpiprobe_report::present::{OutputError, TextOptions, filtered, findings};

/// In what form a finished profile is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form<'a> {
    pub(super) json: bool,
    pub(super) filter: Option<&'a Filter>,
    pub(super) text: TextOptions,
}

/// A file for a profile.
#[derive(Clone, Debug)]
pub struct ProfileTo {
    pub path: PathBuf,
    pub mode: u32,
}

/// A profile that could not be put into its file.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{} exists already, and no profile overwrites a file: choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    #[error("cannot write the profile to {}: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl WriteError {
    /// Why `path` could not be made or written.
    pub fn new(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AlreadyExists => Self::Exists(path.into()),
            _ => Self::Write { path: path.into(), source },
        }
    }
}

pub(super) fn text(profile: &Profile, form: Form<'_>) -> Result<String, OutputError> {
    if form.json {
        let shown = filtered(profile, form.filter);
        let output = ProfileOutput::new(&shown, profile);
        return Ok(serde_json::to_string(&output).map_err(OutputError::Json)? + "\n");
    }
    Ok(mpiprobe_report::present::profile(&form.text, profile, &findings(profile), form.filter))
}

/// Makes the file, before there is anything to write.
pub fn create_file(to: &ProfileTo) -> Result<NewFile, WriteError> {
    NewFile::create(&to.path, to.mode).map_err(|source| WriteError::new(&to.path, source))
}

pub(super) fn write_file(text: &str, file: NewFile) -> Result<(), WriteError> {
    let path = file.path().to_owned();
    file.write(text).map_err(|source| WriteError::new(&path, source))
}
