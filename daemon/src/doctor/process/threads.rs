//! Whether `mpiprobe hang` can look at its threads, and how.

use mpiprobe_discover::Process;
use mpiprobe_model::Check;
use mpiprobe_stacks::Ways;
use serde_json::json;

const NAME: &str = "hang";

pub(super) fn examine(process: &Process) -> Check {
    check(&Ways::of(process.pid()))
}

fn check(ways: &Ways) -> Check {
    let why_not = |way: &Result<(), String>| way.as_ref().err().cloned();
    let check = if ways.stop_nobody() {
        Check::ok(
            NAME,
            "its threads can be looked at without stopping them: by a BPF program, and by a perf sample of those on a CPU",
        )
    } else {
        let refused: Vec<String> = [("BPF", &ways.copied), ("perf", &ways.sampled)]
            .into_iter()
            .filter_map(|(way, result)| Some(format!("{way}: {}", why_not(result)?)))
            .collect();
        let why = refused.join("; ");
        match &ways.stopped {
            Ok(()) => Check::limited(
                NAME,
                "its threads are stopped for a moment by ptrace to be looked at, which timed waits may notice",
                "run mpiprobe with the rights that an observation needs",
            )
            .because(why),
            Err(reason) => Check::failed(
                NAME,
                "its threads cannot be looked at: neither by BPF and perf nor by ptrace",
                "run mpiprobe with the rights that an observation needs, or as the job's owner where \
                 kernel.yama.ptrace_scope is 0",
            )
            .because(format!("{why}; ptrace: {reason}")),
        }
    };
    let of = |way: &Result<(), String>| json!({ "works": way.is_ok(), "reason": why_not(way) });
    check.with(json!({ "copied": of(&ways.copied), "sampled": of(&ways.sampled), "stopped": of(&ways.stopped) }))
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::Verdict;

    use super::*;

    #[test]
    fn ptrace_is_what_is_left_and_what_forbids_it_is_named() {
        let no = |reason: &str| Err(reason.to_owned());
        let all = Ways { copied: Ok(()), sampled: Ok(()), stopped: no("not permitted") };
        assert_eq!(check(&all).verdict, Verdict::Ok);
        let own = Ways { copied: no("no BPF"), sampled: Ok(()), stopped: Ok(()) };
        let found = check(&own);
        assert_eq!((found.verdict, found.reason.as_deref()), (Verdict::Limited, Some("BPF: no BPF")));
        let nothing = Ways {
            copied: no("no BPF"),
            sampled: no("no perf"),
            stopped: no("not permitted (kernel.yama.ptrace_scope is 1)"),
        };
        let found = check(&nothing);
        assert_eq!(found.verdict, Verdict::Failed);
        let reason = "BPF: no BPF; perf: no perf; ptrace: not permitted (kernel.yama.ptrace_scope is 1)";
        assert_eq!(found.reason.as_deref(), Some(reason));
    }
}
