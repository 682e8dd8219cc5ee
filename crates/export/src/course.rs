//! What happens, thread by thread, as calls that begin and end: for formats that show it.

use std::{cell::Cell, io, sync::Arc};

use mpiprobe_model::filter::Filter;
use mpiprobe_replay::{CallAt, Done, End, LocationSlice, Matcher, Slice, Slices};
use mpiprobe_trace::{
    Call, Change, ChangeRow, LocationId, Operation, Partner, PhaseChange, RequestChange, Row, Shape, Trace,
};

use crate::{
    error::ExportError,
    facts::Known,
    summary::{Exported, Selection},
};

/// A message: the same number for both of its ends.
pub(crate) type Flow = u64;

/// A call that begins.
pub(crate) struct Begun<'a> {
    pub(crate) location: LocationId,
    pub(crate) number: u64,
    pub(crate) begin_ns: u64,
    /// What it has in common with others: not its times, number and requests.
    pub(crate) call: &'a Call,
    pub(crate) request: Option<u64>,
    pub(crate) changes: &'a [ChangeRow],
    pub(crate) shapes: &'a Arc<[Shape]>,
    /// Messages that it sends.
    pub(crate) sends: &'a [Flow],
}

impl Begun<'_> {
    /// What has become of requests by it.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (u64, &RequestChange)> {
        self.changes.iter().filter_map(|change| match self.shapes.get(change.shape as usize)? {
            Shape::Change(shape) => Some((change.request, shape)),
            _ => None,
        })
    }
}

/// Whoever writes that down. Calls of a location nest, and their times do not go back.
pub(crate) trait Writer {
    fn begin(&mut self, begun: &Begun<'_>) -> io::Result<()>;

    /// The innermost call of a location ends, and has received messages.
    fn end(&mut self, location: LocationId, ns: u64, received: &[Flow]) -> io::Result<()>;

    /// A message whose receive has been written already.
    fn late(&mut self, location: LocationId, ns: u64, received: Flow) -> io::Result<()>;

    fn phase(&mut self, location: LocationId, change: &PhaseChange) -> io::Result<()>;
}

struct Open {
    number: u64,
    end_ns: u64,
    is_shown: bool,
}

/// Calls that are open, by location, and what they have received.
struct Course<'a, W> {
    selection: &'a Selection<'a>,
    filter: Option<(&'a Filter, Known<'a>)>,
    writer: &'a mut W,
    open: Vec<Vec<Open>>,
    exported: Exported,
    sends: Vec<Flow>,
    received: Vec<Flow>,
}

/// Shows a writer everything.
pub(crate) fn follow<W: Writer>(
    trace: &dyn Trace,
    selection: &Selection<'_>,
    writer: &mut W,
    progress: &dyn Fn(u64),
) -> Result<Exported, ExportError> {
    let Selection { clocks, span, threads, .. } = *selection;
    let definitions = trace.definitions();
    let locations = definitions.location_ids().filter(|&location| selection.has(location));
    let mut slices = Slices::new(trace, clocks, locations, span, threads);
    let mut matcher = Matcher::new(definitions, clocks, span.from_ns > 0, threads);
    let mut course = Course {
        selection,
        filter: selection.filter.map(|filter| (filter, Known::new(definitions))),
        writer,
        open: definitions.locations.iter().map(|_| Vec::new()).collect(),
        exported: Exported::default(),
        sends: Vec::new(),
        received: Vec::new(),
    };
    let between = Cell::new(0);
    let compares = |done: &Done, send: &CallAt| {
        let can = clocks.between_ns(definitions, done.call.location, send.location).is_some();
        between.set(between.get() + u64::from(!can));
        can
    };
    while let Some(slice) = slices.next_slice()? {
        let found = received(matcher.take(&slice).done(), &compares);
        course.slice(&slice, found)?;
        progress(slice.rows());
    }
    let found = received(matcher.finish().done(), &compares);
    course.late(&found.into_iter().map(|one| (one, true)).collect::<Vec<_>>())?;
    for location in definitions.location_ids() {
        course.close(location, u64::MAX, &mut Vec::new())?;
    }
    course.exported.damaged = slices.damaged();
    let ends = matcher.unmatched();
    course.exported.messages = ends.matched - between.get();
    course.exported.between_clocks = between.get();
    course.exported.loose_ends = ends.sends + ends.receives + ends.outside + ends.of_unknown_source + ends.unsure;
    Ok(course.exported)
}

/// A message that has arrived: which call has received it, and when it was over.
#[derive(Clone, Copy)]
struct Arrived {
    location: LocationId,
    number: u64,
    at_ns: u64,
    flow: Flow,
}

/// In the order of locations and calls.
fn received<'a>(done: impl Iterator<Item = &'a Done>, compares: &dyn Fn(&Done, &CallAt) -> bool) -> Vec<Arrived> {
    let arrived = done.filter_map(|done| match done.end {
        End::Received { send, .. } if compares(done, &send) => Some(Arrived {
            location: done.call.location,
            number: done.call.number,
            at_ns: done.call.return_ns,
            flow: flow_of(&send),
        }),
        _ => None,
    });
    let mut all: Vec<Arrived> = arrived.collect();
    all.sort_by_key(|one| (one.location, one.number));
    all
}

/// What a collective call moves is no message.
fn sends_message(operation: &Operation) -> bool {
    operation.send.is_some_and(|send| matches!(send.partner, Partner::Rank(_)))
}

fn flow_of(send: &CallAt) -> Flow {
    flow(send.location, send.number, send.nth)
}

/// Of what a call has sent: there is room for a million threads, 16 thousand million calls of each, and a thousand messages of a call.
fn flow(location: LocationId, number: u64, nth: u16) -> Flow {
    (u64::from(location.0) + 1) << 44 ^ number << 10 ^ u64::from(nth)
}

impl<W: Writer> Course<'_, W> {
    fn slice(&mut self, slice: &Slice, arrived: Vec<Arrived>) -> io::Result<()> {
        let mut arrived: Vec<(Arrived, bool)> = arrived.into_iter().map(|one| (one, true)).collect();
        for of_location in &slice.locations {
            self.location(of_location, &mut arrived)?;
        }
        let count = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        for location in (0..count).map(LocationId) {
            // What ends later has not told yet what it has received.
            self.close(location, slice.until_ns.saturating_sub(1), &mut arrived)?;
        }
        self.late(&arrived)
    }

    fn location(&mut self, slice: &LocationSlice, arrived: &mut [(Arrived, bool)]) -> io::Result<()> {
        let location = slice.location;
        for part in &slice.parts {
            let mut changes = part.changes.as_slice();
            for row in &part.rows {
                let (of_row, rest) = changes.split_at(changes.len().min(row.changes as usize));
                changes = rest;
                self.close(location, row.begin_ns, arrived)?;
                match part.shapes.get(row.shape as usize) {
                    Some(Shape::Phase(change)) => {
                        let change = PhaseChange { at_ns: row.begin_ns, ..change.clone() };
                        self.writer.phase(location, &change)?;
                    }
                    Some(Shape::Call { call, posts }) => {
                        let request = posts.then_some(row.request);
                        self.call(location, row, call, request, of_row, &part.shapes)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        location: LocationId,
        row: &Row,
        call: &Call,
        request: Option<u64>,
        changes: &[ChangeRow],
        shapes: &Arc<[Shape]>,
    ) -> io::Result<()> {
        let span = self.selection.span;
        let is_in = row.begin_ns >= span.from_ns && row.end_ns <= span.until_ns;
        let is_kept = || {
            let Some((filter, known)) = &self.filter else { return true };
            filter.keeps(&known.facts(location, row, call))
        };
        let is_shown = is_in && is_kept();
        self.exported.cut_calls += u64::from(!is_in);
        if let Some(open) = self.open.get_mut(location.index()) {
            open.push(Open { number: row.number, end_ns: row.end_ns, is_shown });
        }
        if !is_shown {
            return Ok(());
        }
        self.exported.calls += 1;
        self.sends.clear();
        if sends_message(&call.operation) {
            self.sends.push(flow(location, row.number, 0));
        }
        for (nth, change) in (0..).zip(changes) {
            if let Some(Shape::Change(RequestChange { change: Change::Started, operation, .. })) =
                shapes.get(change.shape as usize)
                && sends_message(operation)
            {
                self.sends.push(flow(location, row.number, nth));
            }
        }
        self.writer.begin(&Begun {
            location,
            number: row.number,
            begin_ns: row.begin_ns,
            call,
            request,
            changes,
            shapes,
            sends: &self.sends,
        })
    }

    /// Ends calls that are over by then.
    fn close(&mut self, location: LocationId, ns: u64, arrived: &mut [(Arrived, bool)]) -> io::Result<()> {
        while let Some(open) = self.open.get_mut(location.index())
            && let Some(Open { number, end_ns, is_shown }) = open.pop_if(|open| open.end_ns <= ns)
        {
            self.received.clear();
            let first = arrived.partition_point(|(one, _)| (one.location, one.number) < (location, number));
            let own = arrived.iter_mut().skip(first);
            for (one, is_left) in own.take_while(|(one, _)| (one.location, one.number) == (location, number)) {
                *is_left = false;
                self.received.push(one.flow);
            }
            if is_shown {
                self.writer.end(location, end_ns, &self.received)?;
            }
        }
        Ok(())
    }

    fn late(&mut self, arrived: &[(Arrived, bool)]) -> io::Result<()> {
        let span = self.selection.span;
        for (one, _) in arrived.iter().filter(|(one, is_left)| *is_left && one.at_ns <= span.until_ns) {
            self.writer.late(one.location, one.at_ns, one.flow)?;
        }
        Ok(())
    }
}
