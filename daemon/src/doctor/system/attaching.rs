//! The BPF object and every way of attaching it, each tried on a function of mpiprobe's own.

use std::error::Error;

use mpiprobe_attach::{AttachError, AttachMethod, Calibration, PidNamespace, Tables, choose_method};
use mpiprobe_common::Config;
use mpiprobe_model::Check;
use serde_json::json;

use crate::doctor::rights::{Capability, Rights};

/// Above this a probed call is dearer than on any machine with an emulated first instruction, ns.
const DEAR_CALL_NS: f64 = 5_000.0;

/// One method that counted exactly.
#[derive(Clone, Copy, Debug)]
struct Working {
    calibration: Calibration,
    /// Whether the kernel tells of hits that it did not pass on.
    counts_misses: bool,
    /// Of the best method only, ns per call.
    empty_probe_ns: Option<f64>,
}

type Attempt = Result<Working, AttachError>;

/// The checks, and the method that an observation would take.
pub(super) fn examine(rights: &Rights) -> (Vec<Check>, Option<AttachMethod>) {
    let mut attempts: Vec<(AttachMethod, Attempt)> = Vec::new();
    for method in AttachMethod::ALL {
        let attempt = attempt(method, !attempts.iter().any(|(_, attempt)| attempt.is_ok()));
        let is_hopeless = matches!(&attempt, Err(error) if !is_of_one_rung(error));
        attempts.push((method, attempt));
        if is_hopeless {
            break;
        }
    }
    let best = attempts.iter().find_map(|(method, attempt)| Some((*method, *attempt.as_ref().ok()?)));
    let mut checks = basics(attempts.first().and_then(|(_, attempt)| attempt.as_ref().err()), rights);
    if checks.iter().all(|check| check.fix.is_none()) {
        checks.extend(attempts.iter().map(|(method, attempt)| one(*method, attempt)));
        checks.push(choice(best.map(|(method, _)| method), rights));
        checks.extend(best.into_iter().flat_map(|(_, working)| [cost(&working), missed_hits(working.counts_misses)]));
    }
    (checks, best.map(|(method, _)| method))
}

fn attempt(method: AttachMethod, measure_empty: bool) -> Attempt {
    let engine = choose_method(&Config::DEFAULT, Some(method))?;
    Ok(Working {
        calibration: engine.calibration,
        counts_misses: engine.missed_hits().is_some(),
        empty_probe_ns: if measure_empty { engine.empty_probe_ns().ok() } else { None },
    })
}

/// Whether another method may work where this error came up.
fn is_of_one_rung(error: &AttachError) -> bool {
    matches!(error, AttachError::NoMethod { .. })
}

/// What every method needs: the error is that of the first attempt.
fn basics(error: Option<&AttachError>, rights: &Rights) -> Vec<Check> {
    if let Some(error @ AttachError::PidNamespace(_)) = error {
        return vec![Check::failed_by("pid-namespace", error)];
    }
    let error = error.filter(|error| !is_of_one_rung(error));
    let namespace = match PidNamespace::own() {
        PidNamespace::Initial => Check::ok("pid-namespace", "the initial one: process ids are the kernel's"),
        PidNamespace::Own { .. } => {
            Check::ok("pid-namespace", "one of its own: processes in it are seen, by the numbers that they have in it")
        }
    };
    match error {
        None => vec![namespace, Check::ok("bpf-object", "tables and programs load"), process_events(rights)],
        Some(error) => vec![namespace, bpf_refused("bpf-object", "the BPF object does not load", error, rights)],
    }
}

/// The tracepoints that tell of new and ended processes, tried too.
fn process_events(rights: &Rights) -> Check {
    match Tables::load(&Config::DEFAULT).and_then(|mut tables| tables.watch_processes()) {
        Ok(()) => Check::ok("process-events", "the kernel tells of processes that start and threads that end"),
        Err(error) => {
            bpf_refused("process-events", "the kernel does not tell of new and ended processes", &error, rights)
        }
    }
}

fn bpf_refused(name: &'static str, finding: &str, error: &AttachError, rights: &Rights) -> Check {
    let fix = if rights.has(Capability::Bpf) && rights.has(Capability::Perfmon) {
        "use a kernel 5.15 or later with CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS; in a container, its seccomp profile must allow \
         bpf(2) and perf_event_open(2)"
            .to_owned()
    } else {
        rights.how_to_grant()
    };
    Check::failed(name, finding, fix).because(root_cause(error))
}

const fn name(method: AttachMethod) -> &'static str {
    match method {
        AttachMethod::Session => "attach-session",
        AttachMethod::Multi => "attach-multi",
        AttachMethod::PerfEvent => "attach-perf-event",
    }
}

/// A method that does not work is no fault as long as another one does: [`choice`] judges that.
fn one(method: AttachMethod, attempt: &Attempt) -> Check {
    match attempt {
        Ok(working) => {
            let ns = working.calibration.per_call_ns;
            Check::ok(name(method), format!("{method}: works, {:.2} µs per probed call", ns / 1e3))
                .with(json!({ "works": true, "per_call_ns": rounded(ns) }))
        }
        Err(error) => Check::info(name(method), format!("{method}: does not work here"))
            .because(root_cause(error))
            .with(json!({ "works": false })),
    }
}

fn choice(best: Option<AttachMethod>, rights: &Rights) -> Check {
    let check = match best {
        Some(method @ (AttachMethod::Session | AttachMethod::Multi)) => Check::ok("attach", format!("by {method}")),
        Some(method @ AttachMethod::PerfEvent) => {
            Check::limited("attach", format!("by {method}"), "use a kernel 6.6 or later")
                .because("detaching takes 0.1 s for each function, during which the job goes on paying for its probe")
        }
        None => Check::failed("attach", "no way of attaching works", no_way(rights))
            .because("a kernel before 6.6 has perf events only, for which CAP_SYS_ADMIN may be needed too"),
    };
    check.with(json!({ "rung": best }))
}

fn no_way(rights: &Rights) -> String {
    if rights.has(Capability::SysAdmin) {
        "use a kernel with CONFIG_UPROBES and CONFIG_BPF_EVENTS".into()
    } else {
        "run it with sudo, or use a kernel 6.6 or later with CONFIG_UPROBES and CONFIG_BPF_EVENTS".into()
    }
}

fn cost(working: &Working) -> Check {
    let Calibration { per_call_ns, inside_ns, .. } = working.calibration;
    let compared = working.empty_probe_ns.filter(|empty| *empty > 0.0).map_or_else(String::new, |empty| {
        format!(", {:.2} times a probe that does nothing ({:.2} µs)", per_call_ns / empty, empty / 1e3)
    });
    let finding = format!("{:.2} µs per probed call{compared}", per_call_ns / 1e3);
    let check = if per_call_ns > DEAR_CALL_NS {
        Check::limited("probe-cost", finding, "try again on an idle machine; probe fewer functions (--functions)")
            .because("that is unusually dear: the machine is busy, or an emulator")
    } else {
        Check::ok("probe-cost", finding)
    };
    let empty = working.empty_probe_ns.map(rounded);
    check.with(json!({
        "per_call_ns": rounded(per_call_ns),
        "inside_ns": rounded(inside_ns),
        "empty_probe_ns": empty,
    }))
}

fn missed_hits(counted: bool) -> Check {
    if counted {
        Check::ok("missed-hits", "hits that the kernel drops are counted")
    } else {
        Check::limited("missed-hits", "hits that the kernel drops are not counted", "use a kernel 5.12 or later")
            .because("the profile cannot say whether calls are missing")
    }
}

/// Whole ns: more would only pretend.
fn rounded(ns: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, which suits a time")]
    let whole = ns.round() as u64;
    whole
}

/// What lies at the bottom of an error, as one line.
fn root_cause(error: &AttachError) -> String {
    let error: &dyn Error = match error {
        AttachError::NoMethod { tried } if let Some((_, error)) = tried.first() => return root_cause(error),
        // The check itself says that the object does not load.
        AttachError::Object { source } => source.as_ref(),
        error => error,
    };
    let first_line = |error: &dyn Error| error.to_string().lines().next().unwrap_or_default().to_owned();
    let whole = first_line(error);
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    let deepest = first_line(deepest);
    if whole.contains(&deepest) { whole } else { format!("{whole}: {deepest}") }
}

#[cfg(test)]
mod tests {
    use std::io;

    use mpiprobe_attach::LocateError;
    use mpiprobe_model::Verdict;

    use super::*;
    use crate::doctor::rights::tests::rights;

    const WORKING: Working = Working {
        calibration: Calibration { entry_ns: 0.0, per_call_ns: 1130.4, inside_ns: 700.0 },
        counts_misses: true,
        empty_probe_ns: Some(900.0),
    };

    fn refused(method: AttachMethod) -> AttachError {
        let source = io::Error::from_raw_os_error(libc::EINVAL);
        AttachError::NoMethod {
            tried: vec![(method, Box::new(AttachError::Link { method, file: "/x".into(), source }))],
        }
    }

    #[test]
    fn a_rung_that_does_not_work_is_reported_not_judged() {
        let check = one(AttachMethod::Session, &Err(refused(AttachMethod::Session)));
        assert_eq!(check.verdict, Verdict::Info);
        assert_eq!(check.reason.unwrap(), "cannot attach to /x by uprobe session link: Invalid argument (os error 22)");
        let check = one(AttachMethod::Multi, &Ok(WORKING));
        assert_eq!(check.finding, "uprobe multi links: works, 1.13 µs per probed call");
        assert_eq!(check.data["per_call_ns"], 1130);
    }

    #[test]
    fn the_choice_is_judged() {
        let verdict = |best| choice(best, &rights(0)).verdict;
        assert_eq!(verdict(Some(AttachMethod::Session)), Verdict::Ok);
        assert_eq!(verdict(Some(AttachMethod::Multi)), Verdict::Ok);
        assert_eq!(verdict(Some(AttachMethod::PerfEvent)), Verdict::Limited);
        assert_eq!(verdict(None), Verdict::Failed);
        assert_eq!(choice(Some(AttachMethod::PerfEvent), &rights(0)).data["rung"], "perf-event");
    }

    #[test]
    fn the_cost_is_compared_with_an_empty_probe() {
        assert_eq!(cost(&WORKING).finding, "1.13 µs per probed call, 1.26 times a probe that does nothing (0.90 µs)");
        let dear = Calibration { per_call_ns: 9_000.0, ..WORKING.calibration };
        let check = cost(&Working { calibration: dear, empty_probe_ns: None, ..WORKING });
        assert_eq!((check.verdict, check.finding.as_str()), (Verdict::Limited, "9.00 µs per probed call"));
    }

    #[test]
    fn a_container_is_told_apart_from_missing_rights() {
        let checks = basics(Some(&AttachError::PidNamespace(LocateError::NoNumbers.to_string())), &rights(0));
        assert_eq!(checks.len(), 1);
        assert_eq!((checks[0].name, checks[0].verdict), ("pid-namespace", Verdict::Failed));
        assert!(checks[0].fix.as_ref().unwrap().starts_with("Run it on the host"));
        let source = Box::new(io::Error::from_raw_os_error(libc::EPERM));
        let checks = basics(Some(&AttachError::Object { source }), &rights(0));
        assert_eq!((checks[1].name, checks[1].verdict), ("bpf-object", Verdict::Failed));
        assert_eq!(checks[1].reason.as_deref(), Some("Operation not permitted (os error 1)"));
        assert!(checks[1].fix.as_ref().unwrap().starts_with("run it with sudo"));
    }
}
