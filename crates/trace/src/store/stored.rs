//! Chunks on their way to a file, to memory, or to both.

use std::{fmt, mem};

use super::{
    chunk::{HEAD, Head, Kind},
    columns::Columns,
    definition::Definition,
    error::WriteError,
    wire::Malformed,
};
use crate::{
    definitions::{LocationId, Losses},
    event::{Event, PhaseChange},
};

const LEVEL: i32 = 1;
/// Definitions that are written in one chunk.
pub(super) const DEFINITIONS: usize = 1 << 14;

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
    /// Gives it, and begins the next one, which is to be as large.
    pub(super) fn take(&mut self) -> Self {
        let next = Self { columns: self.columns.next(), ..Self::default() };
        mem::replace(self, next)
    }

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

    /// Of definitions.
    pub(super) fn of_definitions(definitions: &[Definition]) -> Result<Self, WriteError> {
        Self::new(Kind::Definitions, &serde_json::to_vec(definitions)?, LocationId(0), &Columns::default())
    }

    /// As it is in a file, with its number there.
    pub(super) fn bytes(&self, sequence: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.payload.len());
        bytes.extend(Head { sequence, ..self.head }.bytes());
        bytes.extend_from_slice(&self.payload);
        bytes
    }

    /// The first chunk of these bytes, and what follows it.
    pub(super) fn split(bytes: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let (head, rest) = bytes.split_first_chunk::<HEAD>().ok_or(Malformed("it is no chunk"))?;
        let head = Head::read(head)?;
        let (payload, rest) = rest.split_at_checked(head.stored as usize).ok_or(Malformed("it ends early"))?;
        Ok((Self { head, payload: payload.to_vec() }, rest))
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
