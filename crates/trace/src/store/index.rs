//! Where the chunks of a file are, found by their heads. Nothing in a file is believed before its checksum says so.

use std::{fs::File, io, os::unix::fs::FileExt as _};

use super::{
    MAGIC, OLDEST, VERSION,
    chunk::{FILE_HEAD, HEAD, Head, Kind, next_magic},
    error::OpenError,
};

/// How much is looked through at once for the next chunk behind a damaged place, bytes.
const LOOK: usize = 1 << 16;

/// A chunk and where its payload is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) head: Head,
    pub(super) offset: u64,
}

#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) definitions: Vec<Place>,
    pub(super) events: Vec<Place>,
    /// Bytes that belong to no chunk, in the middle of the file.
    pub(super) damaged: u64,
    /// The same at its end: it was cut off, or is still being written.
    pub(super) cut: u64,
    /// Chunks that are not there, by the numbers of the others.
    pub(super) missing: u64,
}

/// Reads the head of a file; gives its length.
pub(super) fn check(file: &File, path: &str) -> Result<u64, OpenError> {
    let error = |error| OpenError::Io { path: path.to_owned(), error };
    let length = file.metadata().map_err(error)?.len();
    let mut head = [0; FILE_HEAD];
    match file.read_exact_at(&mut head, 0) {
        Ok(()) => {}
        Err(found) if found.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(OpenError::Foreign { path: path.to_owned() });
        }
        Err(found) => return Err(error(found)),
    }
    if !head.starts_with(&MAGIC) {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    let version = head.get(8..12).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes);
    if !(OLDEST..=VERSION).contains(&version) {
        return Err(OpenError::OtherVersion { path: path.to_owned(), version, known: VERSION });
    }
    Ok(length)
}

/// All whole chunks.
pub(super) fn index(file: &File, length: u64) -> io::Result<Index> {
    let mut index = Index::default();
    let mut offset = FILE_HEAD as u64;
    let mut unknown = 0;
    while offset < length {
        let mut bytes = [0; HEAD];
        let is_head = offset + HEAD as u64 <= length && {
            file.read_exact_at(&mut bytes, offset)?;
            true
        };
        let head = if is_head { Head::read(&bytes).ok() } else { None };
        let whole = head.filter(|head| offset + HEAD as u64 + u64::from(head.stored) <= length);
        if let Some(head) = whole {
            index.damaged += unknown;
            unknown = 0;
            let place = Place { head, offset: offset + HEAD as u64 };
            match head.kind {
                Kind::Definitions => index.definitions.push(place),
                Kind::Events => index.events.push(place),
            }
            offset = place.offset + u64::from(head.stored);
        } else {
            let next = next_chunk(file, offset, length)?;
            unknown += next - offset;
            offset = next;
        }
    }
    index.cut = unknown;
    let numbers = || index.definitions.iter().chain(&index.events).map(|place| place.head.sequence);
    let there = numbers().count() as u64;
    index.missing = numbers().max().map_or(0, |last| u64::from(last) + 1).saturating_sub(there);
    Ok(index)
}

/// Where the next chunk may begin.
fn next_chunk(file: &File, from: u64, length: u64) -> io::Result<u64> {
    let mut offset = from;
    let mut bytes = vec![0; LOOK];
    while offset < length {
        let wanted = usize::try_from(length - offset).unwrap_or(LOOK).min(LOOK);
        let Some(part) = bytes.get_mut(..wanted) else { break };
        file.read_exact_at(part, offset)?;
        if let Some(found) = next_magic(part) {
            return Ok(offset + found as u64);
        }
        // The first bytes of one may be at the end.
        offset += (wanted as u64).saturating_sub(3).max(1);
        if wanted < LOOK {
            break;
        }
    }
    Ok(length)
}
