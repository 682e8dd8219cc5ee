//! Which messages go from lane to lane, and who waits for whom.

use std::{cmp::Reverse, collections::BinaryHeap};

use mpiprobe_functions::Pattern;
use mpiprobe_model::WaitKind;
use mpiprobe_trace::{Definitions, LocationId, ReadError, Span, Trace};

use super::painter::likely_events;
use crate::{
    clock::Clocks,
    matching::{CallAt, Done, End, Instance, InstanceKind, Matched, Matcher},
    parallel::threads,
    slices::Slices,
};

/// Messages that are kept of a span.
const MOST: usize = 1 << 16;
/// Waits that are kept, the longest.
const LONGEST: usize = 64;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub send: CallAt,
    /// The call that has posted the receive.
    pub posted: CallAt,
    /// The call that has completed it.
    pub done: CallAt,
}

/// That a call has waited for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitSeen {
    pub ns: u64,
    pub kind: WaitKind,
    pub call: CallAt,
    /// The call that has come late.
    pub cause: CallAt,
}

/// What has come together in a span.
#[derive(Clone, Debug)]
pub struct Messages {
    pub span: Span,
    /// In the order in which they have arrived.
    pub messages: Vec<Message>,
    /// So many more are in the span.
    pub more: u64,
    /// Messages between nodes whose clocks nothing compares, which are not among them.
    pub between_clocks: u64,
    /// The longest ones, the longest first.
    pub waits: Vec<WaitSeen>,
    /// What is before the span has not been gone through from the beginning: until all have come together for the first time, it is not
    /// known which ends belong together.
    pub from_middle: bool,
}

/// Looks for messages in a span.
#[allow(missing_debug_implementations, reason = "it has iterators")]
pub struct Matching<'a> {
    slices: Slices<'a>,
    matcher: Matcher,
    trace: &'a dyn Trace,
    clocks: &'a Clocks,
    begin_ns: u64,
    now_ns: u64,
    until_ns: u64,
    found: Messages,
    waits: BinaryHeap<Reverse<(u64, usize)>>,
    seen: Vec<WaitSeen>,
}

impl<'a> Matching<'a> {
    /// Events that are gone through at most, unless one says otherwise.
    pub const MOST_EVENTS: u64 = 20_000_000;

    /// `None`: there is too much in the span.
    pub fn new(trace: &'a dyn Trace, clocks: &'a Clocks, span: Span) -> Option<Self> {
        Self::within(trace, clocks, span, Self::MOST_EVENTS)
    }

    /// The same, going through no more than about so many events.
    pub fn within(trace: &'a dyn Trace, clocks: &'a Clocks, span: Span, most_events: u64) -> Option<Self> {
        let definitions = trace.definitions();
        let whole = clocks.span(trace);
        let length = span.until_ns.saturating_sub(span.from_ns);
        // Messages that arrive later than the span leave it at its end.
        let until_ns = span.until_ns.saturating_add(length / 2).min(whole.until_ns);
        let (mut from_ns, mut from_middle) = (whole.from_ns, false);
        if likely_events(trace, clocks, Span { from_ns, until_ns }) > most_events {
            let own = likely_events(trace, clocks, Span { from_ns: span.from_ns, until_ns });
            let spare = most_events.checked_sub(own)?;
            let each = (whole.until_ns.saturating_sub(whole.from_ns)) as f64 / trace.event_count().max(1) as f64;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "part of the span of a trace")]
            let before = (spare as f64 * each) as u64;
            (from_ns, from_middle) = (span.from_ns.saturating_sub(before).max(whole.from_ns), true);
        }
        let read = Span { from_ns, until_ns };
        let threads = threads();
        Some(Self {
            slices: Slices::new(trace, clocks, definitions.location_ids(), read, threads),
            matcher: Matcher::new(definitions, clocks, from_middle, threads),
            trace,
            clocks,
            begin_ns: from_ns,
            now_ns: from_ns,
            until_ns,
            found: Messages { span, messages: Vec::new(), more: 0, between_clocks: 0, waits: Vec::new(), from_middle },
            waits: BinaryHeap::new(),
            seen: Vec::new(),
        })
    }

    /// How much of it has been gone through, from 0 to 1.
    pub fn done(&self) -> f64 {
        let length = |until: u64| until.saturating_sub(self.begin_ns) as f64;
        (length(self.now_ns) / length(self.until_ns).max(1.0)).min(1.0)
    }

    /// Goes a little further; `Some`: all that there is.
    pub fn step(&mut self) -> Result<Option<Messages>, ReadError> {
        let Self { slices, matcher, trace, clocks, found, waits, seen, .. } = self;
        let mut kept = Kept { definitions: trace.definitions(), clocks, found, waits, seen };
        let Some(slice) = slices.next_slice()? else {
            kept.take(matcher.finish());
            waits.clear();
            found.waits = std::mem::take(seen);
            found.waits.sort_by_key(|wait| (Reverse(wait.ns), wait.call.entry_ns, wait.call.location));
            let span = found.span;
            let empty = Messages {
                span,
                messages: Vec::new(),
                more: 0,
                between_clocks: 0,
                waits: Vec::new(),
                from_middle: false,
            };
            return Ok(Some(std::mem::replace(found, empty)));
        };
        self.now_ns = slice.until_ns;
        kept.take(matcher.take(&slice));
        Ok(None)
    }
}

struct Kept<'a> {
    definitions: &'a Definitions,
    clocks: &'a Clocks,
    found: &'a mut Messages,
    waits: &'a mut BinaryHeap<Reverse<(u64, usize)>>,
    seen: &'a mut Vec<WaitSeen>,
}

impl Kept<'_> {
    fn take(&mut self, matched: Matched<'_>) {
        matched.done().for_each(|done| self.message(done));
        matched.instances.iter().for_each(|instance| self.collective(instance));
    }

    fn message(&mut self, done: &Done) {
        let End::Received { send, posted } = done.end else { return };
        let span = self.found.span;
        if self.clocks.between_ns(self.definitions, send.location, done.call.location).is_none() {
            self.found.between_clocks += 1;
            return;
        }
        if done.waited {
            let ns = send.entry_ns.min(done.call.return_ns).saturating_sub(done.call.entry_ns);
            self.wait(WaitSeen { ns, kind: WaitKind::LateSender, call: done.call, cause: send });
        }
        if done.call.return_ns < span.from_ns || send.entry_ns > span.until_ns {
            return;
        }
        if self.found.messages.len() < MOST {
            self.found.messages.push(Message { send, posted, done: done.call });
        } else {
            self.found.more += 1;
        }
    }

    /// Only those are looked at in which it is certain who needs something of whom.
    fn collective(&mut self, instance: &Instance) {
        if !instance.is_blocking || instance.kind != InstanceKind::Ordinary || instance.within_ns.is_none() {
            return;
        }
        let last = match instance.pattern {
            Pattern::Barrier | Pattern::AllToAll if instance.synchronises() => {
                instance.members.iter().max_by_key(|member| member.call.entry_ns)
            }
            Pattern::OneToAll => instance.members.iter().find(|member| member.is_root && member.sends),
            _ => None,
        };
        let Some(last) = last else { return };
        let kind = match instance.pattern {
            Pattern::Barrier => WaitKind::Barrier,
            Pattern::AllToAll => WaitKind::AllToAll,
            _ => WaitKind::LateBroadcast,
        };
        let others = instance.members.iter().filter(|member| member.process != last.process);
        // A barrier moves nothing.
        for member in others.filter(|member| member.receives || kind == WaitKind::Barrier) {
            let ns = last.call.entry_ns.min(member.call.return_ns).saturating_sub(member.call.entry_ns);
            self.wait(WaitSeen { ns, kind, call: member.call, cause: last.call });
        }
    }

    fn wait(&mut self, wait: WaitSeen) {
        let span = self.found.span;
        let within_ns = self.clocks.between_ns(self.definitions, wait.call.location, wait.cause.location);
        let is_sure = within_ns.is_some_and(|within_ns| wait.ns > within_ns);
        if !is_sure || wait.call.return_ns < span.from_ns || wait.call.entry_ns > span.until_ns {
            return;
        }
        if self.waits.len() < LONGEST {
            self.waits.push(Reverse((wait.ns, self.seen.len())));
            self.seen.push(wait);
        } else if let Some(&Reverse((least, place))) = self.waits.peek()
            && least < wait.ns
        {
            self.waits.pop();
            self.waits.push(Reverse((wait.ns, place)));
            if let Some(old) = self.seen.get_mut(place) {
                *old = wait;
            }
        }
    }
}

impl Messages {
    /// Messages of which one end is in one of these threads.
    pub fn of<'a>(&'a self, locations: &'a [LocationId]) -> impl Iterator<Item = &'a Message> + 'a {
        let has = |call: &CallAt| locations.contains(&call.location);
        self.messages.iter().filter(move |message| has(&message.send) || has(&message.done))
    }
}
