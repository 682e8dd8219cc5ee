//! Traces in files: chunks that each can be read without the others, described in `docs/trace-format.md`.

mod chunk;
mod columns;
mod communicators;
mod copy;
mod definition;
mod dump;
mod error;
mod flight;
mod flight_span;
mod following;
mod index;
mod kept;
mod known;
mod reader;
mod relay;
mod replica;
mod stored;
#[cfg(test)]
mod tests;
mod window;
mod wire;
mod writer;

pub use copy::{CopyError, copy, copy_into};
pub use definition::{Definition, LocalCommunicator};
pub use dump::Dump;
pub use error::{FollowError, OpenError, WriteError};
pub use flight::FlightBuffer;
pub use flight_span::FlightSpan;
pub use following::Following;
pub use reader::TraceFiles;
pub use replica::Replica;
pub use window::{Window, WindowMoment};
pub use writer::TraceWriter;

/// First bytes of a file.
pub const MAGIC: [u8; 8] = *b"MPITRACE";
/// Raised when a reader of the one before would read anything wrong.
pub const VERSION: u32 = 2;
/// The first version, of which all files are read as well.
const OLDEST: u32 = 1;
