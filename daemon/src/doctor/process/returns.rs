//! Whether return probes can do harm: they replace the return address on the target's stack while a call runs.

use mpiprobe_discover::{
    Process, ReturnRisk, ReturnRisks, Way, mappings::Mappings, process::SMALL_FILE, status::Seccomp,
};
use mpiprobe_model::Check;
use serde_json::json;

use crate::doctor::kernel_release::KernelRelease;

pub(super) fn examine(process: &Process, mappings: &Mappings, release: &KernelRelease) -> Vec<Check> {
    let mode = process.status().ok().and_then(|status| status.seccomp);
    let features = process.read("status", SMALL_FILE).map(|content| content.bytes).unwrap_or_default();
    let mut checks = vec![seccomp(mode, release)];
    checks.extend(shadow_stack(&String::from_utf8_lossy(&features), release));
    checks.push(own_code(ReturnRisks::default().of_mapped(process, mappings).as_ref()));
    checks
}

/// This cannot be tried without risking a process: the kernel's release decides, as a warning.
fn seccomp(mode: Option<Seccomp>, release: &KernelRelease) -> Check {
    let check = match mode {
        Some(Seccomp::Strict | Seccomp::Filter) if release.may_filter_return_probes() => Check::limited(
            "seccomp",
            format!("it runs under seccomp, and Linux {release} may kill such a process at a return probe"),
            "update the kernel (6.12.14, 6.13.3, 6.14 or later), or start the job without the filter \
             (containers: --security-opt seccomp=unconfined), unless your distribution has the fix (cf6cb56ef244)",
        ),
        Some(Seccomp::Strict | Seccomp::Filter) => {
            Check::ok("seccomp", "it runs under seccomp, which does not affect probes on this kernel")
        }
        Some(Seccomp::Disabled) | None => Check::ok("seccomp", "it runs without seccomp"),
    };
    check.with(json!({ "mode": mode }))
}

/// `None` for the many processes without one. Written as `x86_Thread_features:\tshstk wrss` (arch/x86/kernel/cpu/proc.c).
fn shadow_stack(status: &str, release: &KernelRelease) -> Option<Check> {
    let features = status.lines().find_map(|line| line.strip_prefix("x86_Thread_features:"))?;
    features.split_ascii_whitespace().find(|feature| *feature == "shstk")?;
    Some(if release.may_break_shadow_stacks() {
        Check::limited(
            "shadow-stack",
            format!("it has a shadow stack, and Linux {release} may kill such a process at a return probe"),
            "update the kernel (6.11 or later), or start the job with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off",
        )
    } else {
        Check::ok("shadow-stack", "it has one, which this kernel keeps in step with return probes")
    })
}

/// What the program does itself with the stacks that its calls are on.
fn own_code(risk: Option<&ReturnRisk>) -> Check {
    let Some(risk) = risk else {
        return Check::ok("returns", "none of its files is known to leave MPI calls by other ways than a return")
            .with(json!({ "risk": null }));
    };
    let why = match risk.way {
        Way::Throws | Way::MayThrow => {
            "a C++ exception thrown through an MPI call with a return probe aborts the program"
        }
        Way::EndsThreads => {
            "where a thread ends within an MPI call with a return probe, nothing that stands around the call is cleaned up: locks stay locked"
        }
        Way::SwitchesStacks => {
            "with --attach multi or perf-event, or with return probes of other tools, an MPI call on one stack inside a call on another \
             ends the program"
        }
        Way::MovesThreads => {
            "an MPI call with a return probe that returns on another thread of the kernel ends the program"
        }
    };
    let fix = "nothing: --returns auto counts its calls without return probes where need be; `mpiprobe run --engine wrapper` has no \
               such limit";
    Check::limited("returns", risk.to_string(), fix).because(why).with(json!({ "risk": risk }))
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::Verdict;

    use super::*;

    #[test]
    fn seccomp_matters_on_kernels_without_the_fix() {
        let verdict = |mode, release| seccomp(mode, &KernelRelease::parse(release)).verdict;
        assert_eq!(verdict(Some(Seccomp::Filter), "6.11.5"), Verdict::Limited);
        assert_eq!(verdict(Some(Seccomp::Filter), "6.18.1"), Verdict::Ok);
        assert_eq!(verdict(Some(Seccomp::Disabled), "6.11.5"), Verdict::Ok);
        assert_eq!(verdict(None, "6.11.5"), Verdict::Ok);
    }

    #[test]
    fn shadow_stacks_matter_on_old_kernels() {
        let verdict = |status, release| shadow_stack(status, &KernelRelease::parse(release)).map(|check| check.verdict);
        let status = "Name:\tx\nx86_Thread_features:\tshstk wrss\nx86_Thread_features_locked:\t\n";
        assert_eq!(verdict(status, "6.8.0"), Some(Verdict::Limited));
        assert_eq!(verdict(status, "6.12.1"), Some(Verdict::Ok));
        assert_eq!(verdict("x86_Thread_features:\t\nx86_Thread_features_locked:\tshstk\n", "6.8.0"), None);
        assert_eq!(verdict("", "6.8.0"), None);
    }

    #[test]
    fn what_the_program_does_itself_is_a_limit() {
        assert_eq!(own_code(None).verdict, Verdict::Ok);
        let risk = ReturnRisk { way: Way::Throws, file: "/opt/solver".to_owned() };
        let check = own_code(Some(&risk));
        assert_eq!((check.verdict, check.finding.starts_with("/opt/solver throws")), (Verdict::Limited, true));
    }
}
