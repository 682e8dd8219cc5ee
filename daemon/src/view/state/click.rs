//! What a click does.

use super::State;
use crate::view::{keys::Action, layout::Areas};

impl State {
    /// A click on a row goes there, another one looks into it.
    pub fn click(&mut self, column: u16, line: u16) {
        let areas = Areas::of(self.size());
        let first = areas.body.y + 2;
        if self.is_help_open || column >= areas.body.right() || line < first || line >= areas.body.bottom() {
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
