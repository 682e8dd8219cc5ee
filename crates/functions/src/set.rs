//! Sets of functions.

use core::fmt;

use crate::{COUNT, FunctionId, Group};

const BITS: usize = u64::BITS as usize;

/// A set of functions: one bit each, no heap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FunctionSet {
    words: [u64; COUNT.div_ceil(BITS)],
}

impl FunctionSet {
    pub const EMPTY: Self = Self { words: [0; COUNT.div_ceil(BITS)] };

    /// Every function of the table.
    pub fn all() -> Self {
        FunctionId::all().collect()
    }

    /// What is probed unless the user says otherwise.
    pub fn default_functions() -> Self {
        FunctionId::all().filter(|id| id.function().default).collect()
    }

    pub fn of_group(group: Group) -> Self {
        FunctionId::all().filter(|id| id.function().group == group).collect()
    }

    pub fn contains(&self, id: FunctionId) -> bool {
        self.words.get(id.index() / BITS).is_some_and(|word| word & mask(id) != 0)
    }

    pub fn insert(&mut self, id: FunctionId) {
        if let Some(word) = self.words.get_mut(id.index() / BITS) {
            *word |= mask(id);
        }
    }

    pub fn remove(&mut self, id: FunctionId) {
        if let Some(word) = self.words.get_mut(id.index() / BITS) {
            *word &= !mask(id);
        }
    }

    /// In the order of the table, by name.
    pub fn iter(&self) -> impl Iterator<Item = FunctionId> {
        FunctionId::all().filter(|&id| self.contains(id))
    }

    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn mask(id: FunctionId) -> u64 {
    1 << (id.index() % BITS)
}

impl Extend<FunctionId> for FunctionSet {
    fn extend<I: IntoIterator<Item = FunctionId>>(&mut self, ids: I) {
        ids.into_iter().for_each(|id| self.insert(id));
    }
}

impl FromIterator<FunctionId> for FunctionSet {
    fn from_iter<I: IntoIterator<Item = FunctionId>>(ids: I) -> Self {
        let mut set = Self::EMPTY;
        set.extend(ids);
        set
    }
}

impl fmt::Debug for FunctionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|id| id.function().name)).finish()
    }
}
