//! What is in a recording besides profiles, and its limits.

use serde::{Deserialize, Serialize};

/// No text begins like that, and a transfer that changes ends of lines is noticed.
pub(super) const MAGIC: [u8; 12] = *b"\x89MPIPROBE\r\n\x1a";
/// Raised when older versions could not read a file any more. What a moment holds has a version of its own: its schema.
pub(super) const VERSION: u32 = 1;
/// Magic and version, bytes.
pub(super) const START: usize = MAGIC.len() + size_of::<u32>();

/// What a moment may take at most when it is not compressed, bytes: more than a profile of all processes that there can be room for.
pub(super) const LONGEST_PAYLOAD: u32 = 1 << 29;
/// No file has more moments than that: at the shortest interval it takes half a day.
pub(super) const MOST_FRAMES: usize = 1 << 22;

/// What was recorded: the first chunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// Of the mpiprobe that has written it.
    pub(super) mpiprobe_version: String,
    pub(super) host: String,
    /// Beginning of observation, UTC, RFC 3339.
    pub(super) began: String,
}

/// How the recording ended: the last chunk, missing if the recorder was killed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    /// Moments that were left out because the disk did not keep up.
    pub(super) skipped: u64,
    /// Moments that were left out because the file had reached its limit.
    pub(super) beyond_limit: u64,
}
