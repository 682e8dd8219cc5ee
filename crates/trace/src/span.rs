//! Parts of the time.

use super::event::Event;

/// A part of the time, ns, on the clock of each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from_ns: u64,
    pub until_ns: u64,
}

impl Span {
    pub const ALL: Self = Self { from_ns: 0, until_ns: u64::MAX };

    /// Whether any of an event is in it.
    pub fn touches(&self, event: &Event) -> bool {
        event.end_ns() >= self.from_ns && event.time_ns() <= self.until_ns
    }
}
