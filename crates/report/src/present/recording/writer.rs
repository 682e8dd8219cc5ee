//! Appends moments to a file.

use std::{
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use mpiprobe_discover::files::create_new;
use mpiprobe_model::Profile;

use super::{
    RecordingError, Sums,
    chunk::ChunkKind,
    format::{End, Header, MAGIC, START, VERSION},
    payload::pack,
};

/// What has become of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    Written,
    /// The file would have become too long: it, and all that come later, are left out.
    BeyondLimit,
}

/// A recording that grows.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    /// Bytes written, all of them whole chunks.
    length: u64,
    /// Bytes that the file may have.
    limit: u64,
    /// Moments left out since the limit was reached.
    beyond_limit: u64,
}

impl Writer {
    /// Makes a new file of this mode. None is ever overwritten, nor a symbolic link followed.
    pub fn create(path: &Path, mode: u32, limit: u64) -> Result<Self, RecordingError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => RecordingError::Exists(path.into()),
            _ => RecordingError::Create { path: path.into(), source },
        };
        let mut file = create_new(path, mode).map_err(failed)?;
        let mut start = MAGIC.to_vec();
        start.extend(VERSION.to_le_bytes());
        file.write_all(&start).map_err(failed)?;
        Ok(Self { file, path: path.into(), length: START as u64, limit, beyond_limit: 0 })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same with another file.
    #[cfg(test)]
    pub(super) fn onto(self, file: File) -> Self {
        Self { file, ..self }
    }

    /// Adds a moment; before the first one, what is recorded.
    pub fn add(&mut self, profile: &Profile) -> Result<Added, RecordingError> {
        if self.beyond_limit > 0 {
            self.beyond_limit += 1;
            return Ok(Added::BeyondLimit);
        }
        if self.length == START as u64 {
            let header = Header {
                mpiprobe_version: profile.mpiprobe_version.to_owned(),
                host: profile.host.clone(),
                began: profile.began.clone(),
            };
            let chunk = pack(ChunkKind::Header, 0, &header).map_err(|error| self.failed(error))?;
            self.append(&chunk)?;
        }
        let at_ns = profile.observed_ns;
        let mut chunk = pack(ChunkKind::Frame, at_ns, profile).map_err(|error| self.failed(error))?;
        chunk.append(&mut pack(ChunkKind::Sums, at_ns, &Sums::of(profile)).map_err(|error| self.failed(error))?);
        if self.length + chunk.len() as u64 > self.limit {
            self.beyond_limit = 1;
            return Ok(Added::BeyondLimit);
        }
        self.append(&chunk)?;
        Ok(Added::Written)
    }

    /// Says at the end of the file that it is the end, and how many moments were skipped because it was written too slowly. Gives the
    /// number of those that were left out because of the limit.
    pub fn end(mut self, skipped: u64) -> Result<u64, RecordingError> {
        let end = End { skipped, beyond_limit: self.beyond_limit };
        let chunk = pack(ChunkKind::End, 0, &end).map_err(|error| self.failed(error))?;
        self.append(&chunk)?;
        Ok(self.beyond_limit)
    }

    /// At once, so that no moment is written in parts as long as there is room.
    fn append(&mut self, chunk: &[u8]) -> Result<(), RecordingError> {
        if let Err(error) = self.file.write_all(chunk) {
            // A part of it would be said to be damaged.
            let _ = self.file.set_len(self.length);
            return Err(self.failed(error));
        }
        self.length += chunk.len() as u64;
        Ok(())
    }

    fn failed(&self, source: io::Error) -> RecordingError {
        RecordingError::Write { path: self.path.clone(), source }
    }
}
