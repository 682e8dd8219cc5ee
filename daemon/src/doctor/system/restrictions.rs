//! Switches by which administrators restrict BPF and tracing. Whether they forbid what mpiprobe does is seen by trying; these
//! lines tell where to look if it is refused.

use mpiprobe_model::Check;

use crate::doctor::read::read_text;

pub(super) fn examine() -> Vec<Check> {
    let sysctl = |name| read_text(format!("/proc/sys/kernel/{name}")).ok();
    vec![
        lockdown(read_text("/sys/kernel/security/lockdown").ok().as_deref()),
        unprivileged_bpf(sysctl("unprivileged_bpf_disabled").as_deref()),
        perf_event_paranoid(sysctl("perf_event_paranoid").as_deref()),
    ]
}

/// The file lists the modes and has the one in force in brackets: `none [integrity] confidentiality`.
fn lockdown(content: Option<&str>) -> Check {
    let mode = content.and_then(|text| text.split_once('[')?.1.split_once(']')).map(|(mode, _)| mode);
    match mode {
        None | Some("none") => Check::ok("lockdown", "the kernel is not locked down"),
        Some("integrity") => {
            Check::ok("lockdown", "integrity").because("it forbids changing the kernel, which mpiprobe does not do")
        }
        Some(mode) => Check::info("lockdown", mode)
            .because("it keeps BPF programs from reading the kernel's memory; they only read that of targets"),
    }
}

fn unprivileged_bpf(value: Option<&str>) -> Check {
    let finding = match value {
        Some("0") => "users without rights may use BPF",
        Some("1") => "BPF needs rights until the next boot",
        Some("2") => "BPF needs rights",
        _ => "unknown",
    };
    Check::info("unprivileged-bpf", finding)
        .because("sysctl kernel.unprivileged_bpf_disabled; tracing programs need CAP_BPF and CAP_PERFMON either way")
}

fn perf_event_paranoid(value: Option<&str>) -> Check {
    Check::info("perf-event-paranoid", value.unwrap_or("unknown"))
        .because("sysctl kernel.perf_event_paranoid; it does not bind holders of CAP_PERFMON")
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::Verdict;

    use super::*;

    #[test]
    fn the_bracketed_lockdown_mode_counts() {
        let finding = |text| {
            let check = lockdown(text);
            (check.verdict, check.finding)
        };
        assert_eq!(
            finding(Some("[none] integrity confidentiality")),
            (Verdict::Ok, "the kernel is not locked down".into())
        );
        assert_eq!(finding(Some("none [integrity] confidentiality")), (Verdict::Ok, "integrity".into()));
        assert_eq!(finding(Some("none integrity [confidentiality]")), (Verdict::Info, "confidentiality".into()));
        assert_eq!(finding(Some("")), (Verdict::Ok, "the kernel is not locked down".into()));
        assert_eq!(finding(None).0, Verdict::Ok);
    }

    #[test]
    fn switches_are_shown_not_judged() {
        assert_eq!(unprivileged_bpf(Some("2")).finding, "BPF needs rights");
        assert_eq!(unprivileged_bpf(None).verdict, Verdict::Info);
        assert_eq!(perf_event_paranoid(Some("-1")).finding, "-1");
        assert_eq!(perf_event_paranoid(Some("4")).verdict, Verdict::Info);
    }
}
