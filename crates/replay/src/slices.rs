//! A trace as it was in one short time after the other, on one clock.
//!
//! All ends of messages and collectives come together that way without much in memory: what is read is as long as so many events take.

use std::sync::Arc;

use mpiprobe_trace::{LocationId, Part, Parts, ProcessId, ReadError, Row, Span, Trace};

use crate::{clock::Clocks, parallel};

/// Events of a slice that are aimed at: few enough to stay in a processor's cache, and of several threads enough to be worth theirs.
const AIM: u64 = 1 << 12;
const AIM_OF_THREAD: u64 = 1 << 15;
/// Rows of one location that are read at once, whatever the others do.
const MOST_OF_ONE: usize = 1 << 16;

/// All events that begin in a span of time.
#[derive(Debug, Default)]
pub struct Slice {
    /// What begins later is in the slices that follow; ns on the common clock.
    pub until_ns: u64,
    /// By process, if each has its own time in place of that; `until_ns` is the earliest of them.
    pub until_of: Vec<Until>,
    pub locations: Vec<LocationSlice>,
}

/// Until when everything is known that a process has begun. While a job runs, it may be in a call for long of which nobody knows the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until {
    /// What begins later is in the slices that follow.
    pub ns: u64,
    /// All that begins before this is known as well, but for one call that begins at `ns`. The same as `ns`: there is more.
    pub but_one_ns: u64,
}

impl Until {
    pub const fn all(ns: u64) -> Self {
        Self { ns, but_one_ns: ns }
    }
}

impl Slice {
    /// Until when everything is known that a process has begun.
    pub(crate) fn until_of(&self, process: ProcessId) -> u64 {
        self.known_of(process).ns
    }

    /// How far the one has come that has come furthest.
    pub(crate) fn latest_ns(&self) -> u64 {
        self.until_of.iter().map(|until| until.but_one_ns).fold(self.until_ns, u64::max)
    }

    pub(crate) fn known_of(&self, process: ProcessId) -> Until {
        self.until_of.get(process.index()).copied().unwrap_or(Until::all(self.until_ns))
    }

    /// How many events are in it.
    pub fn rows(&self) -> u64 {
        self.locations.iter().flat_map(|one| &one.parts).map(|part| part.rows.len() as u64).sum()
    }
}

/// Those of a location, in the order of time.
#[derive(Debug)]
pub struct LocationSlice {
    pub location: LocationId,
    pub parts: Vec<Part>,
}

/// See [`Slice`].
#[allow(missing_debug_implementations, reason = "it has iterators")]
pub struct Slices<'a> {
    clocks: &'a Clocks,
    readers: Vec<Reader<'a>>,
    threads: usize,
    from_ns: u64,
    width_ns: u64,
    aim: u64,
    damaged: u64,
}

struct Reader<'a> {
    location: LocationId,
    node: usize,
    parts: Option<Parts<'a>>,
    /// Read, and not in a slice yet.
    rest: Vec<Rest>,
    /// All of it has begun until then.
    known_until_ns: u64,
    damaged: u64,
    failed: Option<ReadError>,
    taken: Vec<Part>,
}

/// What is left of a part. However many slices it goes to, each row is copied once.
struct Rest {
    part: Part,
    /// So many of its rows and their changes were taken.
    rows: usize,
    changes: usize,
}

impl<'a> Slices<'a> {
    /// Of these locations, what of it is in a span on the common clock.
    pub fn new(
        trace: &'a dyn Trace,
        clocks: &'a Clocks,
        locations: impl IntoIterator<Item = LocationId>,
        span: Span,
        threads: usize,
    ) -> Self {
        let definitions = trace.definitions();
        let readers = locations.into_iter().map(|location| {
            let process = definitions.location(location).map(|location| location.process);
            let node = process.and_then(|id| definitions.process(id)).map_or(0, |process| process.node.index());
            let parts = trace.parts(location, clocks.own_span(node, span));
            Reader {
                location,
                node,
                parts: Some(parts),
                rest: Vec::new(),
                known_until_ns: 0,
                damaged: 0,
                failed: None,
                taken: Vec::new(),
            }
        });
        let readers: Vec<Reader<'_>> = readers.collect();
        let aim = if threads > 1 { AIM_OF_THREAD * threads as u64 } else { AIM };
        let aim = aim.max(readers.len() as u64 * 16);
        let whole = clocks.span(trace);
        let (from_ns, until_ns) = (whole.from_ns.max(span.from_ns), whole.until_ns.min(span.until_ns));
        let slices = (trace.event_count() / aim).max(1);
        let width_ns = (until_ns.saturating_sub(from_ns) / slices).max(1);
        Self { clocks, readers, threads, from_ns, width_ns, aim, damaged: 0 }
    }

    /// Aims at so many events.
    #[cfg(test)]
    pub(crate) fn aim(mut self, aim: u64) -> Self {
        self.width_ns = (self.width_ns.saturating_mul(aim) / self.aim).max(1);
        self.aim = aim;
        self
    }

    /// Parts of the trace that could not be read.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// The next slice; `None`: there is none.
    pub fn next_slice(&mut self) -> Result<Option<Slice>, ReadError> {
        loop {
            let wanted = self.from_ns.saturating_add(self.width_ns);
            let clocks = self.clocks;
            parallel::for_each(self.threads, &mut self.readers, |_, reader| reader.read_until(clocks, wanted));
            for reader in &mut self.readers {
                self.damaged += std::mem::take(&mut reader.damaged);
                if let Some(error) = reader.failed.take() {
                    return Err(error);
                }
            }
            if self.readers.iter().all(Reader::is_over) {
                return Ok(None);
            }
            let until_ns = self.readers.iter().map(|reader| reader.known_until_ns).fold(wanted, u64::min);
            parallel::for_each(self.threads, &mut self.readers, |_, reader| reader.split(until_ns));
            let locations: Vec<_> = self.readers.iter_mut().filter_map(Reader::take).collect();
            let slice = Slice { until_ns, until_of: Vec::new(), locations };
            self.adapt(slice.rows(), until_ns);
            if slice.rows() > 0 {
                return Ok(Some(slice));
            }
        }
    }

    fn adapt(&mut self, rows: u64, until_ns: u64) {
        self.from_ns = until_ns;
        if rows > self.aim * 2 {
            self.width_ns = (self.width_ns / 2).max(1);
        } else if rows < self.aim / 2 {
            self.width_ns = self.width_ns.saturating_mul(2);
        }
        if rows == 0 {
            // Nothing happened for some time.
            let next = self.readers.iter().filter_map(Reader::next_ns).min();
            self.from_ns = next.unwrap_or(until_ns).max(until_ns);
        }
    }
}

impl Reader<'_> {
    fn is_over(&self) -> bool {
        self.parts.is_none() && self.rest.is_empty()
    }

    fn next_ns(&self) -> Option<u64> {
        self.rest.first().and_then(|rest| rest.rows().first()).map(|row| row.begin_ns)
    }

    /// Reads until everything is there that begins before, or much.
    fn read_until(&mut self, clocks: &Clocks, until_ns: u64) {
        let mut rows: usize = self.rest.iter().map(|rest| rest.rows().len()).sum();
        // At the end of time there may be any number of them.
        while (self.known_until_ns < until_ns || until_ns == u64::MAX) && rows < MOST_OF_ONE {
            let Some(parts) = &mut self.parts else { break };
            match parts.next() {
                None => self.parts = None,
                Some(Ok(mut part)) => {
                    clocks.correct(self.node, &mut part.rows);
                    rows += part.rows.len();
                    let last = part.rows.iter().map(|row| row.begin_ns).max();
                    self.known_until_ns = self.known_until_ns.max(last.unwrap_or(0));
                    self.rest.push(Rest { part, rows: 0, changes: 0 });
                }
                Some(Err(ReadError::Damaged { .. })) => self.damaged += 1,
                Some(Err(error)) => {
                    self.parts = None;
                    self.failed = Some(error);
                }
            }
        }
        if self.parts.is_none() {
            self.known_until_ns = u64::MAX;
        } else if rows >= MOST_OF_ONE {
            // However many begin at one time, some of them are taken.
            self.known_until_ns = self.known_until_ns.max(self.next_ns().map_or(0, |first| first.saturating_add(1)));
        }
    }

    /// Moves to `taken` what begins before; at the end of time, everything.
    fn split(&mut self, until_ns: u64) {
        let is_before = |row: &Row| row.begin_ns < until_ns || until_ns == u64::MAX;
        let whole = self.rest.iter().take_while(|rest| rest.rows().last().is_none_or(is_before)).count();
        self.taken = self.rest.drain(..whole).map(Rest::whole).collect();
        if let Some(first) = self.rest.first_mut() {
            let rows = first.rows().iter().take_while(|row| is_before(row)).count();
            if rows > 0 {
                self.taken.push(first.split_front(rows));
            }
        }
    }

    fn take(&mut self) -> Option<LocationSlice> {
        let parts = std::mem::take(&mut self.taken);
        (!parts.is_empty()).then_some(LocationSlice { location: self.location, parts })
    }
}

impl Rest {
    fn rows(&self) -> &[Row] {
        self.part.rows.get(self.rows..).unwrap_or_default()
    }

    /// Takes so many rows away from the front.
    fn split_front(&mut self, rows: usize) -> Part {
        let rows = self.rows().get(..rows).unwrap_or_default().to_vec();
        let changes: usize = rows.iter().map(|row| row.changes as usize).sum();
        let of_rows = self.part.changes.get(self.changes..).unwrap_or_default();
        let of_rows = of_rows.get(..changes).unwrap_or(of_rows).to_vec();
        self.rows += rows.len();
        self.changes += of_rows.len();
        Part { shapes: Arc::clone(&self.part.shapes), rows, changes: of_rows }
    }

    fn whole(mut self) -> Part {
        if self.rows == 0 { self.part } else { self.split_front(self.rows().len()) }
    }
}

#[cfg(test)]
mod tests {
    use mpiprobe_trace::{HandMade, call};

    use super::*;

    /// Somebody may have written any times.
    #[test]
    fn slices_end_whatever_the_times_are() {
        let mut made = HandMade::of_ranks(2);
        for (entry, back) in [(0, u64::MAX), (u64::MAX, 3), (7, 7), (u64::MAX, u64::MAX), (u64::MAX - 1, u64::MAX)] {
            made.add(0, call("MPI_Barrier", entry, back));
            made.add(1, call("MPI_Barrier", back, entry));
        }
        let clocks = Clocks::same();
        let mut slices = Slices::new(&made, &clocks, made.definitions.location_ids(), Span::ALL, 1);
        let mut rows = 0;
        while let Some(slice) = slices.next_slice().unwrap() {
            rows += slice.rows();
        }
        assert_eq!(rows, 10);
    }
}
