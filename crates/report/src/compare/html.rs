//! A comparison as a page for a browser, by what shows the HTML report of a run.

use serde::Serialize;

use super::{
    Comparison, Section,
    text::{compared, sentence, summary},
};
use crate::page::html::{HtmlError, assembled};

/// What `web/src/comparison.js` knows.
#[derive(Debug, Serialize)]
struct Data<'a> {
    title: String,
    mpiprobe_version: &'a str,
    comparison: &'a Comparison,
    /// What was compared, and how.
    compared: String,
    /// How much was found.
    summary: String,
    /// Of each finding.
    sentences: Vec<String>,
    /// Numbers of all rows, those first that make out most.
    order: Vec<usize>,
    /// What each row is called.
    names: Vec<String>,
    sections: Vec<Table>,
}

#[derive(Debug, Serialize)]
struct Table {
    id: Section,
    title: &'static str,
}

/// The whole page.
pub fn html(comparison: &Comparison) -> Result<String, HtmlError> {
    let mut order: Vec<usize> = (0..comparison.rows.len()).collect();
    let weight = |place: usize| comparison.rows.get(place).map_or(0.0, |row| row.weight);
    order.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)));
    let data = Data {
        title: title(comparison),
        mpiprobe_version: env!("CARGO_PKG_VERSION"),
        comparison,
        compared: compared(comparison),
        summary: summary(comparison),
        sentences: comparison.findings.iter().map(|row| sentence(row, &comparison.basis)).collect(),
        order,
        names: comparison.rows.iter().map(|row| row.subject.to_string()).collect(),
        sections: Section::ALL.map(|id| Table { id, title: id.title() }).into(),
    };
    assembled(&data.title, data.mpiprobe_version, &data)
}

/// "solve: 5 runs before, 5 after".
fn title(comparison: &Comparison) -> String {
    let runs = |runs: &[String]| format!("{} run{}", runs.len(), if runs.len() == 1 { "" } else { "s" });
    let programs = comparison.programs.join(", ");
    format!("{programs}: {} before, {} after", runs(&comparison.before), comparison.after.len())
}
