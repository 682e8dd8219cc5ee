//! A table: as many columns as there is room for, and the rows around the cursor.

use ratatui::{Frame, buffer::Buffer, layout::Rect, style::Style};

use crate::content::{Align, Cell, Column, Content, Grid, Tone};
use crate::paint::{
    Palette, Theme,
    line::{Line, fit, line_of, width},
    part_letter,
};
use crate::state::State;

/// Between columns.
const GAP: u16 = 1;
/// Columns that a bar takes where there is room.
const WIDEST_BAR: u16 = 48;

/// The state's table, with its title.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let (grid, cursor) = (state.grid(), state.cursor());
    let buffer = frame.buffer_mut();
    let title = Line::new(theme).add(Tone::Title, &format!(" {}", grid.title));
    title.put(buffer, line_of(area, 0));
    if grid.rows.is_empty() {
        Line::new(theme).add(Tone::Dim, &format!(" {}", grid.empty)).put(buffer, line_of(area, 2));
        return;
    }
    let columns = Columns::new(grid, area);
    headings(buffer, line_of(area, 1), grid, &columns, cursor.order(grid), theme);
    let rows = Rect { y: area.y + 2, height: area.height.saturating_sub(2), ..area };
    for (line, row) in (0..rows.height).zip(grid.rows.iter().skip(cursor.top)) {
        let place = line_of(rows, line);
        for (index, x, wide) in columns.places() {
            let Some((cell, column)) = row.cells.get(index).zip(grid.columns.get(index)) else { continue };
            put(buffer, Rect { x: place.x + x, width: wide, ..place }, cell, *column, theme);
        }
        if row.marked {
            Line::new(theme).add(Tone::Alarm, "!").put(buffer, Rect { width: 1, ..place });
        }
        if usize::from(line) + cursor.top == cursor.index {
            buffer.set_style(place, Palette::selected());
        }
    }
    position(buffer, area, grid, cursor.top, usize::from(rows.height), theme);
}

/// Which columns are shown, and how wide.
pub(super) struct Columns {
    /// Index, distance from the left, width.
    shown: Vec<(usize, u16, u16)>,
}

impl Columns {
    pub(super) fn new(grid: &Grid, area: Rect) -> Self {
        let mut shown: Vec<(usize, Column)> = grid.columns.iter().copied().enumerate().collect();
        let needed = |shown: &[(usize, Column)]| shown.iter().map(|(_, column)| column.width + GAP).sum::<u16>();
        while needed(&shown) > area.width {
            let most = shown.iter().map(|(_, column)| column.dispensable).max().filter(|&most| most > 0);
            let Some(most) = most else { break };
            shown.retain(|(_, column)| column.dispensable != most);
        }
        let spare = area.width.saturating_sub(needed(&shown));
        let longest = |index: usize| {
            let cells = grid.rows.iter().filter_map(|row| row.cells.get(index));
            let wanted = cells.map(|cell| match &cell.content {
                Content::Text(text) => width(text),
                Content::Bar(..) => WIDEST_BAR,
                Content::Parts(_) => 0,
            });
            wanted.max().unwrap_or(0)
        };
        let mut x = GAP;
        let mut places = Vec::new();
        let mut spare = spare;
        for (index, column) in shown {
            let more = if column.fills { longest(index).saturating_sub(column.width).min(spare) } else { 0 };
            spare -= more;
            places.push((index, x, column.width + more));
            x += column.width + more + GAP;
        }
        Self { shown: places }
    }

    fn places(&self) -> impl Iterator<Item = (usize, u16, u16)> {
        self.shown.iter().copied()
    }
}

fn headings(
    buffer: &mut Buffer,
    area: Rect,
    grid: &Grid,
    columns: &Columns,
    (sorted, descending): (usize, bool),
    theme: Theme,
) {
    for (index, x, wide) in columns.places() {
        let Some(column) = grid.columns.get(index) else { continue };
        let arrow = match (index == sorted, descending) {
            (false, _) => "",
            (true, true) => "▼",
            (true, false) => "▲",
        };
        let text = theme.symbols.text(&format!("{}{arrow}", column.title));
        let tone = if index == sorted { Tone::Title } else { Tone::Dim };
        aligned(
            buffer,
            Rect { x: area.x + x, width: wide, ..area },
            &text,
            column.align,
            theme.palette.of(tone),
            theme,
        );
    }
}

fn put(buffer: &mut Buffer, area: Rect, cell: &Cell, column: Column, theme: Theme) {
    let style = theme.palette.of(cell.tone);
    match &cell.content {
        Content::Text(text) => aligned(buffer, area, &theme.symbols.text(text), column.align, style, theme),
        Content::Bar(share, text) => {
            let wide = area.width.saturating_sub(width(text) + GAP);
            let bar = theme.symbols.bar(*share, wide);
            let line = Line::new(theme).add(Tone::Title, &bar).add(cell.tone, " ").add(cell.tone, text);
            line.put(buffer, area);
        }
        Content::Parts(parts) => self::parts(buffer, area, parts, theme),
    }
}

/// A bar of parts. Without colours they are told apart by letters.
fn parts(buffer: &mut Buffer, area: Rect, parts: &[(Tone, f64)], theme: Theme) {
    let mut line = Line::new(theme);
    let (mut filled, mut sum) = (0u16, 0.0);
    for (tone, share) in parts {
        sum += share.max(0.0);
        let to = end(sum, area.width);
        line = line.add(*tone, &part_letter(*tone).to_string().repeat(to.saturating_sub(filled).into()));
        filled = to.max(filled);
    }
    line.put(buffer, area);
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the width")]
fn end(share: f64, width: u16) -> u16 {
    (share.clamp(0.0, 1.0) * f64::from(width)).round() as u16
}

fn aligned(buffer: &mut Buffer, area: Rect, text: &str, align: Align, style: Style, theme: Theme) {
    let text = fit(text, area.width, theme.symbols.cut());
    let left = if align == Align::Right { area.width.saturating_sub(width(&text)) } else { 0 };
    buffer.set_stringn(area.x + left, area.y, text, area.width.into(), style);
}

/// Which rows are shown, if not all.
fn position(buffer: &mut Buffer, area: Rect, grid: &Grid, top: usize, height: usize, theme: Theme) {
    let all = grid.rows.len();
    if all > height {
        let shown = format!(" {}–{} of {all} ", top + 1, (top + height).min(all));
        Line::new(theme).add(Tone::Dim, &shown).put_right(buffer, line_of(area, 0));
    }
}
