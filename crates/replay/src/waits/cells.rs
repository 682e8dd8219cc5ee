//! What threads do, with numbers that are the same for all of them.

use std::sync::{Mutex, PoisonError};

use hashbrown::HashMap;
use mpiprobe_functions::FunctionId;
use mpiprobe_trace::SiteId;

/// In place of a call: none was before, or comes.
pub(super) const NO_CALL: u32 = u32::MAX;
/// Bit of a call's place: it has not returned.
pub(super) const OPEN: u32 = 1 << 31;
/// In place of one: counting is switched off.
pub(super) const SWITCHED_OFF: u32 = u32::MAX - 1;

/// A function called at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) function: FunctionId,
    pub(super) site: Option<SiteId>,
}

/// What a thread does: calls of places by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cell {
    /// Between two calls.
    Computing {
        after: u32,
        before: u32,
    },
    Calling(u32),
    /// Between two calls, others of which are not in the trace.
    NotRecorded {
        after: u32,
        before: u32,
    },
}

/// Numbers of what threads do. Asked rarely: whoever needs one often remembers it.
#[derive(Debug, Default)]
pub(super) struct Cells {
    places: Mutex<Numbers<Place>>,
    cells: Mutex<Numbers<Cell>>,
}

#[derive(Debug)]
struct Numbers<T> {
    numbers: HashMap<T, u32>,
    things: Vec<T>,
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), things: Vec::new() }
    }
}

impl<T: Copy + Eq + std::hash::Hash> Numbers<T> {
    fn number(&mut self, thing: T) -> u32 {
        *self.numbers.entry(thing).or_insert_with(|| {
            self.things.push(thing);
            u32::try_from(self.things.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

impl Cells {
    pub(super) fn place(&self, place: Place) -> u32 {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).number(place)
    }

    pub(super) fn cell(&self, cell: Cell) -> u32 {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner).number(cell)
    }

    pub(super) fn places(&self) -> Vec<Place> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).things.clone()
    }

    /// All of them by their numbers.
    pub(super) fn cells(&self) -> Vec<Cell> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner).things.clone()
    }
}
