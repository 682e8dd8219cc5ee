//! Checks and their outcome.

use serde::Serialize;

/// How a check ended; the worst one decides the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// Works, at a price or with something missing.
    Limited,
    /// Does not work.
    Failed,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was checked, in a few words.
    pub name: &'static str,
    pub verdict: Verdict,
    /// What was found.
    pub finding: String,
    /// What to do; `null` where nothing needs to be done.
    pub fix: Option<String>,
}

/// All checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    pub schema: &'static str,
    pub checks: Vec<Check>,
}

impl Report {
    pub fn worst(&self) -> Verdict {
        self.checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Ok)
    }
}

impl Check {
    pub fn ok(name: &'static str, finding: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Ok, finding: finding.into(), fix: None }
    }

    pub fn limited(name: &'static str, finding: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Limited, finding: finding.into(), fix: Some(fix.into()) }
    }

    pub fn failed(name: &'static str, finding: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Failed, finding: finding.into(), fix: Some(fix.into()) }
    }
}
