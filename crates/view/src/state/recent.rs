//! Of which rank the last calls are shown.

use super::{Cursor, State};
use crate::{
    content::{Location, RecentOf, Screen},
    screens::shown_rank,
    source::Running,
};

impl State {
    /// Whether the source is to tell of the last calls.
    pub fn wants_recent_calls(&self) -> bool {
        self.screen() == Screen::Recent && self.running == Running::Live
    }

    pub(super) fn is_recent(&self) -> bool {
        self.place() == Location::Screen(Screen::Recent)
    }

    pub(super) fn recent_of(&self) -> RecentOf {
        RecentOf { of: self.recent_of, running: self.running }
    }

    /// Shows the calls of the rank that is looked at, if there is one.
    pub(super) fn choose_recent(&mut self) {
        let row = self.grid.rows.get(self.cursor().index);
        let rank = match (self.place(), row.map(|row| row.id)) {
            (Location::Rank(id), _) => Some(id),
            (_, Some(id)) => id.rank(),
            _ => None,
        };
        self.recent_of = rank.or(self.recent_of);
    }

    /// Shows the calls of the rank so many further, round in circles.
    pub(super) fn step_recent(&mut self, ranks: isize) {
        let Some(data) = self.data() else { return };
        let Some(at) = shown_rank(data.ids, self.recent_of) else { return };
        let number = isize::try_from(data.ids.len()).unwrap_or(isize::MAX).max(1);
        let next = isize::try_from(at).unwrap_or(0).saturating_add(ranks).rem_euclid(number);
        self.recent_of = data.ids.get(next.unsigned_abs()).copied();
        // Another list is looked at from its end.
        self.cursors.remove(&self.place().kind());
        self.refresh();
    }

    /// Whether the cursor goes with the newest call: it is on the last row, in the order of calls, or nowhere yet.
    pub(super) fn follows_newest(&self) -> bool {
        let is_at_end =
            |cursor: &Cursor| cursor.order(&self.grid) == self.grid.natural && cursor.index + 1 >= self.grid.rows.len();
        self.is_recent() && self.cursors.get(&self.place().kind()).is_none_or(is_at_end)
    }
}
