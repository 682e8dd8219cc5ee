//! What it finds on this system.

use std::fs;
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{Requirement, requirement};

use crate::run::{MPIPROBE, Report};

/// Ways of attaching and the mainline kernel that brought each: the test's own knowledge, the doctor tries.
const RUNGS: [(&str, (u32, u32)); 3] =
    [("attach-session", (6, 13)), ("attach-multi", (6, 6)), ("attach-perf-event", (5, 15))];

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        requirement::trial(
            "root_can_attach_in_every_way_of_this_kernel",
            &[Requirement::Root, Requirement::Bpf],
            every_way,
        ),
        requirement::trial("the_text_says_what_the_exit_status_says", &[Requirement::Root, Requirement::Bpf], text),
        requirement::trial("nobody_is_told_which_rights_are_missing", &[Requirement::Root], nobody),
        requirement::trial("the_reader_may_stop_reading", &[], closed_pipe),
    ]
}

fn every_way() -> Result<(), Failed> {
    let report = Report::of(&[])?;
    assert!(report.status < 2, "exit status {}", report.status);
    for name in
        ["cap-bpf", "cap-perfmon", "cap-sys-ptrace", "pid-namespace", "bpf-object", "process-events", "missed-hits"]
    {
        assert_eq!(report.verdict(name)?, "ok", "{name}: {}", report.finding(name)?);
    }
    let kernel = kernel()?;
    let mut best = None;
    for (name, since) in RUNGS {
        let works = report.data(name)?["works"].as_bool().ok_or("works is no bool")?;
        // Distributions bring some to older kernels.
        assert!(works || kernel < since, "{name} on kernel {kernel:?}: {}", report.finding(name)?);
        if works {
            best = best.or(name.strip_prefix("attach-"));
        }
    }
    assert_eq!(report.data("attach")?["rung"].as_str(), best);
    let cost = report.data("probe-cost")?;
    let ns = |name: &str| cost[name].as_u64().ok_or_else(|| format!("no {name} in {cost}"));
    assert!(ns("inside_ns")? < ns("per_call_ns")?, "{cost}");
    assert!(ns("empty_probe_ns")? > 0, "{cost}");
    Ok(())
}

fn kernel() -> Result<(u32, u32), Failed> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.split('.').map(|number| number.trim().parse::<u32>());
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => Err(format!("kernel release {release}").into()),
    }
}

fn text() -> Result<(), Failed> {
    let output = Command::new(MPIPROBE).arg("doctor").output()?;
    let text = String::from_utf8(output.stdout)?;
    assert!(text.starts_with("This system\n  ok    architecture "), "{text}");
    let expected = match output.status.code() {
        Some(0) => "mpiprobe works here.",
        Some(1) => "mpiprobe works here, with limits: ",
        other => return Err(format!("exit status {other:?}: {text}").into()),
    };
    let last = text.lines().last().unwrap_or_default();
    assert!(last.starts_with(expected), "{last}");
    assert_eq!(text.lines().any(|line| line.starts_with("  warn  ")), output.status.code() == Some(1), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    Ok(())
}

fn nobody() -> Result<(), Failed> {
    let report = Report::as_nobody(&[])?;
    assert_eq!(report.status, 2);
    let rights = [
        ("cap-bpf", "failed", "CAP_BPF"),
        ("cap-perfmon", "failed", "CAP_PERFMON"),
        ("cap-sys-ptrace", "limited", "CAP_SYS_PTRACE"),
    ];
    for (name, verdict, capability) in rights {
        assert_eq!(report.verdict(name)?, verdict);
        assert_eq!(report.finding(name)?, format!("{capability} is missing"));
        assert!(report.fix(name)?.contains("sudo"), "{}", report.fix(name)?);
    }
    assert_eq!(report.verdict("bpf-object")?, "failed");
    let reason = report.check("bpf-object")?["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("Operation not permitted"), "{reason}");
    // What could not be tried is not judged.
    assert!(!report.has("attach") && !report.has("attach-session") && !report.has("probe-cost"));
    Ok(())
}

fn closed_pipe() -> Result<(), Failed> {
    let output = Command::new("sh").args(["-c", "\"$0\" doctor | true", MPIPROBE]).output()?;
    assert_eq!(String::from_utf8(output.stderr)?, "");
    Ok(())
}
