//! Calls that somebody wants to see: in a column, or the next one of some kind.

use mpiprobe_trace::{Call, LocationId, Part, Parts, ReadError, Shape, Span, Trace};

use super::painter::node_of;
use crate::clock::Clocks;

/// A call, with its times on the common clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub location: LocationId,
    pub call: Call,
}

/// What is in a short time of a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Calls of which any part is in it, and that the program has made.
    pub calls: u64,
    /// The one that is in it for longest.
    pub most: Option<Found>,
    /// For how long, ns.
    most_ns: u64,
}

/// Looks at a short time of a lane.
#[allow(missing_debug_implementations, reason = "it has iterators")]
pub struct Look<'a> {
    reading: Threads<'a>,
    span: Span,
    /// If it is there, it is the one.
    wanted: Option<(LocationId, u64)>,
    pub seen: Seen,
}

/// Threads that are read one after the other.
struct Threads<'a> {
    trace: &'a dyn Trace,
    clocks: &'a Clocks,
    /// Those to come, the next one last.
    next: Vec<LocationId>,
    now: Option<(LocationId, usize, Parts<'a>)>,
}

enum Read {
    Part(LocationId, Part),
    /// Something that is damaged, or the end of a thread.
    Nothing,
    Over,
}

impl<'a> Threads<'a> {
    fn new(trace: &'a dyn Trace, clocks: &'a Clocks, locations: &[LocationId]) -> Self {
        Self { trace, clocks, next: locations.iter().rev().copied().collect(), now: None }
    }

    /// The next events that are in a span on the common clock.
    fn read(&mut self, span: Span) -> Result<Read, ReadError> {
        let Some((location, node, parts)) = &mut self.now else {
            let Some(location) = self.next.pop() else { return Ok(Read::Over) };
            let node = node_of(self.trace, location);
            self.now = Some((location, node, self.trace.parts(location, self.clocks.own_span(node, span))));
            return Ok(Read::Nothing);
        };
        match parts.next() {
            Some(Ok(mut part)) => {
                self.clocks.correct(*node, &mut part.rows);
                Ok(Read::Part(*location, part))
            }
            Some(Err(ReadError::Damaged { .. })) => Ok(Read::Nothing),
            Some(Err(error)) => Err(error),
            None => {
                self.now = None;
                Ok(Read::Nothing)
            }
        }
    }
}

impl<'a> Look<'a> {
    /// `wanted` is a call by its location and number, which is taken if it is there.
    pub fn new(
        trace: &'a dyn Trace,
        clocks: &'a Clocks,
        locations: &[LocationId],
        span: Span,
        wanted: Option<(LocationId, u64)>,
    ) -> Self {
        Self { reading: Threads::new(trace, clocks, locations), span, wanted, seen: Seen::default() }
    }

    /// Reads a little more; false: there is no more.
    pub fn step(&mut self) -> Result<bool, ReadError> {
        let (location, part) = match self.reading.read(self.span)? {
            Read::Over => return Ok(false),
            Read::Nothing => return Ok(true),
            Read::Part(location, part) => (location, part),
        };
        let mut best = None;
        for (place, row) in part.rows.iter().enumerate() {
            let Some(Shape::Call { call, .. }) = part.shapes.get(row.shape as usize) else { continue };
            let is_in = row.end_ns >= self.span.from_ns && row.begin_ns <= self.span.until_ns;
            if call.depth > 0 || !is_in {
                continue;
            }
            self.seen.calls += 1;
            let end_ns = row.end_ns.min(self.span.until_ns.saturating_add(1));
            let mut ns = end_ns.saturating_sub(row.begin_ns.max(self.span.from_ns)).saturating_add(1);
            if self.wanted == Some((location, row.number)) {
                ns = u64::MAX;
            }
            if ns > self.seen.most_ns {
                (self.seen.most_ns, best) = (ns, Some(place));
            }
        }
        if let Some(call) = best.and_then(|place| part.call(place)) {
            self.seen.most = Some(Found { location, call });
        }
        Ok(true)
    }
}

/// Where a search goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Back,
}

/// Looks for the next call of some kind, in the order of entries and then of threads.
#[allow(missing_debug_implementations, reason = "it has iterators")]
pub struct Search<'a> {
    trace: &'a dyn Trace,
    clocks: &'a Clocks,
    locations: Vec<LocationId>,
    direction: Direction,
    /// The entry and the thread that it begins behind.
    from: (u64, LocationId),
    is_it: Box<dyn Fn(&Call) -> bool + Send + 'a>,
    /// Of the whole trace, on the common clock.
    whole: Span,
    window: Span,
    reading: Threads<'a>,
    best: Option<Found>,
}

impl<'a> Search<'a> {
    /// `near_ns` is how far one looks at first.
    pub fn new(
        trace: &'a dyn Trace,
        clocks: &'a Clocks,
        locations: &[LocationId],
        from: (u64, LocationId),
        (direction, near_ns): (Direction, u64),
        is_it: impl Fn(&Call) -> bool + Send + 'a,
    ) -> Self {
        let whole = clocks.span(trace);
        let start = Span { from_ns: from.0, until_ns: from.0 };
        let mut search = Self {
            trace,
            clocks,
            locations: locations.to_vec(),
            direction,
            from,
            is_it: Box::new(is_it),
            whole,
            window: start,
            reading: Threads::new(trace, clocks, &[]),
            best: None,
        };
        search.look_at(near_ns.max(1));
        search
    }

    /// The next window, which is so long.
    fn look_at(&mut self, ns: u64) {
        self.window = match self.direction {
            Direction::Forward => {
                Span { from_ns: self.window.until_ns, until_ns: self.window.until_ns.saturating_add(ns) }
            }
            Direction::Back => Span { from_ns: self.window.from_ns.saturating_sub(ns), until_ns: self.window.from_ns },
        };
        self.reading = Threads::new(self.trace, self.clocks, &self.locations);
    }

    /// Reads a little more; `Some`: what was found, if anything.
    pub fn step(&mut self) -> Result<Option<Option<Found>>, ReadError> {
        match self.reading.read(self.window)? {
            Read::Nothing => {}
            Read::Part(location, part) => self.take(location, &part),
            Read::Over => {
                if self.best.is_some() {
                    return Ok(Some(self.best.take()));
                }
                let is_over = match self.direction {
                    Direction::Forward => self.window.until_ns >= self.whole.until_ns,
                    Direction::Back => self.window.from_ns <= self.whole.from_ns,
                };
                if is_over {
                    return Ok(Some(None));
                }
                let length = self.window.until_ns - self.window.from_ns;
                self.look_at(length.saturating_mul(2).max(1));
            }
        }
        Ok(None)
    }

    fn take(&mut self, location: LocationId, part: &Part) {
        let wanted: Vec<bool> = part
            .shapes
            .iter()
            .map(|shape| matches!(shape, Shape::Call { call, .. } if call.depth == 0 && (self.is_it)(call)))
            .collect();
        let mut best = self.best.as_ref().map(|found| (found.call.entry_ns, found.location));
        let mut place_of_best = None;
        for (place, row) in part.rows.iter().enumerate() {
            let is_in = row.begin_ns >= self.window.from_ns && row.begin_ns <= self.window.until_ns;
            if !is_in || wanted.get(row.shape as usize) != Some(&true) {
                continue;
            }
            let key = (row.begin_ns, location);
            let is_better = match self.direction {
                Direction::Forward => key > self.from && best.is_none_or(|best| key < best),
                Direction::Back => key < self.from && best.is_none_or(|best| key > best),
            };
            if is_better {
                (best, place_of_best) = (Some(key), Some(place));
            }
        }
        if let Some(call) = place_of_best.and_then(|place| part.call(place)) {
            self.best = Some(Found { location, call });
        }
    }
}
