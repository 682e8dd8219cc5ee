//! One table as comma-separated values (RFC 4180), for spreadsheets and programs. Figures are those of the JSON.

use super::tables::{Cell, Table};

/// A table with its heading.
pub(crate) fn csv(table: &Table) -> String {
    let mut text = table.columns.join(",") + "\n";
    for row in &table.rows {
        text += &row.iter().map(field).collect::<Vec<_>>().join(",");
        text.push('\n');
    }
    text
}

fn field(cell: &Cell) -> String {
    let text = cell.exact();
    if cell.is_number() { text } else { quoted(&harmless(text)) }
}

/// Text that a spreadsheet would take for a formula stands behind an apostrophe, by which it knows text.
fn harmless(text: String) -> String {
    let is_formula = text.trim_start().starts_with(['=', '+', '-', '@', '\t', '\r']);
    // A level of a phase may be negative.
    if is_formula && text.parse::<f64>().is_err() { format!("'{text}") } else { text }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_and_quotes_are_text() {
        let of = |text: &str| field(&Cell::Text(text.to_owned()));
        assert_eq!(of("=cmd|'/C calc'!A0"), "'=cmd|'/C calc'!A0");
        assert_eq!(of("  @SUM(1,2)"), "\"'  @SUM(1,2)\"");
        assert_eq!(of("+1+1"), "'+1+1");
        assert_eq!(of("-7"), "-7");
        assert_eq!(of("a \"b\", c"), "\"a \"\"b\"\", c\"");
        assert_eq!(of("plain"), "plain");
        assert_eq!(
            (field(&Cell::Unknown), field(&Cell::Ns(12.0)), field(&Cell::Percent(0.1))),
            (String::new(), "12".into(), "0.1".into())
        );
    }
}
