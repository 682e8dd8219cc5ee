//! What is exported, and what became of it.

use mpiprobe_model::filter::Filter;
use mpiprobe_replay::Clocks;
use mpiprobe_trace::{Definitions, LocationId, Span, Trace};

/// What of a trace is exported.
#[derive(Clone, Copy)]
pub struct Selection<'a> {
    pub clocks: &'a Clocks,
    /// On the common clock.
    pub span: Span,
    pub has: &'a (dyn Fn(LocationId) -> bool + Sync),
    /// Of formats that show calls, those that are shown.
    pub filter: Option<&'a Filter>,
    /// How many threads work on it.
    pub threads: usize,
}

impl std::fmt::Debug for Selection<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selection").field("clocks", self.clocks).field("span", &self.span).finish_non_exhaustive()
    }
}

/// What was exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    pub calls: u64,
    pub messages: u64,
    /// Sends, receives and collective calls that were left out: their other end is not in the export.
    pub loose_ends: u64,
    /// Messages between nodes whose clocks nothing compares, which were left out.
    pub between_clocks: u64,
    /// Calls that were left out: they begin before the span, or end behind it.
    pub cut_calls: u64,
    /// Parts of the trace that could not be read.
    pub damaged: u64,
}

impl Selection<'_> {
    /// How far times of different nodes may be wrong against each other; `None`: there is one clock.
    pub(crate) fn clocks_within_ns(&self) -> Option<u64> {
        self.clocks.worst_within_ns()
    }

    pub(crate) fn has(&self, location: LocationId) -> bool {
        (self.has)(location)
    }

    /// From the first to the last event, or the span if that is narrower.
    pub(crate) fn whole(&self, trace: &dyn Trace) -> Span {
        let all = self.clocks.span(trace);
        Span { from_ns: all.from_ns.max(self.span.from_ns), until_ns: all.until_ns.min(self.span.until_ns) }
    }
}

/// The clock of the world at a time of the common clock, ns since 1970, as the first node knows it.
pub(crate) fn realtime(definitions: &Definitions, ns: u64) -> Option<u64> {
    let pair = definitions.nodes.first()?.clock.first()?;
    let since = ns.cast_signed().wrapping_sub(pair.monotonic_ns.cast_signed());
    pair.realtime_ns.checked_add_signed(since)
}
