//! A comparison for a merge request.

use std::fmt::Write as _;

use super::{
    Comparison,
    text::{ROWS, head, tables},
};
use crate::present::TextOptions;

/// As [`text`](super::text()), in GitHub's Markdown.
pub fn markdown(options: &TextOptions, comparison: &Comparison) -> String {
    let mut page = String::new();
    for line in head(comparison) {
        // Writing to a String cannot fail.
        let _ = match line.strip_prefix("  ") {
            Some(finding) => writeln!(page, "- {}", escaped(finding)),
            None => writeln!(page, "{}\n", escaped(&line)),
        };
    }
    for (title, header, rows) in tables(comparison, options.rows(ROWS)) {
        let _ = write!(page, "\n### {}\n\n|{}|\n|{}|\n", escaped(&title), header.join("|"), ruler(header.len()));
        for row in rows {
            let cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
            let _ = writeln!(page, "|{}|", cells.join("|"));
        }
    }
    page
}

/// Names to the left, figures to the right.
fn ruler(columns: usize) -> String {
    let mut columns = vec!["---:"; columns];
    if let Some(first) = columns.first_mut() {
        *first = "---";
    }
    columns.join("|")
}

/// What others have named must not become markup.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped += "&lt;",
            '&' => escaped += "&amp;",
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' | '@' => escaped.extend(['\\', letter]),
            _ => escaped.push(letter),
        }
    }
    escaped
}
