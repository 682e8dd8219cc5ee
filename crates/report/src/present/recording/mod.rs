//! Recordings: profiles of one observation, moment by moment, in one file (`--record`), to be looked at later (`mpiprobe view`).
//!
//! A file begins with [`format::MAGIC`] and the version of the format; then come chunks, each with a checksummed head that tells its
//! length: what was recorded, for each moment its profile and its [`Sums`], and the end. They are appended as they come, so that a recorder that is
//! killed leaves all but the moment it was writing. Whoever reads a recording trusts nothing in it.

mod at;
mod chunk;
mod error;
mod format;
mod index;
mod payload;
mod possible;
mod profile_reader;
mod reader;
mod recorder;
mod sums;
#[cfg(test)]
mod tests;
mod text;
mod writer;

pub use at::{At, Times, describe, find, find_bound};
pub use error::{FrameError, RecordingError};
pub use possible::is_possible;
pub use profile_reader::{profile_of_json, value_of_json};
pub use reader::Recording;
pub use recorder::{RecordTo, Recorder};
pub(crate) use sums::Process;
pub use sums::Sums;
pub use writer::{Added, Writer};
