//! Where in a table one is, and how it is sorted.

use crate::content::{Grid, RowId};

/// Of one table; kept while others are looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    /// The row that the cursor is on, found again wherever the order puts it.
    row: Option<RowId>,
    /// Its place when it was seen last: where it was if it has gone.
    pub index: usize,
    /// First row that is shown.
    pub top: usize,
    /// Column and direction asked for, instead of the natural ones.
    sort: Option<(usize, bool)>,
}

impl Cursor {
    /// The column that `grid` is sorted by, and whether the largest comes first.
    pub fn order(&self, grid: &Grid) -> (usize, bool) {
        self.sort.filter(|&(column, _)| column < grid.columns.len()).unwrap_or(grid.natural)
    }

    /// Column and direction that were asked for.
    pub(super) fn asked(&self) -> Option<(usize, bool)> {
        self.sort
    }

    /// Sorts by a column; without a direction in the one that is usual for it.
    pub(super) fn ask(&mut self, grid: &Grid, column: usize, descending: Option<bool>) {
        // Numbers are asked for because of the large ones, names in the order of the alphabet.
        let usual = || grid.columns.get(column).is_some_and(|column| column.align == crate::content::Align::Right);
        self.sort = Some((column, descending.unwrap_or_else(usual)));
        self.follow_nobody();
    }

    /// Sorts by the column so many further.
    pub(super) fn sort_by(&mut self, grid: &Grid, steps: usize) {
        let number = grid.columns.len().max(1);
        let column = (self.order(grid).0 + steps) % number;
        self.ask(grid, column, None);
    }

    pub(super) fn invert(&mut self, grid: &Grid) {
        let (column, descending) = self.order(grid);
        self.sort = Some((column, !descending));
        self.follow_nobody();
    }

    /// Another order is looked at from its top.
    fn follow_nobody(&mut self) {
        (self.row, self.index, self.top) = (None, 0, 0);
    }

    /// After rows have changed: stays with its row, or where that was.
    pub(super) fn find_again(&mut self, grid: &Grid) {
        let found = self.row.and_then(|id| grid.rows.iter().position(|row| row.id == id));
        self.go(grid, found.unwrap_or(self.index));
    }

    /// To a row, or the last one.
    pub(super) fn go(&mut self, grid: &Grid, index: usize) {
        self.index = index.min(grid.rows.len().saturating_sub(1));
        self.row = grid.rows.get(self.index).map(|row| row.id);
    }

    /// Scrolls as little as needed for the row to be among the `height` rows that are shown.
    pub(super) fn scroll(&mut self, grid: &Grid, height: usize) {
        let height = height.max(1);
        let last_top = grid.rows.len().saturating_sub(height);
        let lowest = (self.index + 1).saturating_sub(height);
        self.top = self.top.clamp(lowest, self.index.max(lowest)).min(last_top);
    }
}
