//! A trace without some of its processes.

use super::{
    definitions::{Definitions, LocationId, ProcessId},
    source::{Parts, Trace},
    span::Span,
};

/// Of a trace, some processes only: the others are there by name, but neither known by their ranks nor anything that they have done.
#[allow(missing_debug_implementations, reason = "traces need not be")]
pub struct Selected<'a> {
    trace: &'a dyn Trace,
    definitions: Definitions,
    /// By process.
    keeps: Vec<bool>,
}

impl<'a> Selected<'a> {
    pub fn new(trace: &'a dyn Trace, keeps: impl Fn(ProcessId) -> bool) -> Self {
        let mut definitions = trace.definitions().clone();
        let mut kept = Vec::new();
        for (id, process) in (0..).map(ProcessId).zip(&mut definitions.processes) {
            kept.push(keeps(id));
            if !keeps(id) {
                process.rank = None;
            }
        }
        Self { trace, definitions, keeps: kept }
    }

    fn has(&self, location: LocationId) -> bool {
        let process = self.definitions.location(location).map(|location| location.process);
        process.and_then(|id| self.keeps.get(id.index())) == Some(&true)
    }

    /// Locations of processes that are left.
    pub fn locations(&self) -> impl Iterator<Item = LocationId> + '_ {
        self.definitions.location_ids().filter(|&id| self.has(id))
    }
}

impl Trace for Selected<'_> {
    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    fn span(&self) -> Span {
        self.trace.span()
    }

    fn span_of(&self, location: LocationId) -> Option<Span> {
        self.has(location).then(|| self.trace.span_of(location)).flatten()
    }

    fn event_count(&self) -> u64 {
        self.trace.event_count()
    }

    fn parts(&self, location: LocationId, span: Span) -> Parts<'_> {
        if self.has(location) { self.trace.parts(location, span) } else { Box::new(std::iter::empty()) }
    }
}
