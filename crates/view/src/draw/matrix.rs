//! The communication matrix as a map of shades.

use std::fmt::Write as _;

use mpiprobe_report::present::units::{bytes, count, ns};
use ratatui::{Frame, layout::Rect};

use crate::paint::{
    Palette, Theme,
    line::{Line, line_of},
};
use crate::{
    content::{Matrix, Measure, Tone},
    layout,
    state::State,
};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, theme: Theme) {
    let (matrix, measure, at) = (state.matrix(), state.measure, state.matrix_at());
    let buffer = frame.buffer_mut();
    Line::new(theme).add(Tone::Title, &title(matrix, measure)).put(buffer, line_of(area, 0));
    if !matrix.empty.is_empty() {
        Line::new(theme).add(Tone::Dim, &format!(" {}", matrix.empty)).put(buffer, line_of(area, 2));
        return;
    }
    Line::new(theme).add(Tone::Dim, &columns(matrix)).put(buffer, line_of(area, 1));
    let highest = matrix.highest(measure);
    let labels = layout::MATRIX_LABELS;
    for (row, number) in (0..matrix.cells).zip(0u16..) {
        let line = line_of(area, number + 2);
        let label = format!("{:>1$} ", ranks(matrix.ranks(matrix.part.from, row)), usize::from(labels) - 1);
        Line::new(theme).add(if row == at.0 { Tone::Title } else { Tone::Dim }, &label).put(buffer, line);
        for (column, x) in (0..matrix.cells).zip((labels..area.width).step_by(2)) {
            let shade = theme.symbols.shade(matrix.value((row, column), measure), highest);
            let cell = Rect { x: area.x + x, width: 2.min(area.width - x), ..line };
            Line::new(theme).styled(theme.palette.of(Tone::Good), &shade.to_string().repeat(2)).put(buffer, cell);
            if (row, column) == at {
                buffer.set_style(cell, Palette::selected());
            }
        }
    }
    let last = area.height.saturating_sub(1);
    Line::new(theme).add(Tone::Plain, &here(matrix, at)).put(buffer, line_of(area, last));
    let legend: String = theme.symbols.shades().map(|(shade, above)| format!("{shade} > {above} %  ")).concat();
    Line::new(theme).add(Tone::Dim, &format!("{legend}of the highest ")).put_right(buffer, line_of(area, last - 1));
}

fn title(matrix: &Matrix, measure: Measure) -> String {
    let job = matrix.job.as_ref().map(|job| format!(" of {job}")).unwrap_or_default();
    let share = if matrix.step > 1 { format!(", {} ranks in a square", matrix.step) } else { String::new() };
    let over = matrix.over.as_ref().map(|over| format!(" over {over}")).unwrap_or_default();
    let what = measure.title();
    format!(" {what} from row to column{over}{job}{share}, since the beginning; m: measure, c: communicator")
}

/// The first rank of every fifth column.
fn columns(matrix: &Matrix) -> String {
    let mut text = " ".repeat(layout::MATRIX_LABELS.into());
    for column in (0..matrix.cells).step_by(5) {
        let _ = write!(text, "{:<10}", matrix.ranks(matrix.part.to, column).0);
    }
    text.truncate(usize::from(layout::MATRIX_LABELS) + 2 * matrix.cells.max(3));
    text
}

/// "3", "16-31"
fn ranks((first, last): (u32, u32)) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// What the cursor is on, in words.
fn here(matrix: &Matrix, at: (usize, usize)) -> String {
    let (from, to) = (matrix.ranks(matrix.part.from, at.0), matrix.ranks(matrix.part.to, at.1));
    let pair = format!(" {} → {}: ", ranks(from), ranks(to));
    let Some(cell) = matrix.sums.get(&at) else { return pair + "nothing" };
    let amounts = cell.0;
    let received = if amounts.received_bytes > 0 {
        let at_most = if amounts.received_at_most_bytes > 0 { "<= " } else { "" };
        format!(", {at_most}{} received from there", bytes(amounts.received_bytes))
    } else {
        String::new()
    };
    let unknown = if amounts.calls_of_unknown_bytes > 0 {
        format!(", {} calls of unknown size", count(amounts.calls_of_unknown_bytes))
    } else {
        String::new()
    };
    let (sent, calls, time) = (bytes(amounts.sent_bytes), count(amounts.calls), ns(amounts.time_ns));
    format!("{pair}{sent} sent{received}, {calls} calls, {time}{unknown}")
}
