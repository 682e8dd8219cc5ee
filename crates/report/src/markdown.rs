//! A report in Markdown, for issues and pages of a project: what was found, and the tables as people read them.

use std::io::{self, Write};

use crate::present::{FindingText, TextOptions};
use mpiprobe_model::Profile;

use super::tables::{Cell, Content, NAMES, Table, table};

/// As many rows as a page bears, unless others are asked for.
const ROWS: usize = 20;
/// The findings stand before the tables; of the others, the CSV tells.
const LEFT_OUT: [&str; 3] = ["findings", "functions_by_rank", "durations"];

pub(crate) fn markdown(
    name: &str,
    profile: &Profile,
    findings: &[FindingText],
    options: &TextOptions,
    to: &mut dyn Write,
) -> io::Result<()> {
    writeln!(to, "# mpiprobe: {}\n", escaped(name))?;
    let jobs: Vec<String> = profile.jobs.iter().map(|job| job.id.clone()).collect();
    let observed = crate::present::units::ns(profile.observed_ns);
    writeln!(
        to,
        "{} on {}, observed {observed} from {}\n",
        escaped(&if jobs.is_empty() { "no job".to_owned() } else { jobs.join(", ") }),
        escaped(&profile.host),
        escaped(&profile.began)
    )?;
    if profile.ranks.is_empty() {
        return writeln!(to, "No MPI call was counted.");
    }
    if !findings.is_empty() {
        writeln!(to, "## Findings\n")?;
        for finding in findings {
            writeln!(to, "- **{}**: {}. {}", finding.name, escaped(&finding.found), finding.advised())?;
            for line in &finding.evidence {
                writeln!(to, "  - {}", escaped(line))?;
            }
        }
        writeln!(to)?;
    }
    let most = options.top.unwrap_or(if options.all { usize::MAX } else { ROWS });
    for name in NAMES.into_iter().filter(|name| !LEFT_OUT.contains(name)) {
        let table = table(name, Content { profile, findings: &[], by: options.by });
        if !table.rows.is_empty() {
            write_table(&table, most, to)?;
        }
    }
    Ok(())
}

fn write_table(table: &Table, most: usize, to: &mut dyn Write) -> io::Result<()> {
    writeln!(to, "## {}\n", table.title)?;
    let columns: Vec<usize> = (0..table.columns.len()).filter(|&column| is_of_use(table, column)).collect();
    let head = columns.iter().filter_map(|&column| table.columns.get(column));
    let is_number = |column: usize| table.rows.iter().all(|row| row.get(column).is_some_and(Cell::is_number));
    let rule = columns.iter().map(|&column| if is_number(column) { "---:" } else { "---" });
    writeln!(to, "| {} |", head.map(|name| heading(name)).collect::<Vec<_>>().join(" | "))?;
    writeln!(to, "| {} |", rule.collect::<Vec<_>>().join(" | "))?;
    for row in table.rows.iter().take(most) {
        let cells = columns.iter().filter_map(|&column| row.get(column)).map(|cell| escaped(&cell.readable()));
        writeln!(to, "| {} |", cells.collect::<Vec<_>>().join(" | "))?;
    }
    if table.rows.len() > most {
        writeln!(to, "\n{} more are left out (`--top`).", table.rows.len() - most)?;
    }
    writeln!(to)
}

/// A column in which nothing is known is left out.
fn is_of_use(table: &Table, column: usize) -> bool {
    let is_empty = |cell: &Cell| match cell {
        Cell::Unknown => true,
        Cell::Text(text) => text.is_empty(),
        _ => false,
    };
    table.rows.iter().any(|row| row.get(column).is_some_and(|cell| !is_empty(cell)))
}

/// Figures have their units with them.
fn heading(name: &str) -> String {
    let name = ["_ns", "_percent"].iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(name);
    name.replace('_', " ")
}

/// Text that Markdown and HTML take as it is.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => out.extend(['\\', letter]),
            '\n' | '\r' => out.push(' '),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_markdown_nor_html_passes() {
        assert_eq!(escaped("<script>a|b</script>"), "&lt;script&gt;a\\|b&lt;/script&gt;");
        assert_eq!(escaped("[x](http://y) `z` MPI_Send\n# h"), "\\[x\\](http://y) \\`z\\` MPI\\_Send \\# h");
    }
}
