//! The filter in force: which rows are shown.

use mpiprobe_model::filter::Filter;

use super::{Effect, State};
use crate::screens;

/// Said instead of rows.
const NOTHING_KEPT: &str = "The filter keeps no row of this table: / changes it.";
const NO_PAIR_KEPT: &str = "The filter keeps no pair of ranks: / changes it.";

impl State {
    pub fn filter(&self) -> Option<&Filter> {
        self.filter.as_ref()
    }

    /// Shows only what a filter keeps; everything without one.
    pub fn set_filter(&mut self, filter: Option<Filter>) {
        self.filter = filter;
        self.refresh();
    }

    /// Rows that are shown, and those that there would be without the filter; `None` where nothing is filtered.
    pub fn kept_rows(&self) -> Option<(usize, usize)> {
        let shown = if self.is_matrix() { self.matrix.pairs } else { self.grid.rows.len() };
        self.unfiltered.map(|all| (shown, all))
    }

    /// What was typed as a filter becomes the filter, and is worth being remembered.
    pub(super) fn filter_by(&mut self, filter: Option<Filter>) -> Option<Effect> {
        let line = filter.as_ref().map(|filter| filter.line().to_owned());
        self.notice = line.is_none().then(|| "no filter: all rows are shown".into());
        self.set_filter(filter);
        line.map(|line| {
            self.history.add(&line);
            Effect::Remember(line)
        })
    }

    pub(super) fn count_unfiltered(&mut self) {
        let unfiltered = self.data().filter(|data| data.filter.is_some()).map(|data| data.unfiltered());
        // A place without columns is no table.
        let all = unfiltered.map(|all| screens::grid(self.place(), &all)).filter(|all| !all.columns.is_empty());
        self.unfiltered = all.map(|all| all.rows.len());
        if self.grid.rows.is_empty() && self.unfiltered.is_some_and(|all| all > 0) {
            self.grid.empty = NOTHING_KEPT;
        }
    }

    pub(super) fn count_unfiltered_pairs(&mut self) {
        let is_filtered = self.data().is_some_and(|data| data.filter.is_some());
        let pairs = is_filtered.then_some(self.matrix.unfiltered);
        self.unfiltered = pairs;
        if self.matrix.pairs == 0 && pairs.is_some_and(|all| all > 0) {
            self.matrix.empty = NO_PAIR_KEPT;
        }
    }
}
