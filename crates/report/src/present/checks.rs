//! The doctor's findings as text.

use std::fmt::Write as _;

use mpiprobe_model::{Check, Report, Verdict};

/// Lines are broken here; a word that is longer (a path) is not.
const WIDTH: usize = 110;

/// A paragraph a check, then what it comes to.
pub fn checks(report: &Report) -> String {
    let width = report.checks().map(|check| check.name.len()).max().unwrap_or(0);
    if !report.service.is_empty() {
        let mut text = String::from("The node service\n");
        report.service.iter().for_each(|check| paragraph(&mut text, check, width));
        let _ = writeln!(text, "\n{}", conclusion_of_service(report));
        return text;
    }
    let mut text = String::from("This system\n");
    report.system.iter().for_each(|check| paragraph(&mut text, check, width));
    if let (Some(pid), false) = (report.pid, report.process.is_empty()) {
        let _ = writeln!(text, "\nProcess {pid}");
        report.process.iter().for_each(|check| paragraph(&mut text, check, width));
    }
    let _ = writeln!(text, "\n{}", conclusion(report));
    text
}

fn paragraph(text: &mut String, check: &Check, width: usize) {
    let Check { name, verdict, finding, reason, fix, .. } = check;
    let sign = match verdict {
        Verdict::Info => "info",
        Verdict::Ok => "ok",
        Verdict::Limited => "warn",
        Verdict::Failed => "FAIL",
    };
    let indent = width + 10;
    let said = reason.as_ref().map_or_else(|| finding.clone(), |reason| format!("{finding}; {reason}"));
    let _ = writeln!(text, "  {sign:4}  {name:width$}  {}", wrapped(&said, indent));
    if let Some(fix) = fix {
        let fix_indent = indent + "fix: ".len();
        let _ = writeln!(text, "{:indent$}fix: {}", "", wrapped(fix, fix_indent));
    }
}

/// Breaks `text` so that it stands right of `indent` columns; the first line is not indented.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::with_capacity(text.len());
    let mut column = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > WIDTH {
            let _ = write!(lines, "\n{:indent$}{word}", "");
            column = indent + length;
        } else {
            if column > indent {
                lines.push(' ');
                column += 1;
            }
            lines.push_str(word);
            column += length;
        }
    }
    lines
}

fn number(report: &Report, verdict: Verdict) -> String {
    match report.checks().filter(|check| check.verdict == verdict).count() {
        1 => "1 check".to_owned(),
        number => format!("{number} checks"),
    }
}

fn conclusion_of_service(report: &Report) -> String {
    match report.worst() {
        Verdict::Failed => "The service cannot be used.".into(),
        Verdict::Limited => {
            format!("The service can be used, with limits: {} to note.", number(report, Verdict::Limited))
        }
        Verdict::Info | Verdict::Ok => "The service can be used.".into(),
    }
}

fn conclusion(report: &Report) -> String {
    let number = |verdict| number(report, verdict);
    let failed_here = report.system.iter().any(|check| check.verdict == Verdict::Failed);
    match (report.worst(), report.pid) {
        (Verdict::Failed, Some(pid)) if !failed_here => {
            format!("Process {pid} cannot be observed: {} failed.", number(Verdict::Failed))
        }
        (Verdict::Failed, _) => format!("mpiprobe does not work here: {} failed.", number(Verdict::Failed)),
        (Verdict::Limited, None) => format!("mpiprobe works here, with limits: {} to note.", number(Verdict::Limited)),
        (Verdict::Limited, Some(pid)) => {
            format!("Process {pid} can be observed, with limits: {} to note.", number(Verdict::Limited))
        }
        (_, None) => "mpiprobe works here.".into(),
        (_, Some(pid)) => format!("Process {pid} can be observed."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &'static str, verdict: Verdict, finding: &str, reason: Option<&str>, fix: Option<&str>) -> Check {
        Check {
            name,
            verdict,
            finding: finding.into(),
            reason: reason.map(Into::into),
            fix: fix.map(Into::into),
            data: serde_json::Value::Null,
        }
    }

    fn report(pid: Option<u32>, system: Vec<Check>, process: Vec<Check>) -> Report {
        let verdict = system.iter().chain(&process).map(|check| check.verdict).max().unwrap();
        Report { schema: "mpiprobe.doctor/1", verdict, pid, system, process, service: Vec::new() }
    }

    #[test]
    fn findings_are_aligned_and_wrapped() {
        let system = vec![
            check("kernel", Verdict::Info, "Linux 6.18.1", Some("for information only"), None),
            check(
                "cap-bpf",
                Verdict::Failed,
                "CAP_BPF is missing",
                Some(
                    "needed to make BPF tables and load programs, which is how everything is counted that this tool shows",
                ),
                Some(
                    "run it with sudo, or once: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep /usr/local/bin/mpiprobe",
                ),
            ),
        ];
        let process =
            vec![check("sites", Verdict::Limited, "166 functions: 165 fast, 0 moved, 1 slow", None, Some("none"))];
        let expected = "\
This system
  info  kernel   Linux 6.18.1; for information only
  FAIL  cap-bpf  CAP_BPF is missing; needed to make BPF tables and load programs, which is how everything is
                 counted that this tool shows
                 fix: run it with sudo, or once: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep
                      /usr/local/bin/mpiprobe

Process 4711
  warn  sites    166 functions: 165 fast, 0 moved, 1 slow
                 fix: none

mpiprobe does not work here: 1 check failed.
";
        assert_eq!(checks(&report(Some(4711), system, process)), expected);
    }

    #[test]
    fn the_conclusion_tells_system_and_process_apart() {
        use Verdict::{Failed, Info, Limited, Ok};
        let one = |verdict| vec![check("a", verdict, "", None, None)];
        let conclusion = |pid, system, process| conclusion(&report(pid, one(system), one(process)));
        assert_eq!(conclusion(None, Ok, Info), "mpiprobe works here.");
        assert_eq!(conclusion(Some(5), Ok, Ok), "Process 5 can be observed.");
        assert_eq!(conclusion(None, Limited, Ok), "mpiprobe works here, with limits: 1 check to note.");
        assert_eq!(conclusion(Some(5), Limited, Limited), "Process 5 can be observed, with limits: 2 checks to note.");
        assert_eq!(conclusion(Some(5), Limited, Failed), "Process 5 cannot be observed: 1 check failed.");
        assert_eq!(conclusion(Some(5), Failed, Failed), "mpiprobe does not work here: 2 checks failed.");
    }

    #[test]
    fn a_word_that_is_too_long_stays_whole() {
        let path = format!("/{}", "x".repeat(200));
        assert_eq!(wrapped(&format!("at {path} now"), 10), format!("at\n{:10}{path}\n{:10}now", "", ""));
        assert_eq!(wrapped("", 10), "");
    }
}
