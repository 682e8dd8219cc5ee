//! From values to the compressed bytes of a chunk, and back.

use std::io::{self, Read as _};

use mpiprobe_model::Profile;
use serde::{Serialize, de::DeserializeOwned};

use super::{
    FrameError,
    chunk::{ChunkKind, HEAD, Head},
    format::LONGEST_PAYLOAD,
    profile_reader::{of_text, read_profile},
};

/// Much smaller than the next lower one, and hardly slower.
const LEVEL: i32 = 3;
/// Room that is made before anything is known to be there, bytes.
const FIRST_ROOM: usize = 1 << 20;

/// A whole chunk.
pub(super) fn pack(kind: ChunkKind, at_ns: u64, value: &impl Serialize) -> io::Result<Vec<u8>> {
    let text = serde_json::to_vec(value)?;
    let too_large = || io::Error::other("the profile is larger than a recording can hold");
    let length = u32::try_from(text.len()).ok().filter(|&length| length <= LONGEST_PAYLOAD).ok_or_else(too_large)?;
    let mut stored = zstd::bulk::compress(&text, LEVEL)?;
    let checksum = crc32fast::hash(&stored);
    let length_stored = u32::try_from(stored.len()).ok().filter(|&length| length <= LONGEST_PAYLOAD);
    let head = Head { kind, stored: length_stored.ok_or_else(too_large)?, length, at_ns, checksum };
    let mut chunk = Vec::with_capacity(HEAD + stored.len());
    chunk.extend(head.bytes());
    chunk.append(&mut stored);
    Ok(chunk)
}

/// What is in the bytes behind a head. `by` is the version that has written it.
pub(super) fn unpack<T: DeserializeOwned>(head: Head, stored: &[u8], by: &str) -> Result<T, FrameError> {
    if crc32fast::hash(stored) != head.checksum {
        return Err(FrameError::Damaged);
    }
    of_text(&decompressed(stored, head.length)?, by)
}

/// The same of a profile, of which no more text is held than of one of its rows.
pub(super) fn unpack_profile(head: Head, stored: &[u8], by: &str) -> Result<Profile, FrameError> {
    if crc32fast::hash(stored) != head.checksum {
        return Err(FrameError::Damaged);
    }
    let mut text = decompressing(stored, head.length)?;
    let profile = read_profile(&mut text, by);
    // Of text that is longer or shorter than it should be, that is what is wrong.
    io::copy(&mut text, &mut io::sink()).map_err(FrameError::Compressed)?;
    if text.limit() != 1 {
        return Err(FrameError::Length);
    }
    profile.map_err(|error| match error {
        FrameError::Read(error) => FrameError::Compressed(error),
        other => other,
    })
}

/// The text, and one byte more if there is more.
fn decompressing(stored: &[u8], length: u32) -> Result<io::Take<impl io::Read>, FrameError> {
    if length > LONGEST_PAYLOAD {
        return Err(FrameError::TooLarge);
    }
    let decoder = zstd::stream::read::Decoder::with_buffer(stored).map_err(FrameError::Compressed)?;
    Ok(decoder.take(u64::from(length) + 1))
}

/// Takes memory for what is there, not for what is said to be.
fn decompressed(stored: &[u8], length: u32) -> Result<Vec<u8>, FrameError> {
    let mut decompressing = decompressing(stored, length)?;
    let length = usize::try_from(length).map_err(|_| FrameError::TooLarge)?;
    let mut text = Vec::with_capacity(length.min(FIRST_ROOM));
    decompressing.read_to_end(&mut text).map_err(FrameError::Compressed)?;
    if text.len() == length { Ok(text) } else { Err(FrameError::Length) }
}
