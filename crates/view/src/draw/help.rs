//! All keys, from the key table.

use ratatui::Frame;

use super::{
    Theme,
    line::{Line, line_of},
    popup,
};
use crate::{
    content::Tone,
    keys::{BINDINGS, Section},
    layout::{self, Size},
    state::State,
};

/// Columns of the keys.
const KEYS: usize = 12;

pub(super) fn draw(frame: &mut Frame<'_>, size: Size, state: &State, theme: Theme) {
    let area = layout::help(size);
    let inside = popup::draw(frame, area, " Keys — j k move, Esc closes ", theme);
    let lines = lines(theme);
    for (number, line) in (0..inside.height).zip(lines.iter().skip(state.help_top())) {
        line.put(frame.buffer_mut(), line_of(inside, number));
    }
}

fn lines(theme: Theme) -> Vec<Line> {
    let mut lines = Vec::new();
    for section in Section::ALL {
        if !lines.is_empty() {
            lines.push(Line::new(theme));
        }
        lines.push(Line::new(theme).add(Tone::Title, &format!(" {}", section.title())));
        for binding in BINDINGS.iter().filter(|binding| binding.section == section) {
            let key = format!("  {:<KEYS$} ", binding.shown);
            lines.push(Line::new(theme).add(Tone::Plain, &key).add(Tone::Dim, binding.what));
        }
    }
    lines
}
