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
