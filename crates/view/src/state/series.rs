//! How totals have developed, look by look.

use std::collections::VecDeque;

use mpiprobe_model::{
    SaturatingSum as _,
    analyse::{Bytes, Change},
};

/// As many as the widest terminal shows.
pub(crate) const MOST: usize = 240;

/// Totals over all ranks of the time from one look to the next, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Each with the time of its end since the beginning of observation, ns.
    points: VecDeque<(u64, Point)>,
}

/// Between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    pub calls_per_second: f64,
    /// Messages and bytes sent; `None`: it was not asked what calls move.
    pub messages_per_second: Option<f64>,
    pub bytes_per_second: Option<f64>,
    /// `None`: not known.
    pub mpi_percent: Option<f64>,
}

impl Series {
    pub(super) fn add(&mut self, at_ns: u64, change: &Change) {
        if self.points.len() >= MOST {
            self.points.pop_front();
        }
        self.points.push_back((at_ns, Point::of(change)));
    }

    /// Forgets what was later; and everything, if it does not reach up to then.
    pub(super) fn keep_until(&mut self, at_ns: u64) {
        self.points.retain(|(known_ns, _)| *known_ns <= at_ns);
        if self.points.back().is_none_or(|(known_ns, _)| *known_ns != at_ns) {
            self.points.clear();
        }
    }

    pub fn points(&self) -> impl DoubleEndedIterator<Item = &Point> {
        self.points.iter().map(|(_, point)| point)
    }
}

impl Point {
    pub fn of(change: &Change) -> Self {
        let calls = change.ranks.iter().map(|(rank, _)| rank.calls).saturating_sum();
        let bytes = change.ranks.iter().filter_map(|(rank, _)| rank.bytes).reduce(Bytes::plus);
        Self {
            calls_per_second: change.per_second(calls),
            messages_per_second: bytes.map(|bytes| change.per_second(bytes.messages)),
            bytes_per_second: bytes.map(|bytes| change.per_second(bytes.sent)),
            mpi_percent: change.mpi_percent(),
        }
    }
}
