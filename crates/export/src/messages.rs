//! Which messages have both of their ends in what is exported.
//!
//! Ends come together by MPI's rules of order only if everything is followed that came before, in all processes. So a trace is replayed from
//! its beginning up to the end of the span, whatever of it is written.

use std::io;

use hashbrown::HashMap;
use mpiprobe_functions::{Communication, Operation as When};
use mpiprobe_model::filter::Filter;
use mpiprobe_replay::{CallAt, Done, End, LocationSlice, Matcher, Slices, communication};
use mpiprobe_trace::{
    Call, Change, ChangeRow, Definitions, LocationId, Operation, Partner, RequestChange, Row, Shape, Span, Trace,
    Transfer,
};

use crate::{
    error::ExportError,
    facts::{self, Known, Moved},
    summary::Selection,
};

/// Words of a page of marks: calls that a thread makes one after the other are in one page.
const WORDS: usize = 8;

/// Calls, or what calls have begun, by a bit each.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// By location, place among what its call has begun, and page.
    pages: HashMap<(LocationId, u16, u64), [u64; WORDS]>,
}

impl Marks {
    fn place(location: LocationId, number: u64, nth: u16) -> ((LocationId, u16, u64), usize, u64) {
        let word = number / 64;
        ((location, nth, word / WORDS as u64), (word % WORDS as u64) as usize, 1 << (number % 64))
    }

    fn set(&mut self, location: LocationId, number: u64, nth: u16) {
        let (key, word, bit) = Self::place(location, number, nth);
        if let Some(word) = self.pages.entry(key).or_default().get_mut(word) {
            *word |= bit;
        }
    }

    fn unset(&mut self, location: LocationId, number: u64, nth: u16) {
        let (key, word, bit) = Self::place(location, number, nth);
        let Some(page) = self.pages.get_mut(&key) else { return };
        if let Some(word) = page.get_mut(word) {
            *word &= !bit;
        }
        // A page that says nothing takes no memory.
        if page.iter().all(|&word| word == 0) {
            self.pages.remove(&key);
        }
    }

    fn has(&self, location: LocationId, number: u64, nth: u16) -> bool {
        let (key, word, bit) = Self::place(location, number, nth);
        self.pages.get(&key).and_then(|page| page.get(word)).is_some_and(|word| word & bit != 0)
    }
}

/// A message with both of its ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) send: CallAt,
    /// The call that has posted the receive.
    pub(crate) posted: CallAt,
    /// The call by which the receive was complete.
    pub(crate) received: CallAt,
}

/// What has become of a message.
enum Fate {
    Whole(Message),
    /// Both ends are exported, and nothing compares their clocks.
    BetweenClocks,
    /// One end is, or none.
    Half,
}

/// Which calls are exported.
struct Chosen<'a> {
    selection: &'a Selection<'a>,
    definitions: &'a Definitions,
    /// Those that the filter keeps; `None`: there is none.
    kept: Option<Marks>,
}

impl Chosen<'_> {
    fn is_in_span(&self, begin_ns: u64, end_ns: u64) -> bool {
        let span = self.selection.span;
        begin_ns >= span.from_ns && end_ns <= span.until_ns
    }

    fn has(&self, location: LocationId, number: u64, begin_ns: u64, end_ns: u64) -> bool {
        self.selection.has(location)
            && self.is_in_span(begin_ns, end_ns)
            && self.kept.as_ref().is_none_or(|kept| kept.has(location, number, 0))
    }

    fn has_call(&self, call: &CallAt) -> bool {
        self.has(call.location, call.number, call.entry_ns, call.return_ns)
    }

    /// `None`: it is about no message that has arrived.
    fn fate(&self, done: &Done) -> Option<Fate> {
        let End::Received { send, posted } = done.end else { return None };
        // What was posted before the span is cut by it, as in all formats.
        let is_posted = self.is_in_span(posted.entry_ns, posted.return_ns);
        if !(is_posted && self.has_call(&send) && self.has_call(&done.call)) {
            return Some(Fate::Half);
        }
        let clocks = self.selection.clocks;
        let Some(_) = clocks.between_ns(self.definitions, send.location, done.call.location) else {
            return Some(Fate::BetweenClocks);
        };
        Some(Fate::Whole(Message { send, posted, received: done.call }))
    }
}

/// What was found of all messages.
pub(crate) struct Messages<'a> {
    chosen: Chosen<'a>,
    /// Sends of exported calls without the other end.
    loose: Marks,
    /// By which partitioned messages were whole: of the calls that have made parts ready, the last one of each.
    ready: Marks,
    /// Those with both ends.
    pub(crate) whole: u64,
    pub(crate) between_clocks: u64,
    /// Sends and receives of exported calls.
    sends: u64,
    receives: u64,
}

impl<'a> Messages<'a> {
    /// Replays a trace, and hands on each message that has both ends, once. It takes as much memory as messages are under way at once, a bit
    /// for each send without another end and, of a filter, for each call that it keeps.
    pub(crate) fn find(
        trace: &'a dyn Trace,
        selection: &'a Selection<'a>,
        progress: &dyn Fn(u64),
        take: &mut dyn FnMut(&Message) -> io::Result<()>,
    ) -> Result<Self, ExportError> {
        let definitions = trace.definitions();
        let filter = selection.filter.map(|filter| (filter, Known::new(definitions)));
        let mut found = Self {
            chosen: Chosen { selection, definitions, kept: filter.as_ref().map(|_| Marks::default()) },
            loose: Marks::default(),
            ready: Marks::default(),
            whole: 0,
            between_clocks: 0,
            sends: 0,
            receives: 0,
        };
        let (mut slices, mut matcher) = replay(trace, selection);
        while let Some(slice) = slices.next_slice()? {
            slice.locations.iter().for_each(|location| found.location(location, filter.as_ref()));
            found.done(matcher.take(&slice).done(), take)?;
            progress(slice.rows());
        }
        found.done(matcher.finish().done(), take)?;
        Ok(found)
    }

    fn location(&mut self, slice: &LocationSlice, filter: Option<&(&Filter, Known<'_>)>) {
        let location = slice.location;
        if !self.chosen.selection.has(location) {
            return;
        }
        for part in &slice.parts {
            let mut changes = part.changes.as_slice();
            for row in &part.rows {
                let (own, rest) = changes.split_at(changes.len().min(row.changes as usize));
                changes = rest;
                let Some(Shape::Call { call, posts }) = part.shapes.get(row.shape as usize) else { continue };
                if !self.chosen.is_in_span(row.begin_ns, row.end_ns) {
                    continue;
                }
                if let (Some((filter, known)), Some(kept)) = (filter, &mut self.chosen.kept) {
                    let moved = Moved::of(call, *posts, &facts::changed(own, &part.shapes));
                    if !filter.keeps(&known.facts(location, row, call, moved)) {
                        continue;
                    }
                    kept.set(location, row.number, 0);
                }
                for nth in sends(call, own, &part.shapes) {
                    self.sends += 1;
                    self.loose.set(location, row.number, nth);
                }
                let (sends, receives) = completed(call, *posts, own, &part.shapes);
                self.sends += sends;
                self.receives += receives;
            }
        }
    }

    fn done<'d>(
        &mut self,
        done: impl Iterator<Item = &'d Done>,
        take: &mut dyn FnMut(&Message) -> io::Result<()>,
    ) -> io::Result<()> {
        for done in done {
            match self.chosen.fate(done) {
                Some(Fate::Whole(message)) => {
                    let CallAt { location, number, nth, .. } = message.send;
                    self.loose.unset(location, number, nth);
                    if is_partitioned(&message) {
                        self.ready.set(location, number, nth);
                    }
                    self.whole += 1;
                    take(&message)?;
                }
                Some(Fate::BetweenClocks) => self.between_clocks += 1,
                Some(Fate::Half) | None => {}
            }
        }
        Ok(())
    }

    /// Sends and receives whose other end is not exported.
    pub(crate) fn loose_ends(&self) -> u64 {
        let told = self.whole + self.between_clocks;
        self.sends.saturating_sub(told) + self.receives.saturating_sub(told)
    }

    /// Whether a call is exported.
    pub(crate) fn shows(&self, location: LocationId, row: &Row) -> bool {
        self.chosen.has(location, row.number, row.begin_ns, row.end_ns)
    }

    /// The message that is told to have arrived, if it has both ends.
    pub(crate) fn arrived(&self, done: &Done) -> Option<Message> {
        match self.chosen.fate(done) {
            Some(Fate::Whole(message)) => Some(message),
            _ => None,
        }
    }

    /// Of what an exported call has begun, the places of messages that have both ends.
    pub(crate) fn sent(
        &self,
        location: LocationId,
        row: &Row,
        call: &Call,
        changes: &[ChangeRow],
        shapes: &[Shape],
        take: impl FnMut(u16),
    ) {
        let number = row.number;
        let ordinary = sends(call, changes, shapes).filter(|&nth| !self.loose.has(location, number, nth));
        let parts = changed(changes, shapes).filter(|(_, change)| change.change == Change::Ready).map(|(nth, _)| nth);
        ordinary.chain(parts.filter(|&nth| self.ready.has(location, number, nth))).for_each(take);
    }
}

/// What shows a trace from its beginning to the end of the span, and what brings ends together in it.
pub(crate) fn replay<'a>(trace: &'a dyn Trace, selection: &'a Selection<'a>) -> (Slices<'a>, Matcher) {
    let Selection { clocks, span, threads, .. } = *selection;
    let definitions = trace.definitions();
    let until = Span { from_ns: 0, until_ns: span.until_ns };
    let slices = Slices::new(trace, clocks, definitions.location_ids(), until, threads);
    (slices, Matcher::new(definitions, clocks, false, threads))
}

fn is_partitioned(message: &Message) -> bool {
    // The call by which the last part was ready is the send: it has posted nothing itself.
    message.send.function.function().name.starts_with("MPI_Pready")
}

fn changed<'a>(changes: &'a [ChangeRow], shapes: &'a [Shape]) -> impl Iterator<Item = (u16, &'a RequestChange)> {
    (0u16..).zip(changes).filter_map(|(nth, change)| match shapes.get(change.shape as usize)? {
        Shape::Change(change) => Some((nth, change)),
        _ => None,
    })
}

fn is_message(operation: &Operation) -> bool {
    use Communication::{Exchange, MatchedReceive, Receive, Send};
    matches!(communication(operation.function), Send(_) | Receive | Exchange | MatchedReceive)
}

fn is_to_somebody(transfer: Option<Transfer>) -> bool {
    transfer.is_some_and(|transfer| transfer.partner != Partner::Null)
}

fn is_send(operation: &Operation) -> bool {
    is_message(operation) && is_to_somebody(operation.send)
}

/// The places of the messages that a call sends, but for partitioned ones, as the matcher names them.
fn sends<'a>(call: &Call, changes: &'a [ChangeRow], shapes: &'a [Shape]) -> impl Iterator<Item = u16> + use<'a> {
    // What has failed has moved nothing, and what is persistent is sent when it is started.
    let is_own =
        call.result == 0 && call.function().function().operation != When::Persistent && is_send(&call.operation);
    let started = changed(changes, shapes).filter(|(_, one)| one.change == Change::Started && is_send(&one.operation));
    is_own.then_some(0).into_iter().chain(started.map(|(nth, _)| nth))
}

/// How many partitioned sends and how many receives are complete by a call.
fn completed(call: &Call, posts: bool, changes: &[ChangeRow], shapes: &[Shape]) -> (u64, u64) {
    if !call.has_returned {
        return (0, 0);
    }
    let operation = &call.operation;
    let is_receive = |operation: &Operation| {
        is_to_somebody(operation.receive)
            && (is_message(operation) || communication(operation.function) == Communication::PartitionedReceive)
    };
    let is_at_once = !posts
        && call.result == 0
        && call.function().function().operation == When::Blocking
        && is_message(operation)
        && is_receive(operation);
    if communication(operation.function) == Communication::MatchedReceive && !changes.is_empty() {
        // The message that a probe has found, by its request, is the one that is received.
        return (0, u64::from(is_at_once));
    }
    let (mut sends, mut receives) = (0, u64::from(is_at_once));
    for (_, RequestChange { operation, .. }) in
        changed(changes, shapes).filter(|(_, one)| one.change == Change::Completed)
    {
        let is_partitioned = communication(operation.function) == Communication::PartitionedSend;
        sends += u64::from(is_partitioned && is_to_somebody(operation.send));
        receives += u64::from(is_receive(operation));
    }
    (sends, receives)
}
