//! What happens, thread by thread, as calls that begin and end: for formats that show it.

use std::{io, sync::Arc};

use mpiprobe_replay::{CallAt, Done, LocationSlice, Slice};
use mpiprobe_trace::{Call, ChangeRow, LocationId, PhaseChange, RequestChange, Row, Shape, Trace};

use crate::{
    error::ExportError,
    messages::{Message, Messages, replay},
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
    /// Messages that it sends, and that are received by a call that is written.
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
}

/// Calls that are open, by location, and what they have received.
struct Course<'a, W> {
    selection: &'a Selection<'a>,
    messages: &'a Messages<'a>,
    writer: &'a mut W,
    open: Vec<Vec<Open>>,
    exported: Exported,
    sends: Vec<Flow>,
    received: Vec<Flow>,
}

/// Shows a writer everything. `progress` is told of each event twice: whether a message has both ends is known only when all was seen, and
/// its beginning is shown with the call that sends it.
pub(crate) fn follow<W: Writer>(
    trace: &dyn Trace,
    selection: &Selection<'_>,
    writer: &mut W,
    progress: &dyn Fn(u64),
) -> Result<Exported, ExportError> {
    let definitions = trace.definitions();
    let messages = Messages::find(trace, selection, progress, &mut |_| Ok(()))?;
    let mut course = Course {
        selection,
        messages: &messages,
        writer,
        open: definitions.locations.iter().map(|_| Vec::new()).collect(),
        exported: Exported::default(),
        sends: Vec::new(),
        received: Vec::new(),
    };
    let (mut slices, mut matcher) = replay(trace, selection);
    while let Some(slice) = slices.next_slice()? {
        let found = received(matcher.take(&slice).done(), &messages);
        course.slice(&slice, found)?;
        progress(slice.rows());
    }
    let found = received(matcher.finish().done(), &messages);
    course.late(&found.into_iter().map(|one| (one, true)).collect::<Vec<_>>())?;
    for location in definitions.location_ids() {
        course.close(location, u64::MAX, &mut Vec::new())?;
    }
    course.exported.damaged = slices.damaged();
    course.exported.messages = messages.whole;
    course.exported.between_clocks = messages.between_clocks;
    course.exported.loose_ends = messages.loose_ends();
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

/// Those with both ends, in the order of locations and calls.
fn received<'a>(done: impl Iterator<Item = &'a Done>, messages: &Messages<'_>) -> Vec<Arrived> {
    let arrived = done.filter_map(|done| {
        let Message { send, received, .. } = messages.arrived(done)?;
        Some(Arrived {
            location: received.location,
            number: received.number,
            at_ns: received.return_ns,
            flow: flow_of(&send),
        })
    });
    let mut all: Vec<Arrived> = arrived.collect();
    all.sort_by_key(|one| (one.location, one.number));
    all
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
                        self.phase(location, &change)?;
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
        if !self.messages.shows(location, row) {
            // What was over before the span is not of it; all that is read has begun before its end.
            let span = self.selection.span;
            let is_cut = row.begin_ns < span.from_ns && row.end_ns >= span.from_ns || row.end_ns > span.until_ns;
            self.exported.cut_calls += u64::from(is_cut && self.selection.has(location));
            return Ok(());
        }
        if let Some(open) = self.open.get_mut(location.index()) {
            open.push(Open { number: row.number, end_ns: row.end_ns });
        }
        self.exported.calls += 1;
        let sends = &mut self.sends;
        sends.clear();
        self.messages.sent(location, row, call, changes, shapes, |nth| sends.push(flow(location, row.number, nth)));
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

    /// What a thread's phase is, if that is in the span.
    fn phase(&mut self, location: LocationId, change: &PhaseChange) -> io::Result<()> {
        let span = self.selection.span;
        let is_in = change.at_ns >= span.from_ns && change.at_ns <= span.until_ns;
        if is_in && self.selection.has(location) { self.writer.phase(location, change) } else { Ok(()) }
    }

    /// Ends calls that are over by then.
    fn close(&mut self, location: LocationId, ns: u64, arrived: &mut [(Arrived, bool)]) -> io::Result<()> {
        while let Some(open) = self.open.get_mut(location.index())
            && let Some(Open { number, end_ns }) = open.pop_if(|open| open.end_ns <= ns)
        {
            self.received.clear();
            let first = arrived.partition_point(|(one, _)| (one.location, one.number) < (location, number));
            let own = arrived.iter_mut().skip(first);
            for (one, is_left) in own.take_while(|(one, _)| (one.location, one.number) == (location, number)) {
                *is_left = false;
                self.received.push(one.flow);
            }
            self.writer.end(location, end_ns, &self.received)?;
        }
        Ok(())
    }

    fn late(&mut self, arrived: &[(Arrived, bool)]) -> io::Result<()> {
        for (one, _) in arrived.iter().filter(|(_, is_left)| *is_left) {
            self.writer.late(one.location, one.at_ns, one.flow)?;
        }
        Ok(())
    }
}
