//! Where events go.

use std::io::Write;

use mpiprobe_trace::{
    Event, LocationId,
    store::{Definition, TraceWriter, WriteError},
};

/// Whoever is given events by numbers of their processes, as they are written.
pub trait Output {
    /// What events refer to from now on.
    fn define(&mut self, definition: Definition);

    /// The next event of a location. On an error some events of some location are lost, and others may be written later.
    fn push(&mut self, location: LocationId, event: &Event) -> Result<(), WriteError>;

    /// All calls that had returned by then have been given, ns.
    fn complete_until(&mut self, _at_ns: u64) -> Result<(), WriteError> {
        Ok(())
    }

    /// Events of a location that could not be written.
    fn dropped(&self, location: LocationId) -> u64;
}

impl<W: Write> Output for TraceWriter<W> {
    fn define(&mut self, definition: Definition) {
        Self::define(self, definition);
    }

    fn push(&mut self, location: LocationId, event: &Event) -> Result<(), WriteError> {
        Self::push(self, location, event)
    }

    fn dropped(&self, location: LocationId) -> u64 {
        Self::dropped(self, location)
    }
}
