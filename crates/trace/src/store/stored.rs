//! Chunks on their way to a file, to memory, or to both.

use std::fmt;

use super::{
    chunk::{Head, Kind},
    columns::Columns,
    definition::Definition,
    error::WriteError,
};
use crate::{
    definitions::{LocationId, Losses},
    event::{Event, PhaseChange},
};

const LEVEL: i32 = 1;

/// Somebody who is given all that is written to a file.
pub(super) trait Keeper: fmt::Debug + Send + Sync {
    fn define(&self, definition: Definition);

    /// A chunk with so many calls and the last change of phase in it.
    fn keep(&self, stored: Stored, calls: u64, phase: Option<PhaseChange>);
}

/// Events that are becoming a chunk.
#[derive(Debug, Default)]
pub(super) struct OpenChunk {
    pub(super) columns: Columns,
    pub(super) calls: u64,
    /// The last change of phase in it.
    pub(super) phase: Option<PhaseChange>,
}

impl OpenChunk {
    pub(super) fn push(&mut self, event: &Event) {
        self.columns.push(event);
        match event {
            Event::Call(_) => self.calls += 1,
            Event::Phase(change) => self.phase = Some(change.clone()),
        }
    }
}

/// A chunk before it is known which number in which file it gets.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) head: Head,
    /// Compressed.
    pub(super) payload: Vec<u8>,
}

impl Stored {
    pub(super) fn new(kind: Kind, payload: &[u8], location: LocationId, columns: &Columns) -> Result<Self, WriteError> {
        let stored = zstd::bulk::compress(payload, LEVEL)?;
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let head = Head {
            kind,
            stored: length(&stored),
            raw: length(payload),
            checksum: crc32fast::hash(&stored),
            location: location.0,
            count: columns.count(),
            sequence: 0,
            from_ns: columns.from_ns,
            until_ns: columns.until_ns,
            first_number: columns.first_number,
        };
        Ok(Self { head, payload: stored })
    }

    /// How much memory it takes, bytes.
    pub(super) fn size(&self) -> u64 {
        (self.payload.len() + size_of::<Self>()) as u64
    }
}

/// A chunk, and what is to be known when it is gone.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) stored: Stored,
    pub(super) calls: u64,
    /// The last change of phase in it.
    pub(super) phase: Option<PhaseChange>,
    /// What was known to be missing of its location when it was closed.
    pub(super) losses: Losses,
}

impl Chunk {
    /// Of events that nobody keeps.
    pub(super) fn passing(stored: Stored, calls: u64) -> Self {
        Self { stored, calls, phase: None, losses: Losses::default() }
    }

    pub(super) fn size(&self) -> u64 {
        self.stored.size() + (size_of::<Self>() - size_of::<Stored>()) as u64
    }
}
