//! OTF2, the Open Trace Format 2, which Vampir, Scalasca and others read: written without its library.
//!
//! Facts are those of OTF2's own sources (BSD licence), version 3.0; of the archive, otf2-print and the Python reader are the tests.

mod archive;
mod bytes;
mod definitions;
mod events;
#[cfg(test)]
mod tests;
mod used;

pub use archive::{Archive, ArchiveFile, Otf2Options, write};
