//! What of a trace was in memory at one moment: to be written as a trace of its own, or to be read where it is.

use std::{collections::BTreeMap, io::Write, sync::Arc};

use super::{
    chunk::Kind,
    definition::Definition,
    error::WriteError,
    known::Known,
    stored::{Chunk, DEFINITIONS, OpenChunk, Stored},
    writer::TraceWriter,
};
use crate::{definitions::LocationId, event::Event};

/// What was kept at one moment.
#[derive(Debug)]
pub struct Dump {
    pub(super) known: Known,
    /// In the order of time.
    pub(super) chunks: Vec<Arc<Chunk>>,
}

impl Dump {
    /// `before`: events that come before the chunks, which are in the order of time. `after`: calls that are open.
    pub(super) fn new(
        known: Known,
        before: &[(LocationId, Event)],
        chunks: Vec<Arc<Chunk>>,
        after: &[(LocationId, Event)],
    ) -> Result<Self, WriteError> {
        let mut all = encoded(before)?;
        all.extend(chunks);
        all.extend(encoded(after)?);
        Ok(Self { known, chunks: all })
    }

    /// How many nodes it tells of: one, or none as long as nothing is known.
    pub fn node_count(&self) -> u32 {
        let nodes = self.known.definitions().filter(|definition| matches!(definition, Definition::Node(..))).count();
        u32::try_from(nodes).unwrap_or(u32::MAX)
    }

    /// How many events it has.
    pub fn event_count(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.stored.head.count)).sum()
    }

    /// How many of them are calls.
    pub fn call_count(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.calls).sum()
    }

    /// From the beginning of the first event to the end of the last one, ns; `None`: there is none.
    pub fn span_ns(&self) -> Option<u64> {
        let from_ns = self.chunks.iter().map(|chunk| chunk.stored.head.from_ns).min()?;
        Some(self.until_ns()?.saturating_sub(from_ns))
    }

    /// The end of the last event, ns; `None`: there is none.
    pub fn until_ns(&self) -> Option<u64> {
        self.chunks.iter().map(|chunk| chunk.stored.head.until_ns).max()
    }

    /// Writes it as a trace of its own.
    pub fn write<W: Write>(&self, to: W) -> Result<W, WriteError> {
        let mut writer = TraceWriter::new(to)?;
        for (number, definition) in (1..).zip(self.known.definitions()) {
            writer.define(definition);
            if number % DEFINITIONS == 0 {
                writer.flush()?;
            }
        }
        writer.flush()?;
        for chunk in &self.chunks {
            writer.append(&chunk.stored)?;
        }
        writer.finish()
    }
}

/// One chunk of each location.
pub(super) fn encoded(events: &[(LocationId, Event)]) -> Result<Vec<Arc<Chunk>>, WriteError> {
    let mut by_location: BTreeMap<LocationId, OpenChunk> = BTreeMap::new();
    for (location, event) in events {
        by_location.entry(*location).or_default().push(event);
    }
    let chunk = |(location, open): (LocationId, OpenChunk)| {
        let stored = Stored::new(Kind::Events, &open.columns.bytes(), location, &open.columns)?;
        Ok(Arc::new(Chunk::passing(stored, open.calls)))
    };
    by_location.into_iter().map(chunk).collect()
}
