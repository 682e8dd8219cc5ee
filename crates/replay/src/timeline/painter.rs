//! Which groups of functions the time of each lane goes to, column by column.

use std::{cmp::Reverse, collections::BinaryHeap, ops::Range};

use mpiprobe_functions::{FunctionId, Group};
use mpiprobe_trace::{LocationId, Part, Parts, ReadError, Shape, Span, Trace};

use crate::clock::Clocks;

/// Groups of functions.
pub const GROUPS: usize = Group::ALL.len();
/// Events that are read of all lanes before a further part of the span begins.
const AIM: u64 = 1 << 20;
/// Parts of a span: the more, the sooner there is something to be seen everywhere, and the more chunks are read twice.
const MOST_PARTS: u64 = 64;
/// Columns from which on a call is kept as such: room for a name.
const WIDE: u64 = 4;
/// Of the calls of the span, so many of the longest are kept.
const LONGEST: usize = 64;

/// What is to be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// On the common clock.
    pub span: Span,
    pub columns: usize,
    /// The threads of each lane.
    pub lanes: Vec<Vec<LocationId>>,
}

/// A lane's time in a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// In calls that the program has made, over all threads, by group; ns.
    pub busy_ns: [u64; GROUPS],
    /// Calls of which any part is in it.
    pub calls: u64,
}

/// A call that is wide enough for its name, of a lane of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WideCall {
    pub lane: usize,
    pub function: FunctionId,
    /// ns on the common clock.
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// One of the longest calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LongCall {
    pub ns: u64,
    /// ns on the common clock.
    pub begin_ns: u64,
    pub location: LocationId,
    pub number: u64,
}

/// A frame, as far as it has been read.
#[derive(Clone, Debug)]
pub struct Picture {
    pub frame: Frame,
    /// Lane by lane.
    cells: Vec<Cell>,
    /// By column, whether all of it has been read.
    read: Vec<bool>,
    pub wide: Vec<WideCall>,
    /// The longest of the calls that begin in what has been read of the frame, the longest first, when it is whole.
    pub longest: Vec<LongCall>,
    /// Parts of the trace that cannot be read.
    pub damaged: u64,
}

/// Reads what a frame shows.
#[allow(missing_debug_implementations, reason = "it has iterators")]
pub struct Painter<'a> {
    trace: &'a dyn Trace,
    clocks: &'a Clocks,
    picture: Picture,
    /// Columns that nobody has begun with, the next ones last.
    parts: Vec<Range<usize>>,
    all_parts: usize,
    now: Option<Now<'a>>,
    longest: BinaryHeap<Reverse<LongCall>>,
}

/// A part of the columns that is being read.
struct Now<'a> {
    columns: Range<usize>,
    /// On the common clock.
    span: Span,
    lane: usize,
    /// In the lane, the thread after the one that is read.
    next: usize,
    location: LocationId,
    node: usize,
    reading: Option<Parts<'a>>,
}

impl Frame {
    fn width_ns(&self) -> u64 {
        self.span.until_ns.saturating_sub(self.span.from_ns).max(1)
    }

    /// When a column begins, ns on the common clock.
    pub fn edge(&self, column: usize) -> u64 {
        let columns = self.columns.max(1) as u128;
        let since = (u128::from(self.width_ns()) * column as u128).div_ceil(columns);
        self.span.from_ns.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// The column of a time; of one outside, the nearest.
    pub fn column(&self, ns: u64) -> usize {
        let since = ns.saturating_sub(self.span.from_ns).min(self.width_ns());
        let column = u128::from(since) * self.columns as u128 / u128::from(self.width_ns());
        usize::try_from(column).unwrap_or(usize::MAX).min(self.columns.saturating_sub(1))
    }

    /// From the beginning of a column to its end.
    pub fn span_of(&self, column: usize) -> Span {
        let until_ns = self.edge(column.saturating_add(1)).saturating_sub(1);
        Span { from_ns: self.edge(column), until_ns: until_ns.max(self.edge(column)) }
    }

    /// Events of a trace that are in it, if they were spread evenly.
    pub fn events(&self, trace: &dyn Trace, clocks: &Clocks) -> u64 {
        let all = trace.definitions().locations.len().max(1) as f64;
        let shown: usize = self.lanes.iter().map(Vec::len).sum();
        whole(share(trace, clocks, self.span) * (shown as f64 / all))
    }
}

/// Of how many events it is likely that they are in a span.
pub(super) fn likely_events(trace: &dyn Trace, clocks: &Clocks, span: Span) -> u64 {
    whole(share(trace, clocks, span))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate, which saturates")]
fn whole(estimate: f64) -> u64 {
    estimate as u64
}

fn share(trace: &dyn Trace, clocks: &Clocks, span: Span) -> f64 {
    let whole = clocks.span(trace);
    let length = |span: Span| span.until_ns.saturating_sub(span.from_ns).max(1) as f64;
    let common = Span { from_ns: span.from_ns.max(whole.from_ns), until_ns: span.until_ns.min(whole.until_ns) };
    trace.event_count() as f64 * (length(common) / length(whole)).min(1.0)
}

impl Cell {
    /// Time in all groups, ns.
    pub fn total_ns(&self) -> u64 {
        self.busy_ns.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// The group that most of the time goes to.
    pub fn most(&self) -> Option<Group> {
        let (place, ns) = self.busy_ns.iter().enumerate().rev().max_by_key(|(_, ns)| **ns)?;
        if *ns == 0 { None } else { Group::ALL.get(place).copied() }
    }

    fn add(&mut self, group: Group, ns: u64) {
        if let Some(sum) = self.busy_ns.get_mut(usize::from(group.index())) {
            *sum = sum.saturating_add(ns);
        }
    }
}

impl Picture {
    fn new(frame: &Frame) -> Self {
        Self {
            cells: vec![Cell::default(); frame.columns.saturating_mul(frame.lanes.len())],
            read: vec![false; frame.columns],
            frame: frame.clone(),
            wide: Vec::new(),
            longest: Vec::new(),
            damaged: 0,
        }
    }

    pub fn cell(&self, lane: usize, column: usize) -> Option<&Cell> {
        if column >= self.frame.columns {
            return None;
        }
        self.cells.get(lane.checked_mul(self.frame.columns)?.checked_add(column)?)
    }

    /// Whether all of a column has been read.
    pub fn is_read(&self, column: usize) -> bool {
        self.read.get(column) == Some(&true)
    }

    /// Whether all of it has been read.
    pub fn is_whole(&self) -> bool {
        !self.read.contains(&false)
    }

    fn cell_mut(&mut self, lane: usize, column: usize) -> Option<&mut Cell> {
        self.cells.get_mut(lane.checked_mul(self.frame.columns)?.checked_add(column)?)
    }

    /// What of a call is in some of the columns.
    fn call(&mut self, lane: usize, columns: &Range<usize>, group: Group, begin_ns: u64, end_ns: u64) {
        let first = self.frame.column(begin_ns).max(columns.start);
        let last = self.frame.column(end_ns).min(columns.end.saturating_sub(1));
        for column in first..=last {
            let (from, until) = (self.frame.edge(column), self.frame.edge(column + 1));
            let ns = end_ns.min(until).saturating_sub(begin_ns.max(from));
            if ns == 0 && end_ns > begin_ns {
                continue;
            }
            if let Some(cell) = self.cell_mut(lane, column) {
                cell.add(group, ns);
                cell.calls = cell.calls.saturating_add(1);
            }
        }
    }
}

impl<'a> Painter<'a> {
    pub fn new(trace: &'a dyn Trace, clocks: &'a Clocks, frame: &Frame) -> Self {
        let wanted = (frame.events(trace, clocks) / AIM).clamp(1, MOST_PARTS);
        Self::in_parts(trace, clocks, frame, usize::try_from(wanted).unwrap_or(1))
    }

    /// Reads the span in so many parts.
    pub(super) fn in_parts(trace: &'a dyn Trace, clocks: &'a Clocks, frame: &Frame, wanted: usize) -> Self {
        let parts = parts(frame, wanted);
        let all_parts = parts.len();
        Self { trace, clocks, picture: Picture::new(frame), parts, all_parts, now: None, longest: BinaryHeap::new() }
    }

    /// What has been read so far.
    pub fn picture(&self) -> &Picture {
        &self.picture
    }

    /// How much of it has been read, from 0 to 1.
    pub fn done(&self) -> f64 {
        let lanes = self.picture.frame.lanes.len().max(1) as f64;
        let begun = self.now.as_ref().map_or(0.0, |now| 1.0 - now.lane as f64 / lanes);
        1.0 - (self.parts.len() as f64 + begun) / self.all_parts.max(1) as f64
    }

    /// Reads a little more; false: there is no more.
    pub fn step(&mut self) -> Result<bool, ReadError> {
        if self.now.is_none() {
            let Some(columns) = self.parts.pop() else { return Ok(false) };
            let frame = &self.picture.frame;
            let from_ns = frame.edge(columns.start);
            let until_ns = frame.edge(columns.end).saturating_sub(1).max(from_ns);
            let span = Span { from_ns, until_ns };
            let first = LocationId(0);
            self.now = Some(Now { columns, span, lane: 0, next: 0, location: first, node: 0, reading: None });
        }
        let Some(now) = &mut self.now else { return Ok(false) };
        let Some(reading) = &mut now.reading else {
            self.advance();
            return Ok(true);
        };
        match reading.next() {
            Some(Ok(part)) => self.take(part),
            Some(Err(ReadError::Damaged { .. })) => self.picture.damaged += 1,
            Some(Err(error)) => {
                now.reading = None;
                return Err(error);
            }
            None => now.reading = None,
        }
        Ok(true)
    }

    /// To the next thread.
    fn advance(&mut self) {
        let Some(now) = &mut self.now else { return };
        let lanes = &self.picture.frame.lanes;
        while let Some(lane) = lanes.get(now.lane) {
            if let Some(&location) = lane.get(now.next) {
                now.next += 1;
                now.location = location;
                now.node = node_of(self.trace, location);
                now.reading = Some(self.trace.parts(location, self.clocks.own_span(now.node, now.span)));
                return;
            }
            (now.lane, now.next) = (now.lane + 1, 0);
        }
        for column in now.columns.clone() {
            if let Some(is_read) = self.picture.read.get_mut(column) {
                *is_read = true;
            }
        }
        self.now = None;
        if self.parts.is_empty() {
            let longest = std::mem::take(&mut self.longest).into_sorted_vec();
            self.picture.longest = longest.into_iter().map(|Reverse(call)| call).collect();
            self.picture.wide.sort_by_key(|call| (call.lane, call.begin_ns));
        }
    }

    fn take(&mut self, mut part: Part) {
        let Some(now) = &self.now else { return };
        self.clocks.correct(now.node, &mut part.rows);
        let frame = &self.picture.frame;
        let wide_ns = (u128::from(frame.width_ns()) * u128::from(WIDE)).div_ceil(frame.columns.max(1) as u128);
        let wide_ns = u64::try_from(wide_ns).unwrap_or(u64::MAX);
        let is_single = frame.lanes.get(now.lane).is_some_and(|lane| lane.len() == 1);
        let is_first = now.columns.start == 0;
        for row in &part.rows {
            let Some(Shape::Call { call, .. }) = part.shapes.get(row.shape as usize) else { continue };
            let (begin_ns, end_ns) = (row.begin_ns, row.end_ns);
            let is_in = end_ns >= now.span.from_ns && begin_ns <= now.span.until_ns && begin_ns <= end_ns;
            if call.depth > 0 || !is_in {
                continue;
            }
            let function = call.function();
            self.picture.call(now.lane, &now.columns, function.function().group, begin_ns, end_ns);
            // A call that lasts longer than a part of the columns is read with each of them.
            if begin_ns < now.span.from_ns && !is_first {
                continue;
            }
            let ns = end_ns - begin_ns;
            if is_single && ns >= wide_ns {
                self.picture.wide.push(WideCall { lane: now.lane, function, begin_ns, end_ns });
            }
            let call = LongCall { ns, begin_ns, location: now.location, number: row.number };
            if self.longest.len() < LONGEST {
                self.longest.push(Reverse(call));
            } else if self.longest.peek().is_some_and(|Reverse(least)| *least < call) {
                self.longest.pop();
                self.longest.push(Reverse(call));
            }
        }
    }
}

pub(super) fn node_of(trace: &dyn Trace, location: LocationId) -> usize {
    let definitions = trace.definitions();
    let process = definitions.location(location).map(|location| location.process);
    process.and_then(|id| definitions.process(id)).map_or(0, |process| process.node.index())
}

/// Parts of the columns, those to be read first last: spread over the whole span.
fn parts(frame: &Frame, wanted: usize) -> Vec<Range<usize>> {
    if frame.columns == 0 || frame.lanes.is_empty() {
        return Vec::new();
    }
    let count = wanted.max(1).next_power_of_two();
    let bits = count.trailing_zeros();
    let edge = |part: usize| frame.columns * part / count;
    let reversed = |part: usize| if bits == 0 { 0 } else { part.reverse_bits() >> (usize::BITS - bits) };
    let parts = (0..count).rev().map(reversed).map(|part| edge(part)..edge(part + 1));
    parts.filter(|columns| !columns.is_empty()).collect()
}
