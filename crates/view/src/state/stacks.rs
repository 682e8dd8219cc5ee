//! Stacks of the job's threads, as they are told while they are looked at.

use std::sync::Arc;

use super::State;
use crate::{
    content::{Location, RowId, Screen},
    screens::ShownStacks,
    source::{Running, Stacks},
};

impl State {
    /// Whether the source is to look at stacks.
    pub fn wants_stacks(&self) -> bool {
        self.screen() == Screen::Stacks && self.running == Running::Live
    }

    /// Takes in another look.
    pub fn add_stacks(&mut self, stacks: Arc<Stacks>) {
        if self.frozen.is_some() {
            return;
        }
        self.stacks = Some(stacks);
        if self.is_stacks() {
            self.refresh();
        }
    }

    pub(super) fn is_stacks(&self) -> bool {
        self.place() == Location::Screen(Screen::Stacks)
    }

    pub(super) fn shown_stacks(&self) -> Option<ShownStacks<'_>> {
        Some(ShownStacks { stacks: self.stacks.as_deref()?, folded: &self.folded })
    }

    /// Hides what the function under the cursor has called, or shows it again.
    pub(super) fn fold(&mut self) {
        let row = self.grid.rows.get(self.cursor().index);
        let Some(RowId::Frame(id)) = row.map(|row| row.id) else { return };
        if !self.folded.remove(&id) {
            self.folded.insert(id);
        }
        let before = self.grid.rows.len();
        self.refresh();
        if self.grid.rows.len() == before {
            self.folded.remove(&id);
            self.notice = Some("nothing is called from here".into());
        }
    }
}
