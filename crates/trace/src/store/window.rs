//! The last part of a trace that is written, or would be: its chunks by reference, for whoever looks at what happens now.

use std::{
    io::Write,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    definition::Definition,
    dump::Dump,
    error::WriteError,
    flight_span::FlightSpan,
    kept::Kept,
    relay::Relay,
    stored::{Keeper, Stored},
    writer::TraceWriter,
};
use crate::{
    definitions::LocationId,
    event::{Event, PhaseChange},
};

/// The latest chunks of a trace, within so much memory: the oldest are dropped whole. Whoever writes is held up for no longer than it takes
/// to copy references.
#[derive(Debug)]
pub struct Window {
    limit: u64,
    /// What is kept at most, if there is more room.
    span: Option<FlightSpan>,
    now: Mutex<Now>,
    /// Somebody looks.
    is_watched: AtomicBool,
    /// Those who keep the same elsewhere. Taken before `now`, so that they are told of all in its order.
    relays: Mutex<Vec<Relay>>,
}

#[derive(Clone, Debug, Default)]
struct Now {
    kept: Kept,
    open_calls: Vec<(LocationId, Event)>,
    /// Calls that had returned by then are there, ns.
    known_until_ns: u64,
    /// When the chunk began that began last, ns. Not its end: that may be the end of a call that its process's end has cut short, which may have been
    /// open for long, and what came before it is what is asked for.
    newest_ns: u64,
    /// Something was dropped for want of room.
    is_short: bool,
    /// Raised with whatever is new.
    version: u64,
}

/// What was in a window at one moment.
#[derive(Debug)]
pub struct WindowMoment {
    pub dump: Dump,
    /// Calls that had returned by then are in it, ns. Of what came later there may be some.
    pub known_until_ns: u64,
    /// What was before it is gone.
    pub is_short: bool,
    /// Another one is later.
    pub version: u64,
}

impl Window {
    /// `limit`: how much memory chunks may take, bytes. It is more only by what somebody still looks at that has been dropped.
    pub fn new(limit: u64) -> Self {
        Self { limit, span: None, now: Mutex::default(), is_watched: AtomicBool::new(false), relays: Mutex::default() }
    }

    /// One that keeps that, and besides it what its chunks have in addition, before the last chunk of all began: of a job that hangs, what came before
    /// that is kept.
    pub fn of_span(span: FlightSpan, limit: u64) -> Self {
        Self { span: Some(span), ..Self::new(limit) }
    }

    /// Takes over what somebody else has kept before.
    pub(super) fn begin_with(&self, kept: Kept, is_short: bool) {
        let mut now = self.lock();
        (now.kept, now.is_short) = (kept, is_short);
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn relays(&self) -> MutexGuard<'_, Vec<Relay>> {
        self.relays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells those who keep the same elsewhere that what there is now is to be kept, and why.
    pub fn want(&self, why: &str) {
        self.relays().retain_mut(|relay| relay.want(why));
    }

    /// Calls that had returned by then have been given, and those are open.
    pub fn note(&self, known_until_ns: u64, open_calls: Vec<(LocationId, Event)>) {
        let mut relays = self.relays();
        relays.retain_mut(|relay| relay.note(known_until_ns, &open_calls));
        let mut now = self.lock();
        let from_ns = now.kept.oldest_ns().unwrap_or(known_until_ns);
        now.kept.known.forget_pairs(from_ns);
        now.known_until_ns = now.known_until_ns.max(known_until_ns);
        now.open_calls = open_calls;
        now.version += 1;
    }

    /// Whether somebody looks, for whom it is worth while to find out which calls are open.
    pub fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed) || !self.relays().is_empty()
    }

    /// Somebody looks from now on, or does not any more.
    pub fn watch(&self, is_watched: bool) {
        self.is_watched.store(is_watched, Ordering::Relaxed);
    }

    /// Tells somebody who keeps the same of all that there is, and of what comes from now on. `to` gives whether more is wanted, and must not
    /// wait: the recording would.
    pub fn relay(&self, to: impl FnMut(&[u8]) -> bool + Send + 'static) -> Result<(), WriteError> {
        let mut relays = self.relays();
        let Now { kept, open_calls, known_until_ns, .. } = self.lock().clone();
        let begun = Relay::begin(&kept, Box::new(to))?;
        relays.extend(begun.and_then(|mut relay| relay.note(known_until_ns, &open_calls).then_some(relay)));
        Ok(())
    }

    /// See [`WindowMoment::version`].
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// Whether something was dropped for want of room.
    pub fn is_short(&self) -> bool {
        self.lock().is_short
    }

    /// How much memory chunks take, bytes.
    pub fn bytes(&self) -> u64 {
        self.lock().kept.bytes()
    }

    /// All that is in it now. What is written meanwhile is not held up by what is made of it.
    pub fn moment(&self) -> Result<WindowMoment, WriteError> {
        let Now { kept, open_calls, known_until_ns, is_short, version, .. } = self.lock().clone();
        Ok(WindowMoment { dump: kept.dump(&open_calls)?, known_until_ns, is_short, version })
    }
}

impl Keeper for Window {
    fn define(&self, definition: Definition) {
        let mut relays = self.relays();
        relays.iter_mut().for_each(|relay| relay.define(&definition));
        self.lock().kept.define(definition);
    }

    fn keep(&self, stored: Stored, calls: u64, phase: Option<PhaseChange>) {
        let mut relays = self.relays();
        relays.retain_mut(|relay| relay.keep(&stored));
        let mut now = self.lock();
        // What was open when that was noted, and has returned since, is in the chunk.
        let (thread, until_ns) = (LocationId(stored.head.location), stored.head.until_ns);
        now.open_calls.retain(|(location, event)| *location != thread || event.time_ns() >= until_ns);
        now.newest_ns = now.newest_ns.max(stored.head.from_ns);
        let process = now.kept.keep(stored, calls, phase);
        match (self.span, process) {
            (Some(FlightSpan::Time(span)), _) => {
                let from_ns = now.newest_ns.saturating_sub(span);
                now.kept.drop_before(from_ns);
            }
            (Some(FlightSpan::Calls(calls)), Some(process)) => now.kept.drop_beyond(process, calls),
            (Some(FlightSpan::Calls(_)), None) | (None, _) => {}
        }
        now.is_short |= now.kept.make_room(self.limit, 0);
        now.version += 1;
    }
}

impl<W: Write> TraceWriter<W> {
    /// Begins a file, of which the last chunks are in a window, too.
    pub fn with_window(to: W, window: Arc<Window>) -> Result<Self, WriteError> {
        Self::with_keeper(to, window)
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
