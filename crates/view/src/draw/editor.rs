//! The text that is being typed, with its mistake, and what it can be completed by.

use ratatui::{Frame, buffer::Buffer, layout::Rect, style::Modifier, widgets::Widget as _};

use super::list;
use crate::paint::{
    Theme,
    line::{Line, width},
    popup,
};
use crate::{
    content::Tone,
    layout::{self, Areas, Size},
    state::{Editor, Purpose, State},
};

pub(super) fn draw(frame: &mut Frame<'_>, size: Size, state: &State, theme: Theme) {
    let Some(editor) = state.editor() else { return };
    let areas = Areas::of(size);
    let text =
        if editor.is_large { large(frame, size, editor, theme) } else { small(frame, areas.footer, editor, theme) };
    if let Some(line) = message(state, editor, theme) {
        let area = if editor.is_large { Rect { y: text.bottom(), height: 1, ..text } } else { areas.notice };
        popup::clear(frame, area);
        line.put(frame.buffer_mut(), area);
    }
    if let Some(found) = &editor.list {
        let (top, left) = editor.area.scroll_offset();
        let cursor = editor.area.screen_cursor();
        // It begins where the text begins that it would complete.
        let chosen = found.candidates.get(found.chosen).map_or(0, |candidate| width(&candidate.text));
        let x = text.x + narrow(cursor.col).saturating_sub(left).saturating_sub(chosen);
        let y = text.y + narrow(cursor.row).saturating_sub(top);
        list::completion(frame, size, found, (x, y), theme);
    }
}

/// On the line of the footer.
fn small(frame: &mut Frame<'_>, area: Rect, editor: &Editor, theme: Theme) -> Rect {
    let label = match editor.purpose {
        Purpose::Filter => " / ",
        Purpose::Name => " Save this view as: ",
    };
    popup::clear(frame, area);
    Line::new(theme).add(Tone::Key, label).put(frame.buffer_mut(), area);
    let taken = width(label) + 1;
    let area = Rect { x: area.x + taken, width: area.width.saturating_sub(taken), ..area };
    put(frame.buffer_mut(), area, editor, theme);
    area
}

/// In a frame, the last line of which is for what is wrong.
fn large(frame: &mut Frame<'_>, size: Size, editor: &Editor, theme: Theme) -> Rect {
    let title = " Filter — F2 or Alt-Enter: done, Esc: cancel, Tab: complete, # comment ";
    let inside = popup::draw(frame, layout::editor(size), title, theme);
    let area = Rect { height: inside.height.saturating_sub(1), ..inside };
    put(frame.buffer_mut(), area, editor, theme);
    area
}

fn put(buffer: &mut Buffer, area: Rect, editor: &Editor, theme: Theme) {
    (&editor.area).render(area, buffer);
    mark(buffer, area, editor, theme);
    if theme.symbols.is_ascii() {
        for position in area.positions() {
            if let Some(cell) = buffer.cell_mut(position)
                && !cell.symbol().is_ascii()
            {
                cell.set_symbol("?");
            }
        }
    }
}

/// Underlines the mistake.
fn mark(buffer: &mut Buffer, area: Rect, editor: &Editor, theme: Theme) {
    let Some(mistake) = &editor.mistake else { return };
    let (row, column) = mistake.place();
    let (top, left) = editor.area.scroll_offset();
    let text = editor.area.lines().get(row).map_or("", String::as_str);
    let columns = |from: usize, number: usize| width(&text.chars().skip(from).take(number).collect::<String>());
    let (from, wide) = (columns(0, column), columns(column, mistake.length).max(1));
    let (Some(y), end) = (narrow(row).checked_sub(top), (from + wide).saturating_sub(left)) else { return };
    let from = from.saturating_sub(left);
    if y < area.height && from < area.width {
        let place =
            Rect { x: area.x + from, y: area.y + y, width: end.min(area.width).saturating_sub(from), height: 1 };
        buffer.set_style(place, theme.palette.of(Tone::Alarm).add_modifier(Modifier::UNDERLINED));
    }
}

/// What is wrong, or what has just happened.
fn message(state: &State, editor: &Editor, theme: Theme) -> Option<Line> {
    let said = |tone, text: &str| Some(Line::new(theme).add(tone, &format!(" {text}")));
    match (&editor.mistake, &state.notice) {
        (_, Some(notice)) => said(Tone::Warning, notice),
        (Some(mistake), None) => {
            // What is not finished yet is no mistake yet.
            let is_at_end = mistake.at >= editor.text().trim_end().chars().count();
            let (line, column) = mistake.place();
            let line = if editor.is_large { format!("line {}, ", line + 1) } else { String::new() };
            let text = format!("{line}column {}: {}", column + 1, mistake.message);
            said(if is_at_end { Tone::Dim } else { Tone::Alarm }, &text)
        }
        (None, None) => None,
    }
}

fn narrow(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
