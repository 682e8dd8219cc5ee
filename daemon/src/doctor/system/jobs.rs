//! The MPI jobs on this node.

use mpiprobe_discover::{Scanner, Snapshot};
use mpiprobe_model::Check;
use mpiprobe_plan::ImplementationRecogniser;
use serde_json::json;

use crate::doctor::text::{counted, finding_of};

pub(in crate::doctor) fn check(scanner: &mut Scanner<ImplementationRecogniser>) -> Check {
    match scanner.scan() {
        Ok(snapshot) => judge(&snapshot),
        Err(error) => Check::failed_by("mpi-jobs", &error),
    }
}

fn judge(snapshot: &Snapshot) -> Check {
    let Snapshot { processes, jobs, examined, refused, errors, unopened, why_unopened, unanswered } = snapshot;
    let mut findings = vec![match jobs.len() {
        0 => "no MPI process runs".to_owned(),
        number => format!(
            "{} in {} (mpiprobe ps lists them)",
            counted(processes.len(), "MPI process", "MPI processes"),
            counted(number, "job", "jobs")
        ),
    }];
    if *refused > 0 {
        findings.push(format!("{} of others not looked at", counted(*refused, "process", "processes")));
    }
    if !errors.is_empty() {
        findings.push(format!("{} could not be looked at", counted(errors.len(), "process", "processes")));
    }
    if *unopened > 0 {
        let unopened = counted(*unopened, "process has", "processes have");
        findings.push(format!("{unopened} files mapped that could not be opened"));
    }
    findings.extend(unanswered.iter().map(ToString::to_string));
    let check = Check::info("mpi-jobs", findings.join(", ")).with(json!({
        "jobs": jobs.len(),
        "processes": processes.len(),
        "examined": examined,
        "refused": refused,
        "errors": errors.len(),
        "unopened": unopened,
        "unanswered": unanswered,
    }));
    match (errors.first(), why_unopened) {
        (Some(error), _) => check.because(finding_of(error)),
        (None, Some(why)) => check.because(why.clone()),
        (None, None) => check,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpiprobe_discover::ProcessError;

    #[test]
    fn what_was_not_seen_is_said_too() {
        assert_eq!(judge(&Snapshot::default()).finding, "no MPI process runs");
        let errors = vec![ProcessError::Malformed { pid: 5, what: "stat" }];
        let check = judge(&Snapshot { refused: 3, errors, ..Snapshot::default() });
        assert_eq!(
            check.finding,
            "no MPI process runs, 3 processes of others not looked at, 1 process could not be looked at"
        );
        assert!(check.reason.unwrap().starts_with("stat of process 5"));
    }
}
