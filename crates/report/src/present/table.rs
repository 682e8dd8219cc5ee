//! Plain tables: columns by blanks, numbers to the right, and no wider than what shows them if that is known.

use std::fmt::Write as _;

use comfy_table::{Cell, CellAlignment, Table, presets};
use unicode_width::UnicodeWidthStr as _;

use crate::By;

/// How text for people is laid out, and how much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Characters in a line; `None`: as many as there are.
    pub width: Option<usize>,
    /// Rows of tables in the order of amounts, instead of what most readers want.
    pub top: Option<usize>,
    /// Also what few readers want.
    pub all: bool,
    /// Rows with most of this first, instead of what is usual in each table.
    pub by: Option<By>,
}

impl TextOptions {
    /// Rows of a table of which most readers want so many.
    pub(crate) fn rows(&self, usual: usize) -> usize {
        match self.top {
            Some(top) => top,
            None if self.all => usize::MAX,
            None => usual,
        }
    }

    /// What was left out of a table, and how to see it; empty: nothing.
    pub(super) fn more(&self, shown: usize, of: usize, what: &str) -> String {
        let left_out = of.saturating_sub(shown);
        let how = if self.top.is_some() { "--top" } else { "-v, --top N" };
        let count = super::units::count(left_out as u64);
        if left_out == 0 { String::new() } else { format!("{count} more {what}: {how}, or see --json\n") }
    }
}

/// A column: its heading, on which side its cells stand, and how much it is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    heading: &'static str,
    alignment: CellAlignment,
    /// How soon it is left out for want of width: those of 0 only where nothing else helps.
    spare: u8,
}

/// Text.
pub(crate) const fn left(heading: &'static str) -> Column {
    Column { heading, alignment: CellAlignment::Left, spare: 0 }
}

/// Figures.
pub(crate) const fn right(heading: &'static str) -> Column {
    Column { heading, alignment: CellAlignment::Right, spare: 0 }
}

impl Column {
    /// It is left out if there is no room for it, after those that are spared sooner.
    pub(crate) const fn spare(self) -> Self {
        Self { spare: 1, ..self }
    }

    /// It is the first to be left out.
    pub(crate) const fn spare_first(self) -> Self {
        Self { spare: 2, ..self }
    }

    fn cell(self, text: &str) -> Cell {
        Cell::new(text).set_alignment(self.alignment)
    }
}

/// Columns between two others.
const GAP: usize = 2;
/// Columns are left out before a text is shortened to less, and no text is shortened to less than that.
const READABLE: usize = 28;
const SHORTEST: usize = 16;
/// Columns that are never left out: what it is, and how much.
const KEPT: usize = 3;

/// Lays out rows; a row may be shorter than the headings. What there is no room for is left out, and said.
pub(crate) fn table(options: &TextOptions, columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut rows: Vec<Vec<String>> = rows.into_iter().collect();
    let mut shown: Vec<usize> = (0..columns.len()).filter(|&place| is_of_use(columns, &rows, place)).collect();
    let mut left_out = Vec::new();
    if let Some(width) = options.width {
        let mut widths = widths(columns, &rows);
        left_out = leave_out(columns, &mut shown, &widths, width);
        shorten(columns, &shown, &mut widths, width, &mut rows);
    }
    let of_shown = || shown.iter().filter_map(|&place| Some((place, *columns.get(place)?)));
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(of_shown().map(|(_, column)| column.cell(column.heading)));
    for row in rows {
        table.add_row(of_shown().map(|(place, column)| column.cell(row.get(place).map_or("", String::as_str))));
    }
    let text = table.to_string();
    let mut text = text.lines().map(str::trim_end).fold(String::new(), |all, line| all + line + "\n");
    if !left_out.is_empty() {
        text.push_str(&paragraph(options, 1, &format!("(no room for {})", left_out.join(", "))));
    }
    text
}

/// Of each column the widest cell.
fn widths(columns: &[Column], rows: &[Vec<String>]) -> Vec<usize> {
    let of_column = |(place, column): (usize, &Column)| {
        let cells = rows.iter().filter_map(|row| row.get(place)).map(|cell| cell.width());
        cells.fold(column.heading.width(), usize::max)
    };
    columns.iter().enumerate().map(of_column).collect()
}

/// Nobody misses a column in which there is nothing.
fn is_of_use(columns: &[Column], rows: &[Vec<String>], place: usize) -> bool {
    let is_wanted = columns.get(place).is_some_and(|column| column.spare == 0);
    is_wanted || rows.iter().any(|row| row.get(place).is_some_and(|cell| !cell.is_empty()))
}

/// Leaves columns out until the others fit into so many characters; the headings of those that are.
fn leave_out(columns: &[Column], shown: &mut Vec<usize>, widths: &[usize], width: usize) -> Vec<&'static str> {
    let mut left_out = Vec::new();
    // Texts may be shortened, but not so much that they cannot be told apart.
    let least = |place: usize| {
        let is_text = columns.get(place).is_some_and(|column| column.alignment == CellAlignment::Left);
        widths.get(place).map_or(0, |width| if is_text { (*width).min(READABLE) } else { *width })
    };
    let spare = |place: usize| columns.get(place).map_or(0, |column| column.spare);
    while shown.iter().map(|&place| least(place) + GAP).sum::<usize>() > width + 1 {
        let Some(most) = shown.iter().map(|&place| spare(place)).max() else { break };
        // Those that everybody wants go last, and the first ones stay.
        if most == 0 && shown.len() <= KEPT {
            break;
        }
        let Some(at) = shown.iter().rposition(|&place| spare(place) == most) else { break };
        let place = shown.remove(at);
        left_out.extend(columns.get(place).map(|column| column.heading));
    }
    left_out.reverse();
    left_out.dedup();
    left_out
}

/// Takes from the widest texts until all fits.
fn shorten(columns: &[Column], shown: &[usize], widths: &mut [usize], width: usize, rows: &mut [Vec<String>]) {
    let is_text = |place: usize| columns.get(place).is_some_and(|column| column.alignment == CellAlignment::Left);
    loop {
        let all: usize = shown.iter().filter_map(|&place| widths.get(place)).map(|width| width + GAP).sum();
        let over = all.saturating_sub(width + 1);
        let texts = shown.iter().copied().filter(|&place| is_text(place));
        let widest = texts.max_by_key(|&place| widths.get(place).copied().unwrap_or(0));
        let Some(column) =
            widest.and_then(|place| widths.get_mut(place)).filter(|width| over > 0 && **width > SHORTEST)
        else {
            break;
        };
        // Bit by bit, so that two texts of one length are shortened alike.
        *column -= over.min(4).min(*column - SHORTEST);
    }
    for row in rows {
        for (cell, width) in row.iter_mut().zip(&*widths) {
            if cell.width() > *width {
                *cell = shortened(cell, *width);
            }
        }
    }
}

/// The beginning of a text, and that it goes on.
fn shortened(text: &str, width: usize) -> String {
    let mut short = String::new();
    for letter in text.chars() {
        short.push(letter);
        if short.width() >= width {
            short.pop();
            break;
        }
    }
    short + "…"
}

/// More ranks than this are shown one by one in the JSON output only.
pub(super) const RANKS_SHOWN: usize = 16;
/// The column headings of those.
pub(super) const RANKS: [&str; RANKS_SHOWN] =
    ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"];

/// Tables under their title.
pub(super) fn section(title: &str, body: &str) -> String {
    format!("{title}\n{body}")
}

/// Characters of a line of words where no width is known: longer ones are hard to read.
const LINE: usize = 110;

/// Words broken into lines that begin behind so many blanks, also the first one.
pub(crate) fn paragraph(options: &TextOptions, indent: usize, words: &str) -> String {
    let width = options.width.map_or(LINE, |width| width.clamp(indent + 24, LINE));
    let (mut text, mut column) = (" ".repeat(indent), indent);
    for word in words.split_whitespace() {
        let length = word.width();
        if column > indent && column + 1 + length > width {
            let _ = write!(text, "\n{:indent$}", "");
            column = indent;
        } else if column > indent {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 5] =
        [left("function"), right("calls"), right("time"), right("p50").spare(), right("min").spare_first()];

    fn shown(width: Option<usize>) -> String {
        let row = |name: &str, calls: &str| [name, calls, "1.00 s", "10 ns", "1 ns"].map(ToOwned::to_owned).to_vec();
        let options = TextOptions { width, ..TextOptions::default() };
        table(
            &options,
            &COLUMNS,
            [row("MPI_Send", "7"), row("MPI_Ineighbor_alltoallw_init", "12,345"), vec!["x".into()]],
        )
    }

    #[test]
    fn what_there_is_no_room_for_is_left_out_and_said() {
        insta::assert_snapshot!([None, Some(80), Some(52), Some(44), Some(36), Some(5)].map(shown).join("--\n"));
    }

    #[test]
    fn no_line_is_wider_than_what_shows_it() {
        for width in 34..80 {
            let text = shown(Some(width));
            assert!(text.lines().all(|line| line.width() <= width), "{width}:\n{text}");
        }
    }

    #[test]
    fn where_nothing_else_helps_what_everybody_wants_is_left_out_too() {
        let columns = [left("function"), right("calls"), right("time"), right("mean"), right("max")];
        let row = ["MPI_Send", "7", "1.00 s", "143 ms", "500 ms"].map(ToOwned::to_owned).to_vec();
        let options = TextOptions { width: Some(32), ..TextOptions::default() };
        let expected = " function  calls    time    mean\n MPI_Send      7  1.00 s  143 ms\n (no room for max)\n";
        assert_eq!(table(&options, &columns, [row]), expected);
    }

    #[test]
    fn words_are_broken_into_lines() {
        let options = TextOptions { width: Some(30), ..TextOptions::default() };
        assert_eq!(
            paragraph(&options, 4, "rank 3 spends most of its time in MPI_Recv"),
            "    rank 3 spends most of its\n    time in MPI_Recv\n"
        );
        assert_eq!(paragraph(&options, 4, ""), "    \n");
        let path = format!("/{}", "x".repeat(200));
        assert_eq!(paragraph(&options, 2, &format!("at {path} now")), format!("  at\n  {path}\n  now\n"));
    }

    #[test]
    fn it_is_said_how_much_more_there_is() {
        let options = TextOptions::default();
        assert_eq!((options.rows(20), options.more(20, 20, "pairs")), (20, String::new()));
        assert_eq!(options.more(20, 1021, "pairs"), "1,001 more pairs: -v, --top N, or see --json\n");
        assert_eq!(TextOptions { all: true, ..options }.rows(20), usize::MAX);
        assert_eq!(TextOptions { top: Some(3), all: true, ..options }.rows(20), 3);
    }
}
