//! A comparison for people: what was found in sentences, then tables.

use std::fmt::Write as _;

use crate::{
    Scaling,
    present::{Column, TextOptions, left, paragraph, right, table, units},
};

use super::{Basis, Comparison, Method, Row, Section, Verdict};

/// As it is laid out for people; of each table, the rows that differ most.
pub fn text(options: &TextOptions, comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in head(comparison) {
        let words = line.trim_start();
        text += &if words.is_empty() { "\n".into() } else { paragraph(options, line.len() - words.len(), words) };
    }
    for (title, header, rows) in tables(comparison, options.rows(ROWS)) {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{title}\n{}", table(options, &columns(&header), rows));
    }
    text
}

/// Rows of a table, if nobody asks for others.
pub(super) const ROWS: usize = 20;

/// A title, headings and rows.
pub(super) type Cells = (String, Vec<&'static str>, Vec<Vec<String>>);

/// What is said before the tables, a line each.
pub(super) fn head(comparison: &Comparison) -> Vec<String> {
    let mut lines = vec![
        format!("before: {}", names(&comparison.before)),
        format!("after:  {}", names(&comparison.after)),
        format!("compared: {}", compared(comparison)),
    ];
    lines.extend(comparison.notes.iter().map(|note| format!("note: {note}")));
    lines.push(String::new());
    lines.push(summary(comparison));
    lines.extend(comparison.findings.iter().map(|row| format!("  {}", sentence(row, &comparison.basis))));
    lines
}

fn names(names: &[String]) -> String {
    match names {
        [one] => one.clone(),
        several => format!("{} ({} runs)", several.join(", "), several.len()),
    }
}

/// What was compared, and how.
pub(super) fn compared(comparison: &Comparison) -> String {
    format!("{}; {}", comparison.basis, method(comparison))
}

fn method(comparison: &Comparison) -> &'static str {
    match comparison.method {
        Method::Permutation => "by permutation of runs (maxT)",
        Method::Student => "by Student's test with Holm's correction, and the order of runs",
        Method::Moments => "by permutation of the parts of one run a side (maxT)",
        Method::None => "chance not known",
    }
}

/// How much was found.
pub(super) fn summary(comparison: &Comparison) -> String {
    match comparison.findings.len() {
        _ if comparison.is_same() => "No difference: every figure is the same.".into(),
        0 if comparison.method == Method::None => "Differences are in the tables.".into(),
        0 => "No difference that could not be chance.".into(),
        1 => "One difference is no chance:".into(),
        number => format!("{number} differences are no chance, the most costly first:"),
    }
}

/// What was found of a row.
pub(super) fn sentence(row: &Row, basis: &Basis) -> String {
    let verdict = if row.verdict == Verdict::Slower { "longer" } else { "shorter" };
    let by = row.change_percent.map_or(String::new(), |change| format!(" by {:.1} %", change.abs()));
    let between = row.change_interval_percent;
    let between = between.map_or(String::new(), |(low, high)| format!(" ({low:+.1} to {high:+.1} %)"));
    format!("{} takes {verdict}{by}{between}: {} → {}", row.subject, value(row.before, basis), value(row.after, basis))
}

fn value(value: f64, basis: &Basis) -> String {
    if *basis == Basis::Time { format!("{:.2} %", 100.0 * value) } else { units::duration(value) }
}

/// What a row is called in a table.
fn name(row: &Row) -> String {
    match (row.subject.section, &row.subject.ranks) {
        (Section::Whole | Section::CallSite | Section::Function, _) => row.subject.to_string(),
        (Section::Ranks | Section::FunctionInRanks, Some(ranks)) => {
            let name = match row.subject.name.as_str() {
                "computing" => "outside MPI",
                "mpi" => "in MPI",
                name => name,
            };
            format!("{ranks} {name}")
        }
        _ => row.subject.name.clone(),
    }
}

pub(super) fn tables(comparison: &Comparison, top: usize) -> Vec<Cells> {
    let mut tables: Vec<Cells> = comparison.scaling.iter().map(scaling).collect();
    for section in Section::ALL {
        let of_section = comparison.rows.iter().filter(|row| row.subject.section == section);
        let mut rows: Vec<&Row> = of_section.filter(|row| row.verdict != Verdict::Negligible).collect();
        if rows.is_empty() || comparison.is_same() {
            continue;
        }
        if section != Section::Whole {
            rows.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        }
        let shown = rows.iter().take(top).map(|row| cells(row, &comparison.basis)).collect();
        let left = rows.len().saturating_sub(top);
        let more = if left > 0 {
            format!(" (the {top} that differ most; {left} more by -v, --top N or as JSON)")
        } else {
            String::new()
        };
        let heading = format!("{}{more}", section.title());
        let header = vec!["", "before", "after", "change", "95 %", "calls before", "calls after", ""];
        tables.push((heading, header, shown));
    }
    tables
}

fn cells(row: &Row, basis: &Basis) -> Vec<String> {
    let calls = |calls: Option<f64>| calls.map_or(String::new(), |calls| format!("{calls:.0}"));
    let change = row.change_percent.map_or_else(|| "new".into(), |change| format!("{change:+.1} %"));
    let between = row.change_interval_percent.map_or(String::new(), |(low, high)| format!("{low:+.1} … {high:+.1} %"));
    let verdict = match row.verdict {
        Verdict::Slower => "longer",
        Verdict::Faster => "shorter",
        Verdict::Same => "same",
        Verdict::Chance => "may be chance",
        Verdict::Unknown => "?",
        Verdict::Negligible => "",
    };
    let (before, after) = (value(row.before, basis), value(row.after, basis));
    vec![name(row), before, after, change, between, calls(row.calls_before), calls(row.calls_after), verdict.into()]
}

fn scaling(scaling: &Scaling) -> Cells {
    let percent = |share: Option<f64>| share.map_or_else(|| "?".into(), |share| format!("{:.1} %", 100.0 * share));
    let rows = scaling.rows.iter().map(|row| {
        vec![
            row.ranks.to_string(),
            row.runs.to_string(),
            units::duration(row.elapsed_ns),
            format!("{:.2}", row.speedup),
            percent(row.global),
            percent(row.parallel),
            percent(row.load_balance),
            percent(row.communication),
            percent(row.computation),
        ]
    });
    let title = if scaling.is_weak {
        "Scaling (weak: as much to do for each rank)"
    } else {
        "Scaling (strong: as much to do in all)"
    };
    let header = vec![
        "ranks",
        "runs",
        "elapsed",
        "speedup",
        "global efficiency",
        "parallel efficiency",
        "load balance",
        "communication",
        "computation scaling",
    ];
    (title.into(), header, rows.collect())
}

/// Names and verdicts to the left; calls and intervals are left out first.
fn columns(header: &[&'static str]) -> Vec<Column> {
    let last = header.len().saturating_sub(1);
    let column = |(place, &heading): (usize, &&'static str)| match heading {
        "" if place == 0 || place == last => left(heading),
        "calls before" | "calls after" | "runs" => right(heading).spare_first(),
        "95 %" => right(heading).spare(),
        _ => right(heading),
    };
    header.iter().enumerate().map(column).collect()
}
