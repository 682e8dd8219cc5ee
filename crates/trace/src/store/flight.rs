//! The last part of a trace, kept in memory until somebody wants it: what a flight recorder has.
//!
//! Events become chunks as they would in a file, location by location, and the oldest chunks are dropped whole. Everything that is written is a trace by
//! itself: what was dropped before it is counted there as outside the time that was recorded, not as lost.

use super::{
    chunk::Kind,
    definition::Definition,
    dump::Dump,
    error::WriteError,
    flight_span::{CHUNKS_OF_SPAN, FlightSpan},
    kept::Kept,
    stored::{OpenChunk, Stored},
};
use crate::{definitions::LocationId, event::Event};

/// What an event takes before it is compressed, about, bytes.
const OPEN_EVENT: u64 = 24;
/// What a location takes that has any such event, about, bytes: names of shapes, and room.
const OPEN_LOCATION: u64 = 2048;
/// The part of the memory that events may take before they are compressed.
const OPEN_PART: u64 = 4;

/// Events of the last span, compressed. It holds at least that, and at most an eighth more and a chunk of each thread; less if that takes more memory than
/// it may have.
#[derive(Debug)]
pub struct FlightBuffer {
    span: FlightSpan,
    /// Bytes that it may take.
    limit: u64,
    kept: Kept,
    /// By location.
    open: Vec<OpenChunk>,
    open_bytes: u64,
    /// End of the last event of all, ns; of a call that did not return, its entry.
    newest_ns: u64,
    /// Whether less than the span is kept, because there is no room for it.
    is_short: bool,
}

impl FlightBuffer {
    /// `limit`: how much memory events may take, bytes.
    pub fn new(span: FlightSpan, limit: u64) -> Self {
        Self { span, limit, kept: Kept::default(), open: Vec::new(), open_bytes: 0, newest_ns: 0, is_short: false }
    }

    /// As for [`TraceWriter::define`](super::TraceWriter::define).
    pub fn define(&mut self, definition: Definition) {
        self.kept.define(definition);
    }

    /// The next event of a location, which has been defined.
    pub fn push(&mut self, location: LocationId, event: &Event) -> Result<(), WriteError> {
        if self.open.len() <= location.index() {
            self.open.resize_with(location.index() + 1, OpenChunk::default);
        }
        let most = self.span.events_of_chunk();
        let Some(open) = self.open.get_mut(location.index()) else { return Ok(()) };
        if open.columns.count() == 0 {
            self.open_bytes += OPEN_LOCATION;
        }
        open.push(event);
        self.open_bytes += OPEN_EVENT;
        // A call that its process's end has cut short may have been open for long: what came before it is what is asked for.
        let has_ended = event.call().is_none_or(|call| call.has_returned);
        self.newest_ns = self.newest_ns.max(if has_ended { event.end_ns() } else { event.time_ns() });
        if open.columns.count() >= most {
            self.close(location)?;
            self.make_room();
        }
        if self.open_bytes > self.limit / OPEN_PART {
            self.close_all(u64::MAX)?;
            self.make_room();
        }
        Ok(())
    }

    /// Drops what is older than the span, which ends with the last event of all: of a job that hangs, what came before that is kept. To be called some times
    /// in each.
    pub fn trim(&mut self) -> Result<(), WriteError> {
        if let FlightSpan::Time(span) = self.span {
            self.close_all(self.newest_ns.saturating_sub(span / CHUNKS_OF_SPAN))?;
            let from_ns = self.newest_ns.saturating_sub(span);
            self.kept.drop_before(from_ns);
            if self.from_ns().is_some_and(|oldest_ns| oldest_ns <= from_ns) {
                self.is_short = false;
            }
        }
        let from_ns = self.from_ns().unwrap_or(self.newest_ns);
        self.kept.known.forget_pairs(from_ns);
        Ok(())
    }

    /// Whether less than the span is kept, because there is no room for it.
    pub fn is_short(&self) -> bool {
        self.is_short
    }

    /// Where the oldest event that is kept begins, ns; `None`: there is none.
    pub fn from_ns(&self) -> Option<u64> {
        let open = self.open.iter().filter(|open| open.columns.count() > 0).map(|open| open.columns.from_ns);
        self.kept.oldest_ns().into_iter().chain(open).min()
    }

    /// How much memory events take, bytes.
    pub fn bytes(&self) -> u64 {
        self.kept.bytes() + self.open_bytes
    }

    /// All that is kept now, and events that are true only now: calls that are open. What is kept goes on.
    pub fn dump(&mut self, open_calls: &[(LocationId, Event)]) -> Result<Dump, WriteError> {
        self.close_all(u64::MAX)?;
        self.kept.dump(open_calls)
    }

    /// Closes the chunks that have begun before.
    fn close_all(&mut self, before_ns: u64) -> Result<(), WriteError> {
        for location in 0..u32::try_from(self.open.len()).unwrap_or(u32::MAX) {
            let open = self.open.get(location as usize).map(|open| &open.columns);
            if open.is_some_and(|open| open.count() > 0 && open.from_ns < before_ns) {
                self.close(LocationId(location))?;
            }
        }
        Ok(())
    }

    fn close(&mut self, location: LocationId) -> Result<(), WriteError> {
        let Some(open) = self.open.get_mut(location.index()).map(std::mem::take) else { return Ok(()) };
        let count = u64::from(open.columns.count());
        if count == 0 {
            return Ok(());
        }
        self.open_bytes = self.open_bytes.saturating_sub(count * OPEN_EVENT + OPEN_LOCATION);
        let stored = Stored::new(Kind::Events, &open.columns.bytes(), location, &open.columns)?;
        let process = self.kept.keep(stored, open.calls, open.phase);
        if let (FlightSpan::Calls(calls), Some(process)) = (self.span, process) {
            self.kept.drop_beyond(process, calls);
        }
        Ok(())
    }

    /// Drops the oldest chunks of all until the rest fits, beside what is not compressed yet.
    fn make_room(&mut self) {
        self.is_short |= self.kept.make_room(self.limit - self.limit / OPEN_PART, 1);
    }
}

#[cfg(test)]
#[path = "flight_tests.rs"]
mod tests;
