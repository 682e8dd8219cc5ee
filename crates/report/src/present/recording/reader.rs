//! A recording that is looked at. Moments are read when they are asked for: hours of them need no memory.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use mpiprobe_discover::{files::with_callers_rights, open_regular};
use mpiprobe_model::Profile;

use super::{
    At, FrameError, RecordingError, Sums, Times, at,
    format::{End, Header, LONGEST_PAYLOAD, MAGIC, START, VERSION},
    index::{Chunk, Frame, Index},
    payload::{unpack, unpack_profile},
    possible::is_possible,
};

/// A file, and where in it which moment is.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: File,
    header: Header,
    began: Option<Timestamp>,
    /// At least one.
    frames: Vec<Frame>,
    notes: Vec<String>,
}

impl Recording {
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let cannot_read = |source| RecordingError::Read { path: path.into(), source };
        let file = with_callers_rights(|| open_regular(path)).map_err(cannot_read)?;
        check_start(&file, path)?;
        let index = Index::of(&file).map_err(cannot_read)?;
        if index.frames.is_empty() {
            return Err(RecordingError::Empty(path.into()));
        }
        let (header, mut notes) = (index.header, index.notes);
        let header = header.ok_or(FrameError::Damaged).and_then(|chunk| read(&file, chunk, "?"));
        let header: Header = header.map_err(|reason| RecordingError::Header { path: path.into(), reason })?;
        match index.end.map(|chunk| read::<End>(&file, chunk, &header.mpiprobe_version)) {
            Some(Ok(end)) => notes.extend(left_out(&end)),
            Some(Err(error)) => notes.push(format!("how it ended is not known: {error}")),
            None => {}
        }
        Ok(Self { path: path.into(), file, began: header.began.parse().ok(), header, frames: index.frames, notes })
    }

    /// How many moments there are; never 0.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// What is wrong with the file, or missing in it; empty: nothing.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Time of a moment since the beginning of observation, ns; of the last one, if there is none of that number.
    pub fn at_ns(&self, index: usize) -> u64 {
        self.frames.get(index).or(self.frames.last()).map_or(0, |frame| frame.profile.head.at_ns)
    }

    /// What the profile of a moment takes as JSON, bytes.
    pub fn bytes(&self, index: usize) -> u64 {
        self.frames.get(index).map_or(0, |frame| frame.profile.head.length.into())
    }

    /// Beginning of observation; `None`: the file does not say it in a way that can be read.
    pub fn began(&self) -> Option<Timestamp> {
        self.began
    }

    /// Number of the moment that is meant, the first is 0.
    pub fn find(&self, at: At) -> Result<usize, RecordingError> {
        let times = Times { began: self.began, count: self.len(), at_ns: &|index| self.at_ns(index) };
        let found = at::find(at, times);
        let last = self.len().saturating_sub(1);
        found.map_err(|_| RecordingError::NoMoment {
            path: self.path.clone(),
            from: self.describe(0),
            to: self.describe(last),
            count: self.len(),
        })
    }

    /// "12:34:56 (+00:12)", UTC.
    pub fn describe(&self, index: usize) -> String {
        at::describe(self.began, self.at_ns(index))
    }

    /// The profile of a moment.
    pub fn profile(&self, index: usize) -> Result<Profile, RecordingError> {
        let (offset, profile) = match self.frames.get(index) {
            Some(&Frame { profile: chunk, .. }) => (chunk.offset, self.read_profile(chunk)),
            None => (0, Err(FrameError::Length)),
        };
        let checked = profile.and_then(|profile| {
            if profile.observed_ns != self.at_ns(index) {
                Err(FrameError::Time)
            } else if is_possible(&profile) {
                Ok(profile)
            } else {
                Err(FrameError::Impossible)
            }
        });
        let (path, count) = (&self.path, self.len());
        checked.map_err(|reason| RecordingError::Frame { path: path.clone(), index, count, offset, reason })
    }
}

impl Recording {
    fn read_profile(&self, chunk: Chunk) -> Result<Profile, FrameError> {
        unpack_profile(chunk.head, &stored(&self.file, chunk)?, &self.header.mpiprobe_version)
    }

    /// Whether sums were recorded of all moments.
    pub(crate) fn has_sums(&self) -> bool {
        self.frames.iter().all(|frame| frame.sums.is_some())
    }

    /// The sums of a moment; `None`: they were not recorded, or cannot be read, as the profile perhaps can.
    pub(crate) fn sums(&self, index: usize) -> Option<Sums> {
        let chunk = self.frames.get(index)?.sums?;
        let sums: Sums = read(&self.file, chunk, &self.header.mpiprobe_version).ok()?;
        (sums.observed_ns == chunk.head.at_ns).then_some(sums)
    }
}

fn check_start(file: &File, path: &Path) -> Result<(), RecordingError> {
    let mut start = [0; START];
    if let Err(source) = file.read_exact_at(&mut start, 0) {
        return Err(match source.kind() {
            io::ErrorKind::UnexpectedEof => RecordingError::Foreign(path.into()),
            _ => RecordingError::Read { path: path.into(), source },
        });
    }
    let version = start.strip_prefix(&MAGIC).and_then(|rest| rest.first_chunk());
    match version.copied().map(u32::from_le_bytes) {
        Some(VERSION) => Ok(()),
        Some(found) => Err(RecordingError::Version { path: path.into(), found, wanted: VERSION }),
        None => Err(RecordingError::Foreign(path.into())),
    }
}

fn read<T: serde::de::DeserializeOwned>(file: &File, chunk: Chunk, by: &str) -> Result<T, FrameError> {
    unpack(chunk.head, &stored(file, chunk)?, by)
}

fn stored(file: &File, chunk: Chunk) -> Result<Vec<u8>, FrameError> {
    // The file is as long as that, but that may be very long.
    let length = usize::try_from(chunk.head.stored).ok().filter(|_| chunk.head.stored <= LONGEST_PAYLOAD);
    let mut stored = vec![0; length.ok_or(FrameError::TooLarge)?];
    file.read_exact_at(&mut stored, chunk.offset).map_err(FrameError::Read)?;
    Ok(stored)
}

fn left_out(end: &End) -> impl Iterator<Item = String> {
    let skipped =
        (end.skipped > 0).then(|| format!("{} moments were not recorded: it was written too slowly", end.skipped));
    let beyond = end.beyond_limit;
    let beyond = (beyond > 0)
        .then(|| format!("its last {beyond} moments were not recorded: it had reached its limit (--record-limit)"));
    skipped.into_iter().chain(beyond)
}
