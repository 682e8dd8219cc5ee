//! Events of a location as columns: shapes (what events have in common), times, requests.

use std::{ops::Range, sync::Arc};

use hashbrown::HashMap;
use mpiprobe_functions::FunctionId;

use super::wire::{Input, Malformed, put, zigzag};
use crate::{
    definitions::{CommunicatorId, FileId, SiteId, WindowId},
    event::{
        Bytes, Call, Change, Event, Lock, Object, Operation, Partner, PhaseChange, RequestChange, RequestId, Root,
        Target, Transfer,
    },
    part::{ChangeRow, Row, Shape},
};

/// How much of a call's part of a chunk comes from elsewhere, so that nobody can make a reader take more memory than the file has bytes.
const MOST_CHANGES: u32 = 1 << 20;
/// Shapes of a chunk. As many, of calls, are no shorter than a chunk may be.
const MOST_SHAPES: usize = 4 << 20;

/// Events that are becoming a chunk.
#[derive(Debug, Default)]
pub(super) struct Columns {
    count: u32,
    shapes: HashMap<Vec<u8>, u32>,
    /// By shape.
    places: Vec<Place>,
    /// The shape that was looked for last.
    last_shape: u32,
    /// Room for the one that is looked for.
    shape: Vec<u8>,
    /// In the order of first use.
    dictionary: Vec<u8>,
    which: Vec<u8>,
    gaps: Vec<u8>,
    durations: Vec<u8>,
    /// Where the number is not the one after the last call's: how many events before, and how many calls are missing.
    jumps: Vec<u8>,
    requests: Vec<u8>,
    changes: Vec<u8>,
    /// Of the event before.
    last: Last,
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
    pub(super) first_number: u64,
}

/// A shape in the dictionary.
#[derive(Debug)]
struct Place {
    bytes: Range<usize>,
    /// Which one came after it the last time.
    after: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    end_ns: u64,
    number: Option<u64>,
    jump: u32,
    posted: u64,
    changed: u64,
}

impl Columns {
    /// Empty ones, with room for as much as is in these.
    pub(super) fn next(&self) -> Self {
        let like = |column: &Vec<u8>| Vec::with_capacity(column.len());
        Self {
            shapes: HashMap::with_capacity(self.shapes.len()),
            places: Vec::with_capacity(self.places.len()),
            dictionary: like(&self.dictionary),
            which: like(&self.which),
            gaps: like(&self.gaps),
            durations: like(&self.durations),
            jumps: like(&self.jumps),
            requests: like(&self.requests),
            changes: like(&self.changes),
            ..Self::default()
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn push(&mut self, event: &Event) {
        let (begin_ns, end_ns) = (event.time_ns(), event.end_ns());
        if self.count == 0 {
            self.from_ns = begin_ns;
        }
        self.from_ns = self.from_ns.min(begin_ns);
        self.until_ns = self.until_ns.max(end_ns);
        self.shape.clear();
        match event {
            Event::Call(call) => {
                put_call(&mut self.shape, call);
                self.number(call.number);
            }
            Event::Phase(change) => put_phase(&mut self.shape, change),
        }
        let index = self.shape_index();
        put(&mut self.which, index.into());
        put(&mut self.gaps, zigzag(begin_ns.wrapping_sub(self.last.end_ns).cast_signed()));
        put(&mut self.durations, zigzag(end_ns.wrapping_sub(begin_ns).cast_signed()));
        self.last.end_ns = end_ns;
        if let Event::Call(call) = event {
            self.requests_of(call);
        }
        self.count += 1;
    }

    fn number(&mut self, number: u64) {
        match self.last.number {
            None => self.first_number = number,
            Some(last) if number == last.wrapping_add(1) => {}
            Some(last) => {
                put(&mut self.jumps, u64::from(self.count - self.last.jump));
                put(&mut self.jumps, zigzag(number.wrapping_sub(last).wrapping_sub(1).cast_signed()));
                self.last.jump = self.count;
            }
        }
        self.last.number = Some(number);
    }

    fn requests_of(&mut self, call: &Call) {
        if let Some(RequestId(request)) = call.request {
            put(&mut self.requests, zigzag(request.wrapping_sub(self.last.posted).cast_signed()));
            self.last.posted = request;
        }
        for change in &call.requests {
            self.shape.clear();
            self.shape.extend([2, change.change as u8]);
            put_operation(&mut self.shape, &change.operation);
            let index = self.shape_index();
            put(&mut self.changes, index.into());
            put(&mut self.changes, zigzag(change.request.0.wrapping_sub(self.last.changed).cast_signed()));
            self.last.changed = change.request.0;
        }
    }

    /// Which one it is of those of the chunk. Programs go round in loops: mostly it is the one that came after the last one the time before,
    /// and need not be looked for.
    fn shape_index(&mut self) -> u32 {
        let last = self.last_shape as usize;
        let after = self.places.get(last).map(|place| place.after);
        let bytes = after.and_then(|after| self.places.get(after as usize)).map(|place| place.bytes.clone());
        let index = match after.zip(bytes.and_then(|bytes| self.dictionary.get(bytes))) {
            Some((after, bytes)) if bytes == self.shape => after,
            _ => self.found_or_new(),
        };
        if let Some(place) = self.places.get_mut(last) {
            place.after = index;
        }
        self.last_shape = index;
        index
    }

    fn found_or_new(&mut self) -> u32 {
        let next = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        if let Some(&known) = self.shapes.get(&self.shape) {
            return known;
        }
        put(&mut self.dictionary, self.shape.len() as u64);
        let begin = self.dictionary.len();
        self.dictionary.extend_from_slice(&self.shape);
        self.shapes.insert(self.shape.clone(), next);
        self.places.push(Place { bytes: begin..self.dictionary.len(), after: next });
        next
    }

    /// The payload of a chunk.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let columns =
            [&self.dictionary, &self.which, &self.gaps, &self.durations, &self.jumps, &self.requests, &self.changes];
        let mut bytes = Vec::with_capacity(columns.iter().map(|column| column.len() + 5).sum());
        for column in columns {
            put(&mut bytes, column.len() as u64);
            bytes.extend_from_slice(column);
        }
        bytes
    }
}

fn put_call(to: &mut Vec<u8>, call: &Call) {
    to.push(0);
    let flags = u8::from(call.began_before) | u8::from(call.has_returned) << 1 | u8::from(call.request.is_some()) << 2;
    to.push(flags);
    to.push(call.depth);
    put(to, zigzag(call.result.into()));
    put(to, call.requests.len() as u64);
    put(to, call.call_site.map_or(0, |site| u64::from(site.0) + 1));
    put_operation(to, &call.operation);
}

fn put_phase(to: &mut Vec<u8>, change: &PhaseChange) {
    to.push(1);
    to.push(u8::from(change.is_on) | u8::from(change.phase.is_some()) << 1);
    to.extend_from_slice(change.phase.as_deref().unwrap_or_default().as_bytes());
}

fn put_operation(to: &mut Vec<u8>, operation: &Operation) {
    put(to, u64::from(operation.function.number()));
    put(to, operation.communicator.map_or(0, |id| u64::from(id.0) + 1));
    match operation.object {
        None => to.push(0),
        Some(Object::Window(WindowId(id))) => {
            to.push(1);
            put(to, id.into());
        }
        Some(Object::File(FileId(id))) => {
            to.push(2);
            put(to, id.into());
        }
    }
    match (operation.root, operation.target) {
        (None, None) => to.push(0),
        (Some(Root::Rank(rank)), _) => {
            to.push(1);
            put(to, rank.into());
        }
        (Some(Root::Own), _) => to.push(2),
        (Some(Root::Null), _) => to.push(3),
        // No call has both.
        (None, Some(target)) => {
            to.push(match target.lock {
                None => 4,
                Some(Lock::Exclusive) => 5,
                Some(Lock::Shared) => 6,
            });
            put_partner(to, target.partner);
        }
    }
    put_transfer(to, operation.send);
    put_transfer(to, operation.receive);
}

/// A byte of flags: 1 there is one, 2 any source, 4 any tag, 8 a tag; 16 bytes are known, 32 at most. Then the partner, and what there is.
fn put_transfer(to: &mut Vec<u8>, transfer: Option<Transfer>) {
    let Some(transfer) = transfer else {
        to.push(0);
        return;
    };
    let known = match transfer.bytes {
        Bytes::Known(_) => 16,
        Bytes::AtMost(_) => 32,
        Bytes::Unknown => 0,
    };
    let tag = u8::from(transfer.tag.is_some()) << 3;
    to.push(1 | u8::from(transfer.any_source) << 1 | u8::from(transfer.any_tag) << 2 | tag | known);
    put_partner(to, transfer.partner);
    if let Some(tag) = transfer.tag {
        put(to, zigzag(tag.into()));
    }
    if let Some(bytes) = transfer.bytes.at_most() {
        put(to, bytes);
    }
}

fn put_partner(to: &mut Vec<u8>, partner: Partner) {
    put(
        to,
        match partner {
            Partner::Group => 0,
            Partner::Null => 1,
            Partner::Any => 2,
            Partner::Unknown => 3,
            Partner::Rank(rank) => u64::from(rank) + 4,
        },
    );
}

/// Which of the columns behind the dictionary has the jumps.
const JUMPS: usize = 3;

/// What decoding a row needs to know of its shape.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Call { posts: bool, changes: u32 },
    Phase,
    Change,
}

/// Rows out of a chunk's payload, one after the other.
#[derive(Debug)]
pub(super) struct Reading {
    kinds: Vec<Kind>,
    bytes: Vec<u8>,
    /// Where in `bytes` the rest of each column is: which, gaps, durations, jumps, requests, changes.
    rest: [(usize, usize); 6],
    left: u32,
    done: u32,
    /// The event before which numbers jump next, and by how much.
    jump: Option<(u32, i64)>,
    last: Last,
    first_number: u64,
}

impl Reading {
    /// With the shapes of its dictionary. `functions`: what numbers of functions mean; `translate`: what becomes of each shape.
    pub(super) fn new(
        bytes: Vec<u8>,
        count: u32,
        first_number: u64,
        functions: &[FunctionId],
        translate: impl FnMut(&mut Shape),
    ) -> Result<(Self, Arc<[Shape]>), Malformed> {
        let mut input = Input(&bytes);
        let (shapes, kinds) = dictionary(input.column()?, functions, translate)?;
        let mut rest = [(0, 0); 6];
        for place in &mut rest {
            let column = input.column()?;
            let end = bytes.len() - input.0.len();
            *place = (end - column.0.len(), end);
        }
        let mut reading =
            Self { kinds, bytes, rest, left: count, done: 0, jump: None, last: Last::default(), first_number };
        let mut first = 0;
        let mut jumps = reading.column(JUMPS);
        let jump = next_jump(&mut jumps, &mut first)?;
        let left = jumps.0.len();
        (reading.jump, reading.last.jump) = (jump, first);
        if let Some((at, end)) = reading.rest.get_mut(JUMPS) {
            *at = *end - left;
        }
        Ok((reading, shapes))
    }

    fn column(&self, column: usize) -> Input<'_> {
        let (at, end) = self.rest.get(column).copied().unwrap_or_default();
        Input(self.bytes.get(at..end).unwrap_or_default())
    }

    pub(super) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// The next rows, at most so many. What came before a mistake is there, and the mistake is told.
    pub(super) fn rows(
        &mut self,
        most: u32,
        rows: &mut Vec<Row>,
        changes: &mut Vec<ChangeRow>,
    ) -> Result<(), Malformed> {
        let columns = [0, 1, 2, 3, 4, 5].map(|column| self.column(column));
        let mut decoder = Decoder {
            kinds: &self.kinds,
            columns,
            done: self.done,
            jump: self.jump,
            last: self.last,
            first_number: self.first_number,
        };
        let most = most.min(self.left);
        rows.reserve(most as usize);
        let mut result = Ok(());
        for _ in 0..most {
            let before = changes.len();
            match decoder.row(changes) {
                Ok(row) => rows.push(row),
                Err(error) => {
                    changes.truncate(before);
                    result = Err(error);
                    break;
                }
            }
        }
        let lengths = decoder.columns.map(|column| column.0.len());
        (self.done, self.jump, self.last) = (decoder.done, decoder.jump, decoder.last);
        for ((at, end), length) in self.rest.iter_mut().zip(lengths) {
            *at = *end - length;
        }
        self.left = if result.is_ok() { self.left - most } else { 0 };
        result
    }
}

/// Where decoding has come to.
struct Decoder<'a> {
    kinds: &'a [Kind],
    columns: [Input<'a>; 6],
    done: u32,
    jump: Option<(u32, i64)>,
    last: Last,
    first_number: u64,
}

impl Decoder<'_> {
    fn row(&mut self, to: &mut Vec<ChangeRow>) -> Result<Row, Malformed> {
        let [which, gaps, durations, ..] = &mut self.columns;
        let shape = which.word()?;
        let begin_ns = self.last.end_ns.wrapping_add_signed(gaps.signed()?);
        let end_ns = begin_ns.wrapping_add_signed(durations.signed()?);
        self.last.end_ns = end_ns;
        let mut row = Row { begin_ns, end_ns, shape, ..Row::default() };
        match self.kinds.get(shape as usize) {
            Some(Kind::Phase) => {}
            Some(&Kind::Call { posts, changes }) => {
                row.number = self.call_number()?;
                row.changes = changes;
                let [.., requests, of_requests] = &mut self.columns;
                if posts {
                    self.last.posted = self.last.posted.wrapping_add_signed(requests.signed()?);
                    row.request = self.last.posted;
                }
                for _ in 0..changes {
                    let shape = of_requests.word()?;
                    self.last.changed = self.last.changed.wrapping_add_signed(of_requests.signed()?);
                    let Some(Kind::Change) = self.kinds.get(shape as usize) else {
                        return Err(Malformed("what became of a request is of no shape"));
                    };
                    to.push(ChangeRow { request: self.last.changed, shape });
                }
            }
            _ => return Err(Malformed("an event is of no shape")),
        }
        self.done += 1;
        Ok(row)
    }

    fn call_number(&mut self) -> Result<u64, Malformed> {
        let mut number = self.last.number.map_or(self.first_number, |last| last.wrapping_add(1));
        if let Some((_, by)) = self.jump.filter(|&(at, _)| at == self.done) {
            number = number.wrapping_add_signed(by);
            let [_, _, _, jumps, ..] = &mut self.columns;
            self.jump = next_jump(jumps, &mut self.last.jump)?;
        }
        self.last.number = Some(number);
        Ok(number)
    }
}

fn next_jump(jumps: &mut Input<'_>, last: &mut u32) -> Result<Option<(u32, i64)>, Malformed> {
    if jumps.0.is_empty() {
        return Ok(None);
    }
    let after = jumps.word()?;
    let by = jumps.signed()?;
    *last = last.checked_add(after).ok_or(Malformed("a jump leads too far"))?;
    Ok(Some((*last, by)))
}

/// All shapes, and what decoding rows needs to know of each. Where nothing repeats there are as many as events, and they are large: the
/// list is made once, in its place.
fn dictionary(
    mut input: Input<'_>,
    functions: &[FunctionId],
    mut translate: impl FnMut(&mut Shape),
) -> Result<(Arc<[Shape]>, Vec<Kind>), Malformed> {
    let mut entries = Vec::new();
    while !input.0.is_empty() {
        let entry = input.column()?;
        // Somebody may have written any number of them, which take much more memory than bytes.
        if entry.0.is_empty() || entries.len() >= MOST_SHAPES {
            return Err(Malformed("it has too many shapes, or empty ones"));
        }
        entries.push(entry);
    }
    let mut kinds = Vec::with_capacity(entries.len());
    let mut mistake = None;
    let shapes = entries.iter().map(|entry| match shape(entry.clone(), functions) {
        Ok((mut shape, changes)) => {
            kinds.push(match shape {
                Shape::Call { posts, .. } => Kind::Call { posts, changes },
                Shape::Phase(_) => Kind::Phase,
                Shape::Change(_) => Kind::Change,
            });
            translate(&mut shape);
            shape
        }
        Err(malformed) => {
            mistake.get_or_insert(malformed);
            Shape::Phase(PhaseChange { at_ns: 0, phase: None, is_on: false })
        }
    });
    let shapes = shapes.collect();
    mistake.map_or(Ok((shapes, kinds)), Err)
}

/// A shape, and how many requests a call of it has done something to.
fn shape(mut input: Input<'_>, functions: &[FunctionId]) -> Result<(Shape, u32), Malformed> {
    match input.byte()? {
        0 => {
            let flags = input.byte()?;
            let depth = input.byte()?;
            let result = input.int()?;
            let changes = input.word()?;
            if changes > MOST_CHANGES {
                return Err(Malformed("a call has too many requests"));
            }
            let call_site = input.number()?.checked_sub(1).and_then(|site| u32::try_from(site).ok()).map(SiteId);
            let operation = operation(&mut input, functions)?;
            let call = Call {
                began_before: flags & 1 != 0,
                has_returned: flags & 2 != 0,
                depth,
                call_site,
                result,
                operation,
                ..Call::new(operation.function, 0, 0)
            };
            Ok((Shape::Call { call, posts: flags & 4 != 0 }, changes))
        }
        1 => {
            let flags = input.byte()?;
            let name = std::str::from_utf8(input.0).map_err(|_| Malformed("a phase's name is no text"))?;
            let phase = (flags & 2 != 0).then(|| name.to_owned());
            Ok((Shape::Phase(PhaseChange { at_ns: 0, phase, is_on: flags & 1 != 0 }), 0))
        }
        2 => {
            let change = match input.byte()? {
                0 => Change::Started,
                1 => Change::Completed,
                2 => Change::Cancelled,
                3 => Change::Failed,
                4 => Change::Released,
                5 => Change::Ready,
                _ => return Err(Malformed("something unknown became of a request")),
            };
            let operation = operation(&mut input, functions)?;
            Ok((Shape::Change(RequestChange { request: RequestId(0), change, operation }), 0))
        }
        _ => Err(Malformed("an event is of an unknown kind")),
    }
}

fn operation(input: &mut Input<'_>, functions: &[FunctionId]) -> Result<Operation, Malformed> {
    let function = functions.get(input.word()? as usize).copied().ok_or(Malformed("a function has no name"))?;
    let communicator = input.number()?.checked_sub(1).and_then(|id| u32::try_from(id).ok()).map(CommunicatorId);
    let object = match input.byte()? {
        0 => None,
        1 => Some(Object::Window(WindowId(input.word()?))),
        2 => Some(Object::File(FileId(input.word()?))),
        _ => return Err(Malformed("an operation is on something unknown")),
    };
    let target = |input: &mut Input<'_>, lock| Ok(Some(Target { partner: partner(input)?, lock }));
    let (root, target) = match input.byte()? {
        0 => (None, None),
        1 => (Some(Root::Rank(input.word()?)), None),
        2 => (Some(Root::Own), None),
        3 => (Some(Root::Null), None),
        4 => (None, target(input, None)?),
        5 => (None, target(input, Some(Lock::Exclusive))?),
        6 => (None, target(input, Some(Lock::Shared))?),
        _ => return Err(Malformed("a root is unknown")),
    };
    let (send, receive) = (transfer(input)?, transfer(input)?);
    Ok(Operation { function, communicator, object, send, receive, root, target })
}

fn partner(input: &mut Input<'_>) -> Result<Partner, Malformed> {
    Ok(match input.word()? {
        0 => Partner::Group,
        1 => Partner::Null,
        2 => Partner::Any,
        3 => Partner::Unknown,
        rank => Partner::Rank(rank - 4),
    })
}

fn transfer(input: &mut Input<'_>) -> Result<Option<Transfer>, Malformed> {
    let flags = input.byte()?;
    if flags & 1 == 0 {
        return Ok(None);
    }
    let partner = partner(input)?;
    let tag = if flags & 8 != 0 { Some(input.int()?) } else { None };
    let bytes = match flags & 0x30 {
        0x10 => Bytes::Known(input.number()?),
        0x20 => Bytes::AtMost(input.number()?),
        _ => Bytes::Unknown,
    };
    Ok(Some(Transfer { partner, tag, bytes, any_source: flags & 2 != 0, any_tag: flags & 4 != 0 }))
}
