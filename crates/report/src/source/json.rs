//! Profiles as JSON (`--json`): one, or several one after the other, of which the last is final. They are read when they are asked for.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use crate::present::recording::{FrameError, profile_of_json};
use mpiprobe_model::{Profile, SCHEMA};
use serde::Deserialize;

use super::SourceError;

/// No profile takes more, bytes; the same as in a recording.
const LONGEST: u64 = 1 << 29;
/// As many are remembered.
const MOST: usize = 1 << 22;

/// Of each profile, what is needed to find it; all else is read over.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    schema: String,
    #[serde(default)]
    observed_ns: u64,
}

/// A file, and where in it which profile is.
#[derive(Debug)]
pub(super) struct JsonFile {
    path: PathBuf,
    file: File,
    /// Where it begins and ends, bytes, and the time since the beginning of observation, ns. At least one.
    profiles: Vec<(u64, u64, u64)>,
    notes: Vec<String>,
}

impl JsonFile {
    pub(super) fn open(path: &Path, file: File) -> Result<Self, SourceError> {
        let mut notes = Vec::new();
        let length = file.metadata().map_err(|source| SourceError::Read { path: path.into(), source })?.len();
        let mut profiles: Vec<(u64, u64, u64)> = Vec::new();
        let reader = BufReader::with_capacity(1 << 16, (&file).take(length));
        let mut heads = serde_json::Deserializer::from_reader(reader).into_iter::<Head>();
        let mut begin = 0;
        while let Some(head) = heads.next() {
            match head {
                // Somebody else's.
                Ok(head) if head.schema.is_empty() => return Err(SourceError::Foreign(path.into())),
                Ok(head) if head.schema != SCHEMA => {
                    let found: String = mpiprobe_discover::printable(head.schema.as_bytes()).chars().take(40).collect();
                    return Err(SourceError::Schema { path: path.into(), found });
                }
                Ok(head) => {
                    let end = heads.byte_offset() as u64;
                    profiles.push((begin, end, head.observed_ns));
                    begin = end;
                }
                Err(error) if profiles.is_empty() && !error.is_io() => {
                    return Err(SourceError::NoJson { path: path.into(), offset: begin, reason: error });
                }
                Err(error) if error.is_eof() => {
                    notes.push(format!(
                        "profile {} is cut off and left out: mpiprobe was killed, or writes still",
                        profiles.len() + 1
                    ));
                    break;
                }
                Err(error) => {
                    notes.push(format!("from byte {begin} on it is damaged, and left out: {error}"));
                    break;
                }
            }
            if profiles.len() >= MOST {
                notes.push(format!("only its first {MOST} profiles are read"));
                break;
            }
        }
        if profiles.is_empty() {
            return Err(SourceError::Empty(path.into()));
        }
        // Times that go back are of two observations that somebody has put into one file.
        if profiles.windows(2).any(|pair| matches!(pair, [one, other] if one.2 > other.2)) {
            notes.push("its profiles are not in the order of their times: the last one is taken alone".into());
            profiles.drain(..profiles.len() - 1);
        }
        Ok(Self { path: path.into(), file, profiles, notes })
    }

    pub(super) fn len(&self) -> usize {
        self.profiles.len()
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    pub(super) fn at_ns(&self, index: usize) -> u64 {
        self.profiles.get(index).or(self.profiles.last()).map_or(0, |(.., at_ns)| *at_ns)
    }

    pub(super) fn bytes(&self, index: usize) -> u64 {
        self.profiles.get(index).map_or(0, |(begin, end, _)| end.saturating_sub(*begin))
    }

    pub(super) fn profile(&self, index: usize) -> Result<Profile, SourceError> {
        let (begin, end, _) = self.profiles.get(index).copied().unwrap_or_default();
        let failed = |reason| SourceError::Json { path: self.path.clone(), number: index + 1, offset: begin, reason };
        let length = end.saturating_sub(begin);
        if length > LONGEST {
            return Err(failed(FrameError::TooLarge));
        }
        profile_of_json(Part { file: &self.file, at: begin }.take(length)).map_err(failed)
    }
}

/// A file from a place on.
struct Part<'a> {
    file: &'a File,
    at: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(to, self.at)?;
        self.at = self.at.saturating_add(length as u64);
        Ok(length)
    }
}
