//! A frame over everything else.

use ratatui::{
    Frame,
    layout::Rect,
    symbols::border,
    widgets::{Block, Clear, Widget as _},
};

use super::Theme;
use crate::content::Tone;

/// Nothing shines through.
pub(crate) fn clear(frame: &mut Frame<'_>, area: Rect) {
    Clear.render(area, frame.buffer_mut());
}

/// Draws it; gives the room inside.
pub(crate) fn draw(frame: &mut Frame<'_>, area: Rect, title: &str, theme: Theme) -> Rect {
    clear(frame, area);
    let mut block = Block::bordered().title(theme.symbols.text(title)).border_style(theme.palette.of(Tone::Dim));
    if theme.symbols.is_ascii() {
        block = block.border_set(ASCII);
    }
    let inside = block.inner(area);
    block.render(area, frame.buffer_mut());
    inside
}

const ASCII: border::Set<'static> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};
