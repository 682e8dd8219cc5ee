//! All keys, from the key table.

use ratatui::Frame;

use super::{
    Theme,
    line::{Line, line_of},
    popup,
};
use crate::{
    content::Tone,
    keys::{Binding, Section},
    layout::{self, Size},
};

/// Columns of the keys.
const KEYS: usize = 12;

/// Lines of a table of keys, from one of them on.
pub(crate) fn draw(frame: &mut Frame<'_>, size: Size, lines: &[Line], top: usize, theme: Theme) {
    let area = layout::help(size);
    let inside = popup::draw(frame, area, " Keys — j k move, Esc closes ", theme);
    for (number, line) in (0..inside.height).zip(lines.iter().skip(top)) {
        line.put(frame.buffer_mut(), line_of(inside, number));
    }
}

/// How many lines these are.
pub(crate) fn lines_of<A>(sections: &[Section], bindings: &[Binding<A>]) -> usize {
    let keys = bindings.iter().filter(|binding| sections.contains(&binding.section)).count();
    (keys + sections.len() * 2).saturating_sub(1)
}

pub(crate) fn lines<A>(sections: &[Section], bindings: &[Binding<A>], theme: Theme) -> Vec<Line> {
    let mut lines = Vec::new();
    for &section in sections {
        if !lines.is_empty() {
            lines.push(Line::new(theme));
        }
        lines.push(Line::new(theme).add(Tone::Title, &format!(" {}", section.title())));
        for binding in bindings.iter().filter(|binding| binding.section == section) {
            let key = format!("  {:<KEYS$} ", binding.shown);
            lines.push(Line::new(theme).add(Tone::Plain, &key).add(Tone::Dim, binding.what));
        }
    }
    lines
}
