//! Reads the files that the truth library maps (layout: `tests/truth/truth.h`).
//!
//! A file may be read at any moment. What a blocked, stopped or dead process has counted is exact; of a running one each number
//! is a recent one, and they need not belong to the same instant.

use std::collections::BTreeMap;
use std::io;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use super::log::{Log, log};
use super::reader::Reader;
use super::traffic::Traffic;
use super::traffic_file::{scopes, traffic};

/// `TRUTH_ENDED`.
const ENDED_LISTED: u32 = 1024;

#[derive(Debug, Error)]
pub enum TruthError {
    #[error("reading {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is not a file of this truth library: {what}")]
    Format { path: PathBuf, what: &'static str },
    #[error("no counts of rank {rank}; there are counts of ranks {present:?}")]
    NoRank { rank: u32, present: Vec<u32> },
}

/// What is known of one function in one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Outermost calls that began.
    pub entered: u64,
    /// Outermost calls that returned. Less than `entered` while one is open, and for ever if one was left by longjmp,
    /// an exception or the end of the process.
    pub completed: u64,
    /// Calls from inside another MPI call, as far as the library makes them through exported names.
    pub inner: u64,
    /// Sum over the completed outermost calls.
    pub time: Duration,
    /// Calls that the truth library made itself, to learn what the program's calls mean. In none of the other numbers.
    pub asked: u64,
    /// Of the completed ones, those that returned an error. Only of what moves data, and if meaning was
    /// [asked for](crate::JobBuilder::semantics).
    pub failed: u64,
}

impl AddAssign for Calls {
    fn add_assign(&mut self, other: Self) {
        self.entered += other.entered;
        self.completed += other.completed;
        self.inner += other.inner;
        self.time += other.time;
        self.asked += other.asked;
        self.failed += other.failed;
    }
}

/// A thread that has called MPI and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    pub tid: u32,
    /// The outermost function it is in now.
    pub inside: Option<String>,
    /// Outermost calls it has entered.
    pub calls: u64,
}

/// A thread that has called MPI and has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedThread {
    pub tid: u32,
    /// Outermost calls it had entered.
    pub calls: u64,
}

/// One program image (a process between two execs).
#[derive(Debug, Clone)]
pub struct Image {
    pub pid: u32,
    pub parent: u32,
    /// As the launcher announced it.
    pub rank: Option<u32>,
    /// CLOCK_MONOTONIC.
    pub created: Duration,
    /// By C name; functions that were never called are left out.
    pub functions: BTreeMap<String, Calls>,
    pub threads: Vec<Thread>,
    /// Threads that are counted but missing in `threads`.
    pub unlisted_threads: u64,
    /// Those that were in `threads`, in the order of their ends: the first 1,024.
    pub ended_threads: Vec<EndedThread>,
    /// How many they are, listed or not.
    pub threads_ended: u32,
    /// What its calls meant. Empty unless [asked for](crate::JobBuilder::semantics).
    pub traffic: Traffic,
    /// Its calls one by one. Empty unless [asked for](crate::JobBuilder::log).
    pub log: Log,
}

impl Image {
    /// Zero for a function that was not called.
    pub fn calls(&self, function: &str) -> Calls {
        self.functions.get(function).copied().unwrap_or_default()
    }

    /// Completed outermost calls, by function; functions without any are left out.
    pub fn completed(&self) -> BTreeMap<&str, u64> {
        let completed = self.functions.iter().map(|(name, calls)| (name.as_str(), calls.completed));
        completed.filter(|(_, count)| *count > 0).collect()
    }

    /// `None` while the library is still setting the file up.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, TruthError> {
        let data = std::fs::read(path).map_err(|source| TruthError::Read { path: path.to_owned(), source })?;
        let file = Reader { data: &data, path };
        match data.get(..8) {
            Some(b"MPITRUTH") => Self::parse(file).map(Some),
            Some(b"\0\0\0\0\0\0\0\0") | None => Ok(None),
            Some(_) => Err(file.error("the first bytes are wrong")),
        }
    }
}

/// The counts of a job, one image per rank: the process that the launcher started, as its first program.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub ranks: BTreeMap<u32, Image>,
}

impl Snapshot {
    pub fn rank(&self, rank: u32) -> Result<&Image, TruthError> {
        let present = || self.ranks.keys().copied().collect();
        self.ranks.get(&rank).ok_or_else(|| TruthError::NoRank { rank, present: present() })
    }
}

impl Image {
    fn parse(file: Reader) -> Result<Self, TruthError> {
        if file.u32(8)? != 6 {
            return Err(file.error("another version"));
        }
        let (functions, threads) = (u64::from(file.u32(32)?), u64::from(file.u32(36)?));
        let (functions_offset, threads_offset) = (file.u64(40)?, file.u64(48)?);
        if functions > 10_000 || threads > 10_000 {
            return Err(file.error("too many functions or threads"));
        }
        let mut names = Vec::new();
        let mut counted = BTreeMap::new();
        for index in 0..functions {
            let offset = functions_offset.saturating_add(index * 112);
            let name = file.text::<64>(offset)?;
            let calls = Calls {
                entered: file.u64(offset + 64)?,
                completed: file.u64(offset + 72)?,
                inner: file.u64(offset + 80)?,
                time: Duration::from_nanos(file.u64(offset + 88)?),
                asked: file.u64(offset + 96)?,
                failed: file.u64(offset + 104)?,
            };
            if calls != Calls::default() {
                counted.insert(name.clone(), calls);
            }
            names.push(name);
        }
        let mut listed = Vec::new();
        for index in 0..threads {
            let offset = threads_offset.saturating_add(index * 16);
            let (tid, function) = (file.u32(offset)?, file.u32(offset + 4)?);
            let inside = usize::try_from(function).ok().and_then(|number| names.get(number.checked_sub(1)?)).cloned();
            if tid != 0 {
                listed.push(Thread { tid, inside, calls: file.u64(offset + 8)? });
            }
        }
        let described = scopes(file)?;
        Ok(Image {
            pid: file.u32(12)?,
            parent: file.u32(16)?,
            rank: u32::try_from(file.u32(20)?.cast_signed()).ok(),
            created: Duration::from_nanos(file.u64(24)?),
            functions: counted,
            threads: listed,
            unlisted_threads: file.u64(56)?,
            ended_threads: ended_threads(file)?,
            threads_ended: file.u32(100)?,
            traffic: traffic(file, &names, &described)?,
            log: log(file, &names, &described)?,
        })
    }
}

fn ended_threads(file: Reader) -> Result<Vec<EndedThread>, TruthError> {
    let (ended, offset) = (file.u32(100)?, file.u64(112)?);
    let mut listed = Vec::new();
    for index in 0..u64::from(ended.min(ENDED_LISTED)) {
        let offset = offset.saturating_add(index * 16);
        let thread = EndedThread { tid: file.u32(offset)?, calls: file.u64(offset + 8)? };
        listed.extend((thread.tid != 0).then_some(thread));
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One function (`MPI_Send`), one thread that is inside it, and one that has ended.
    fn sample() -> Vec<u8> {
        let mut data = b"MPITRUTH".to_vec();
        for word in [6, 4711, 42, 3_u32] {
            data.extend(word.to_ne_bytes()); // version, pid, parent, rank
        }
        data.extend(5_u64.to_ne_bytes()); // created
        for word in [1, 1_u32] {
            data.extend(word.to_ne_bytes()); // functions, threads
        }
        for word in [128, 128 + 112, 0_u64] {
            data.extend(word.to_ne_bytes()); // offsets, unlisted threads
        }
        data.resize(100, 0);
        data.extend(1_u32.to_ne_bytes()); // ended threads
        data.resize(112, 0);
        data.extend((128_u64 + 112 + 16).to_ne_bytes()); // where they are
        data.resize(128, 0);
        let mut name = b"MPI_Send".to_vec();
        name.resize(64, 0);
        data.extend(name);
        for word in [10, 9, 2, 1_000, 7, 0_u64] {
            data.extend(word.to_ne_bytes());
        }
        data.extend(4712_u32.to_ne_bytes());
        data.extend(1_u32.to_ne_bytes());
        data.extend(10_u64.to_ne_bytes());
        data.extend(4713_u64.to_ne_bytes());
        data.extend(6_u64.to_ne_bytes());
        data
    }

    fn read(data: &[u8]) -> Result<Option<Image>, TruthError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), data).unwrap();
        Image::read(file.path())
    }

    #[test]
    fn a_file_is_read_field_by_field() {
        let image = read(&sample()).unwrap().unwrap();
        assert_eq!((image.pid, image.parent, image.rank, image.created.as_nanos()), (4711, 42, Some(3), 5));
        let calls = Calls { entered: 10, completed: 9, inner: 2, time: Duration::from_micros(1), asked: 7, failed: 0 };
        assert_eq!(image.functions, BTreeMap::from([("MPI_Send".to_owned(), calls)]));
        assert_eq!(image.threads, [Thread { tid: 4712, inside: Some("MPI_Send".to_owned()), calls: 10 }]);
        assert_eq!((image.threads_ended, image.ended_threads), (1, vec![EndedThread { tid: 4713, calls: 6 }]));
    }

    #[test]
    fn a_file_that_is_still_being_made_is_not_an_error() {
        assert!(read(b"").unwrap().is_none());
        assert!(read(&[0; 4096]).unwrap().is_none());
    }

    #[test]
    fn no_damaged_file_is_read() {
        let whole = sample();
        for length in 8..whole.len() {
            assert!(matches!(read(&whole[..length]), Err(TruthError::Format { .. })), "{length} bytes");
        }
        let mut other_version = sample();
        other_version[8] = 1;
        assert!(read(&other_version).is_err());
        assert!(read(b"ELF or something").is_err());
    }
}
