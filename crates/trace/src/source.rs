//! How traces are read, and what is given events while they happen.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{
    definitions::{Definitions, LocationId},
    event::Event,
    part::Part,
    span::Span,
};

/// Why a trace cannot be read on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    #[error("cannot read {path}: {error}")]
    Io { path: String, error: std::io::Error },
    #[error("cannot make sense of {path}: {reason}")]
    Damaged { path: String, reason: String },
}

/// Events of a location, in the order of time, many at once.
pub type Parts<'a> = Box<dyn Iterator<Item = Result<Part, ReadError>> + Send + 'a>;

/// Events of a location, in the order of time.
pub type Events<'a> = Box<dyn Iterator<Item = Result<Event, ReadError>> + Send + 'a>;

/// A trace, wherever it is kept.
pub trait Trace: Sync {
    fn definitions(&self) -> &Definitions;

    /// From the first event to the end of the last one.
    fn span(&self) -> Span;

    /// The same of one location; `None`: nothing is known of it.
    fn span_of(&self, location: LocationId) -> Option<Span>;

    /// How many events there are in all; an upper bound, for whoever shows progress.
    fn event_count(&self) -> u64;

    /// Those events of a location of which any part is in the span. None is in memory before it is asked for, but for a few thousand.
    fn parts(&self, location: LocationId, span: Span) -> Parts<'_>;

    /// The same one by one.
    fn events(&self, location: LocationId, span: Span) -> Events<'_> {
        Box::new(self.parts(location, span).flat_map(|part| match part {
            Ok(part) => part.events().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }))
    }
}

/// Whoever is given events while they happen.
pub trait Sink {
    type Error;

    /// Before events that refer to them: all definitions so far.
    fn define(&mut self, definitions: &Definitions) -> Result<(), Self::Error>;

    /// Further events of a location, in the order of time.
    fn take(&mut self, location: LocationId, events: &[Event]) -> Result<(), Self::Error>;

    /// All that has happened until this time has been given, on this node.
    fn complete_until(&mut self, at_ns: u64) -> Result<(), Self::Error>;
}

/// All events of several locations in the order of time. That means something between nodes only as far as their clocks agree.
#[allow(missing_debug_implementations, reason = "it has iterators")]
pub struct InOrder<'a> {
    sources: Vec<(LocationId, Events<'a>)>,
    /// By time and place in `sources`.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    events: Vec<Option<Result<Event, ReadError>>>,
}

/// See [`InOrder`].
pub fn in_order(trace: &dyn Trace, locations: impl IntoIterator<Item = LocationId>, span: Span) -> InOrder<'_> {
    let sources: Vec<_> = locations.into_iter().map(|location| (location, trace.events(location, span))).collect();
    let mut merged = InOrder { events: sources.iter().map(|_| None).collect(), sources, next: BinaryHeap::new() };
    (0..merged.sources.len()).for_each(|place| merged.advance(place));
    merged
}

impl InOrder<'_> {
    fn advance(&mut self, place: usize) {
        let Some((_, events)) = self.sources.get_mut(place) else { return };
        if let (Some(event), Some(to)) = (events.next(), self.events.get_mut(place)) {
            // An error comes at once.
            let time_ns = event.as_ref().map_or(0, Event::time_ns);
            *to = Some(event);
            self.next.push(Reverse((time_ns, place)));
        }
    }
}

impl Iterator for InOrder<'_> {
    type Item = Result<(LocationId, Event), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((_, place)) = self.next.pop()?;
        let event = self.events.get_mut(place)?.take()?;
        let location = self.sources.get(place)?.0;
        self.advance(place);
        Some(event.map(|event| (location, event)))
    }
}
