//! What a click does.

use super::State;
use crate::{keys::Action, layout::Areas};

impl State {
    /// A click on a row goes there, another one looks into it.
    pub fn click(&mut self, column: u16, line: u16) {
        if self.click_on_timeline(column, line) {
            return;
        }
        let areas = Areas::of(self.size());
        let first = areas.body.y + 2;
        let is_covered = self.is_help_open || self.editor.is_some() || self.saved.chosen.is_some();
        if is_covered || column >= areas.body.right() || line < first || line >= areas.body.bottom() {
            return;
        }
        let index = self.cursor().top + usize::from(line - first);
        if index >= self.grid().rows.len() {
            return;
        }
        if index == self.cursor().index {
            self.act(Action::Open);
        } else {
            self.go(index);
        }
    }
}
