//! The doctor's findings as text.

use std::fmt::Write as _;

use crate::doctor::{Check, Report, Verdict};

/// One line a check, and below it what to do.
pub fn checks(report: &Report) -> String {
    let width = report.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Check { name, verdict, finding, fix } in &report.checks {
        let sign = match verdict {
            Verdict::Ok => "ok  ",
            Verdict::Limited => "warn",
            Verdict::Failed => "FAIL",
        };
        let indent = " ".repeat(width + 7);
        let _ = writeln!(text, "{sign} {name:width$}  {}", finding.replace('\n', &format!("\n{indent}")));
        if let Some(fix) = fix {
            let _ = writeln!(text, "{indent}→ {}", fix.replace('\n', &format!("\n{indent}  ")));
        }
    }
    text
}
