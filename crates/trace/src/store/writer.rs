//! Writing a trace: events are kept until they make a chunk.

use std::{io::Write, sync::Arc};

use super::{
    MAGIC, VERSION,
    chunk::Kind,
    definition::Definition,
    error::WriteError,
    flight_span::{CHUNK, FlightSpan},
    stored::{Keeper, OpenChunk, Stored},
};
use crate::{definitions::LocationId, event::Event};

/// Writes a file of a trace, chunk by chunk. What was written is readable whatever happens then.
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    to: W,
    /// By location.
    open: Vec<OpenChunk>,
    /// Events of a chunk, at most.
    most: u32,
    definitions: Vec<Definition>,
    sequence: u32,
    written: u64,
    /// Events that could not be written, by location.
    dropped: Vec<u64>,
    /// Who is given each chunk that was written.
    keeper: Option<Arc<dyn Keeper>>,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a file, of which somebody else is given each chunk and definition, too.
    pub(super) fn with_keeper(to: W, keeper: Arc<dyn Keeper>) -> Result<Self, WriteError> {
        Ok(Self { keeper: Some(keeper), ..Self::new(to)? })
    }

    /// Begins a file.
    pub fn new(mut to: W) -> Result<Self, WriteError> {
        let mut head = Vec::from(MAGIC);
        head.extend(VERSION.to_le_bytes());
        head.extend([0; 4]);
        to.write_all(&head)?;
        let definitions = vec![Definition::own_functions()];
        let (open, dropped, written) = (Vec::new(), Vec::new(), head.len() as u64);
        Ok(Self { to, open, most: CHUNK, definitions, sequence: 0, written, dropped, keeper: None })
    }

    /// With chunks of which somebody may drop the oldest who keeps no more than such a span.
    #[must_use]
    pub fn for_span(self, span: FlightSpan) -> Self {
        Self { most: span.events_of_chunk(), ..self }
    }

    /// Something that events refer to from now on, or more of what is known of it. Communicators, windows and files are called in events
    /// by their numbers in their process, in place of their ids.
    pub fn define(&mut self, definition: Definition) {
        if let Some(keeper) = &self.keeper {
            keeper.define(definition.clone());
        }
        self.definitions.push(definition);
    }

    /// The next event of a location.
    pub fn push(&mut self, location: LocationId, event: &Event) -> Result<(), WriteError> {
        if self.open.len() <= location.index() {
            self.open.resize_with(location.index() + 1, OpenChunk::default);
        }
        let Some(open) = self.open.get_mut(location.index()) else { return Ok(()) };
        open.push(event);
        if open.columns.count() >= self.most { self.close(location) } else { Ok(()) }
    }

    /// Writes out everything so far, as far as that is possible.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        let mut written = self.write_definitions();
        for location in 0..u32::try_from(self.open.len()).unwrap_or(u32::MAX) {
            let closed = self.close(LocationId(location));
            written = written.and(closed);
        }
        written.and(Ok(self.to.flush()?))
    }

    /// The same, and gives back what was written to.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        self.append(&Stored::of_definitions(&[Definition::End])?)?;
        self.to.flush()?;
        Ok(self.to)
    }

    /// Events of a location that were given and could not be written.
    pub fn dropped(&self, location: LocationId) -> u64 {
        self.dropped.get(location.index()).copied().unwrap_or(0)
    }

    /// What is written to.
    pub fn to(&mut self) -> &mut W {
        &mut self.to
    }

    /// Bytes so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    fn write_definitions(&mut self) -> Result<(), WriteError> {
        if self.definitions.is_empty() {
            return Ok(());
        }
        self.append(&Stored::of_definitions(&self.definitions)?)?;
        // What could not be written is tried again.
        self.definitions.clear();
        Ok(())
    }

    fn close(&mut self, location: LocationId) -> Result<(), WriteError> {
        let open = self.open.get_mut(location.index()).filter(|open| open.columns.count() > 0);
        let Some(open) = open.map(OpenChunk::take) else { return Ok(()) };
        let count = open.columns.count();
        let written = self.write_chunk(location, open);
        if written.is_err() {
            if self.dropped.len() <= location.index() {
                self.dropped.resize(location.index() + 1, 0);
            }
            if let Some(dropped) = self.dropped.get_mut(location.index()) {
                *dropped += u64::from(count);
            }
        }
        written
    }

    fn write_chunk(&mut self, location: LocationId, open: OpenChunk) -> Result<(), WriteError> {
        // Whatever is cut off, what events refer to comes before them.
        self.write_definitions()?;
        let stored = Stored::new(Kind::Events, &open.columns.bytes(), location, &open.columns)?;
        self.append(&stored)?;
        if let Some(keeper) = &self.keeper {
            // What was made for the file is kept as it is.
            keeper.keep(stored, open.calls, open.phase);
        }
        Ok(())
    }

    /// A chunk that is ready but for its number.
    pub(super) fn append(&mut self, chunk: &Stored) -> Result<(), WriteError> {
        // In one piece, so that a full disk or a kill leaves as little as possible of half a chunk.
        let bytes = chunk.bytes(self.sequence);
        self.sequence = self.sequence.wrapping_add(1);
        self.to.write_all(&bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}
