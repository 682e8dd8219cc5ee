//! Plain tables: columns by blanks, numbers to the right.

use comfy_table::{Cell, CellAlignment, Table, presets};

/// A column's heading, and on which side its cells stand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Column {
    Left(&'static str),
    Right(&'static str),
}

impl Column {
    fn cell(self, text: &str) -> Cell {
        let alignment = match self {
            Self::Left(_) => CellAlignment::Left,
            Self::Right(_) => CellAlignment::Right,
        };
        Cell::new(text).set_alignment(alignment)
    }

    fn heading(self) -> Cell {
        match self {
            Self::Left(heading) | Self::Right(heading) => self.cell(heading),
        }
    }
}

/// Lays out rows; a row may be shorter than the headings.
pub(super) fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(columns.iter().map(|column| column.heading()));
    for row in rows {
        table.add_row(columns.iter().zip(&row).map(|(column, text)| column.cell(text)));
    }
    let text = table.to_string();
    text.lines().map(str::trim_end).fold(String::new(), |all, line| all + line + "\n")
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
