//! Events as they are read: many that have the same shape.
//!
//! Calls of a program differ in their times for the most part. Whoever reads many millions of them finds out what a shape means once, and
//! looks at the rows only.

use std::sync::Arc;

use super::{
    event::{Call, Event, PhaseChange, RequestChange, RequestId},
    span::Span,
};

/// What events have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Number, times and requests are those of its row. `posts`: it gives back a request.
    Call { call: Call, posts: bool },
    /// Its time is that of its row.
    Phase(PhaseChange),
    /// What calls do to a request, which is that of its row.
    Change(RequestChange),
}

/// An event without what it shares with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub begin_ns: u64,
    pub end_ns: u64,
    /// [`Call::number`].
    pub number: u64,
    /// [`Call::request`], if its shape gives one back.
    pub request: u64,
    /// In [`Part::shapes`].
    pub shape: u32,
    /// How many of [`Part::changes`] are its.
    pub changes: u32,
}

/// An entry of [`Call::requests`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeRow {
    pub request: u64,
    /// In [`Part::shapes`].
    pub shape: u32,
}

/// Events of a location, one after the other.
#[derive(Clone, Debug)]
pub struct Part {
    /// The same for many parts: whoever keeps what he has found out of them asks whether they are still these.
    pub shapes: Arc<[Shape]>,
    /// In the order of time.
    pub rows: Vec<Row>,
    /// Of all rows, in their order.
    pub changes: Vec<ChangeRow>,
}

impl Part {
    /// Events one by one.
    pub fn of_events<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let (mut shapes, mut rows, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        let next = |shapes: &Vec<Shape>| u32::try_from(shapes.len()).unwrap_or(u32::MAX);
        for event in events {
            let row = Row { begin_ns: event.time_ns(), end_ns: event.end_ns(), shape: next(&shapes), ..Row::default() };
            match event {
                Event::Phase(change) => {
                    shapes.push(Shape::Phase(change.clone()));
                    rows.push(row);
                }
                Event::Call(call) => {
                    let common = Call { requests: Vec::new(), ..call.clone() };
                    shapes.push(Shape::Call { call: common, posts: call.request.is_some() });
                    for change in &call.requests {
                        changes.push(ChangeRow { request: change.request.0, shape: next(&shapes) });
                        shapes.push(Shape::Change(*change));
                    }
                    let number = call.number;
                    let request = call.request.map_or(0, |RequestId(request)| request);
                    rows.push(Row { number, request, changes: u32::try_from(call.requests.len()).unwrap_or(0), ..row });
                }
            }
        }
        Self { shapes: shapes.into(), rows, changes }
    }

    /// Leaves those events of which any part is in the span.
    pub(crate) fn cut(&mut self, span: Span) {
        let mut changes = std::mem::take(&mut self.changes).into_iter();
        self.rows.retain(|row| {
            let is_in = row.end_ns >= span.from_ns && row.begin_ns <= span.until_ns;
            let of_row = changes.by_ref().take(row.changes as usize);
            if is_in {
                self.changes.extend(of_row);
            } else {
                of_row.for_each(drop);
            }
            is_in
        });
    }

    /// Takes so many rows away from the front.
    #[must_use]
    pub fn split_front(&mut self, rows: usize) -> Self {
        let rows = rows.min(self.rows.len());
        let behind = self.rows.split_off(rows);
        let front = std::mem::replace(&mut self.rows, behind);
        let changes: usize = front.iter().map(|row| row.changes as usize).sum();
        let behind = self.changes.split_off(changes.min(self.changes.len()));
        let changes = std::mem::replace(&mut self.changes, behind);
        Self { shapes: Arc::clone(&self.shapes), rows: front, changes }
    }

    /// The events, whole.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        let mut changes = self.changes.iter();
        self.rows.iter().filter_map(move |row| self.event(row, &mut changes))
    }

    fn event(&self, row: &Row, changes: &mut std::slice::Iter<'_, ChangeRow>) -> Option<Event> {
        match self.shapes.get(row.shape as usize)? {
            Shape::Phase(change) => Some(Event::Phase(PhaseChange { at_ns: row.begin_ns, ..change.clone() })),
            Shape::Call { call, posts } => {
                Some(Event::Call(self.call_of(row, call, *posts, changes.by_ref().take(row.changes as usize))))
            }
            Shape::Change(_) => None,
        }
    }

    /// The call of a row, with all that it has done; `None`: there is none.
    pub fn call(&self, row: usize) -> Option<Call> {
        let before: usize = self.rows.iter().take(row).map(|row| row.changes as usize).sum();
        let row = self.rows.get(row)?;
        let Shape::Call { call, posts } = self.shapes.get(row.shape as usize)? else { return None };
        Some(self.call_of(row, call, *posts, self.changes.iter().skip(before).take(row.changes as usize)))
    }

    fn call_of<'a>(&self, row: &Row, call: &Call, posts: bool, changes: impl Iterator<Item = &'a ChangeRow>) -> Call {
        let requests = changes.filter_map(|change| match self.shapes.get(change.shape as usize)? {
            Shape::Change(shape) => Some(RequestChange { request: RequestId(change.request), ..*shape }),
            _ => None,
        });
        Call {
            number: row.number,
            entry_ns: row.begin_ns,
            return_ns: row.end_ns,
            request: posts.then_some(RequestId(row.request)),
            requests: requests.collect(),
            ..*call
        }
    }
}
