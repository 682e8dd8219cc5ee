//! The machine and its kernel.

use std::num::NonZero;

use mpiprobe_attach::AttachMethod;
use mpiprobe_elf::Architecture;
use mpiprobe_model::Check;
use serde_json::json;

use crate::doctor::{kernel_release::KernelRelease, read::read_text};

/// Above this number of CPUs the kernel's own locks show in the cost of a probe, if it is not one of those that have none.
const MANY_CPUS: usize = 16;

pub(super) fn examine(best: Option<AttachMethod>) -> Vec<Check> {
    let cpus = std::thread::available_parallelism().map_or(1, NonZero::get);
    vec![
        architecture(Architecture::NATIVE),
        Check::info("kernel", format!("Linux {}", KernelRelease::running()))
            .because("for information only: what it can do is tried below"),
        virtual_machine(&read_text("/proc/cpuinfo").unwrap_or_default()),
        many_cpus(cpus, best),
    ]
}

fn architecture(own: Architecture) -> Check {
    if cfg!(target_arch = "x86_64") {
        Check::ok("architecture", own.to_string())
    } else {
        Check::failed("architecture", own.to_string(), "use it on an x86-64 machine")
            .because("probe sites and arguments are known for x86-64 only")
    }
}

fn virtual_machine(cpuinfo: &str) -> Check {
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    if flags.split_ascii_whitespace().any(|flag| flag == "hypervisor") {
        Check::info("virtual-machine", "yes").because(
            "a single-stepped probe (\"slow\" in the census of a process) costs some ten times as much as on bare metal; others do not",
        )
    } else {
        Check::info("virtual-machine", "no")
    }
}

/// Judged by the session link, which came to the kernel together with the last of the locks' removal (6.13).
fn many_cpus(cpus: usize, best: Option<AttachMethod>) -> Check {
    let check = if cpus > MANY_CPUS && best.is_some_and(|best| best != AttachMethod::Session) {
        Check::limited(
            "cpus",
            format!("{cpus} CPUs for a kernel whose probes share locks"),
            "update the kernel to 6.13 or later, or probe fewer functions (--functions)",
        )
        .because("the cost of a probe grows with the number of CPUs that hit one at a time, to several microseconds")
    } else {
        Check::info("cpus", cpus.to_string())
    };
    check.with(json!({ "cpus": cpus }))
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::Verdict;

    use super::*;

    #[test]
    fn a_hypervisor_shows_in_the_flags() {
        let cpuinfo = |flags| format!("processor\t: 0\nmodel name\t: hypervisor\nflags\t\t: {flags}\n");
        assert_eq!(virtual_machine(&cpuinfo("fpu vme hypervisor lahf_lm")).finding, "yes");
        assert_eq!(virtual_machine(&cpuinfo("fpu vme lahf_lm")).finding, "no");
        assert_eq!(virtual_machine("").finding, "no");
    }

    #[test]
    fn many_cpus_matter_on_kernels_without_session_links() {
        let verdict = |cpus, best| many_cpus(cpus, best).verdict;
        assert_eq!(verdict(128, Some(AttachMethod::Multi)), Verdict::Limited);
        assert_eq!(verdict(128, Some(AttachMethod::Session)), Verdict::Info);
        assert_eq!(verdict(128, None), Verdict::Info);
        assert_eq!(verdict(16, Some(AttachMethod::PerfEvent)), Verdict::Info);
    }
}
