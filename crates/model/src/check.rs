//! What the doctor has checked, and how each check ended.

use std::error::Error;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// How a check ended; the worst one decides the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Good to know; nothing to be judged.
    Info,
    Ok,
    /// Works, at a price or with something missing.
    Limited,
    /// Does not work.
    Failed,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Check {
    /// What was checked, in kebab-case. These names are for programs to look for and do not change.
    pub name: &'static str,
    pub verdict: Verdict,
    /// What was found.
    pub finding: String,
    /// Why it is so, or why it matters; `null` where the finding says it all.
    pub reason: Option<String>,
    /// What to do; `null` where nothing needs to be done.
    pub fix: Option<String>,
    /// The finding's numbers and names for programs, an object; times in ns, sizes in bytes. Left out where there are none.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// All checks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    pub schema: &'static str,
    /// The worst of all checks.
    pub verdict: Verdict,
    /// The process that was checked.
    pub pid: Option<u32>,
    /// Checks of this system.
    pub system: Vec<Check>,
    /// Checks of the process; empty without one.
    pub process: Vec<Check>,
    /// Checks of the node service; empty unless it was asked for.
    pub service: Vec<Check>,
}

impl Report {
    /// Name and version of the JSON form.
    pub const SCHEMA: &'static str = "mpiprobe.doctor/1";

    pub fn new(pid: Option<u32>, system: Vec<Check>, process: Vec<Check>) -> Self {
        let verdicts = system.iter().chain(&process).map(|check| check.verdict);
        let verdict = verdicts.max().unwrap_or(Verdict::Ok);
        Self { schema: Self::SCHEMA, verdict, pid, system, process, service: Vec::new() }
    }

    /// Of the node service alone.
    pub fn of_service(service: Vec<Check>) -> Self {
        let verdict = service.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Ok);
        Self { verdict, service, ..Self::new(None, Vec::new(), Vec::new()) }
    }

    pub fn worst(&self) -> Verdict {
        self.verdict
    }

    pub fn checks(&self) -> impl Iterator<Item = &Check> {
        self.system.iter().chain(&self.process).chain(&self.service)
    }
}

impl Check {
    fn new(name: &'static str, verdict: Verdict, finding: impl Into<String>) -> Self {
        Self { name, verdict, finding: finding.into(), reason: None, fix: None, data: Value::Null }
    }

    pub fn info(name: &'static str, finding: impl Into<String>) -> Self {
        Self::new(name, Verdict::Info, finding)
    }

    pub fn ok(name: &'static str, finding: impl Into<String>) -> Self {
        Self::new(name, Verdict::Ok, finding)
    }

    pub fn limited(name: &'static str, finding: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..Self::new(name, Verdict::Limited, finding) }
    }

    pub fn failed(name: &'static str, finding: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..Self::new(name, Verdict::Failed, finding) }
    }

    /// A check that ended in an error.
    pub fn failed_by(name: &'static str, error: &dyn Error) -> Self {
        let (finding, fix) = finding_and_fix(error);
        Self { fix, ..Self::new(name, Verdict::Failed, finding) }
    }

    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }

    #[must_use]
    pub fn with(self, data: Value) -> Self {
        Self { data, ..self }
    }
}

/// What an error says is wrong, and what it says is to be done about it.
///
/// By this program's convention the second part of a message follows a semicolon or stands on the next line.
pub fn finding_and_fix(error: &dyn Error) -> (String, Option<String>) {
    let message = error.to_string();
    match message.split_once('\n').or_else(|| message.split_once("; ")) {
        Some((finding, fix)) => (finding.to_owned(), Some(fix.trim().to_owned())),
        None => (message, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_check_decides_wherever_it_is() {
        let ok = Check::ok("a", "");
        let verdict = |system, process| Report::new(None, system, process).worst();
        assert_eq!(verdict(vec![], vec![]), Verdict::Ok);
        assert_eq!(verdict(vec![Check::info("b", ""), ok.clone()], vec![]), Verdict::Ok);
        assert_eq!(verdict(vec![Check::limited("b", "", "")], vec![ok.clone()]), Verdict::Limited);
        assert_eq!(verdict(vec![ok], vec![Check::failed("b", "", "")]), Verdict::Failed);
    }

    #[test]
    fn programs_see_null_for_what_does_not_apply() {
        let check = Check::ok("kernel", "Linux 6.18");
        assert_eq!(
            serde_json::to_string(&check).unwrap(),
            r#"{"name":"kernel","verdict":"ok","finding":"Linux 6.18","reason":null,"fix":null}"#
        );
        let check = check.with(serde_json::json!({"cpus": 2}));
        assert!(serde_json::to_string(&check).unwrap().ends_with(r#""data":{"cpus":2}}"#));
    }

    #[test]
    fn messages_are_taken_apart() {
        let parts = |message: &str| finding_and_fix(&std::io::Error::other(message));
        let fix = |text: &str| Some(text.to_owned());
        assert_eq!(parts("process 5 is bob's; run it as root"), ("process 5 is bob's".into(), fix("run it as root")));
        assert_eq!(
            parts("it runs; badly\n  Run it on the host."),
            ("it runs; badly".into(), fix("Run it on the host."))
        );
        assert_eq!(parts("process 5 has ended"), ("process 5 has ended".into(), None));
    }
}
