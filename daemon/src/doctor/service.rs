//! The node service: whether it answers, what it is, what one may have of it, and what is wrong with it.

use std::{io, path::Path, time::Duration};

use mpiprobe_model::{Check, Report};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::text::{counted, finding_of};
use crate::asking::{AskError, Service};

/// For the answer. It takes the service no work.
const PATIENCE: Duration = Duration::from_secs(10);
const START: &str = "start it: sudo systemctl enable --now mpiprobe.socket, or, by hand, sudo mpiprobe service";
const RESTART: &str = "sudo systemctl restart mpiprobe; its journal says what was wrong: journalctl -u mpiprobe";

/// What `/v1/service` answers, as far as it is looked at. Later versions say more.
#[derive(Debug, Deserialize)]
struct Answer {
    schema: String,
    version: String,
    running_s: u64,
    you: You,
    quota: Quota,
    #[serde(default)]
    jobs_observed: bool,
    /// To those who see all jobs.
    #[serde(default)]
    jobs: Option<Jobs>,
    #[serde(default)]
    metrics: Port,
}

#[derive(Debug, Deserialize)]
struct You {
    sees_all: bool,
    observations: u64,
    table_bytes: u64,
    refused: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Quota {
    connections: u64,
    observations: u64,
    tables: u64,
}

#[derive(Debug, Deserialize)]
struct Jobs {
    observed: u64,
    failed: Vec<NotObserved>,
}

#[derive(Debug, Deserialize)]
struct NotObserved {
    job: String,
    why: String,
}

#[derive(Debug, Default, Deserialize)]
struct Port {
    address: Option<String>,
    problem: Option<String>,
}

/// Asks the service that listens there.
pub async fn examine_service(socket: &Path) -> Report {
    let mut checks = Vec::new();
    let answer = match Service::at(socket) {
        Err(error) => {
            checks.push(unanswered(socket, &error));
            None
        }
        Ok(service) => {
            checks.push(Check::ok(
                "service-socket",
                format!("{} is root's or yours, and nobody else can replace it", socket.display()),
            ));
            match timeout(PATIENCE, service.get("/v1/service")).await {
                Err(_) => {
                    let finding =
                        format!("the service at {} has not answered for {} s", socket.display(), PATIENCE.as_secs());
                    checks.push(Check::failed("service", finding, RESTART));
                    None
                }
                Ok(Err(error)) => {
                    checks.push(unanswered(socket, &error));
                    None
                }
                Ok(Ok(answer)) => Some(answer),
            }
        }
    };
    checks.extend(answer.iter().flat_map(|answer| judge(answer)));
    Report::of_service(checks)
}

/// Why there is no answer.
fn unanswered(socket: &Path, error: &AskError) -> Check {
    let at = socket.display();
    match error {
        AskError::Silent { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Check::failed("service-socket", format!("there is no service: {at} is not there"), START)
        }
        AskError::Silent { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused => {
            Check::failed("service", format!("nobody listens at {at}: the service that made it has ended"), START)
                .because("who is killed leaves its socket behind")
        }
        AskError::Silent { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => Check::failed(
            "service-socket",
            format!("{at} may not be used by you: {source}"),
            "ask the administrator: the unit makes it for everybody (SocketMode=0666, DirectoryMode=0755)",
        ),
        AskError::Silent { source, .. } => {
            Check::failed("service", format!("the service at {at} does not answer: {source}"), RESTART)
        }
        AskError::NotTrusted { why, .. } => Check::failed(
            "service-socket",
            format!("{at} is not the service's: {why}"),
            "do not use it: who listens there may be anybody; the administrator removes it and restarts the service",
        ),
        AskError::Refused(why) => Check::failed(
            "service",
            "the service does not serve you",
            "ask as yourself, from a process that may be traced",
        )
        .because(why.clone()),
        other => Check::failed("service", finding_of(other), RESTART),
    }
}

/// What the answer says.
fn judge(answer: &[u8]) -> Vec<Check> {
    let own = env!("CARGO_PKG_VERSION");
    let found: Answer = match serde_json::from_slice(answer) {
        Ok(found) => found,
        Err(error) => {
            let finding = format!("what answers is no service of this version ({own})");
            return vec![Check::failed("service", finding, RESTART).because(error.to_string())];
        }
    };
    let Answer { schema, version, running_s, you, quota, jobs_observed, jobs, metrics } = found;
    let runs = humantime::format_duration(Duration::from_secs(running_s));
    let service = if version == own && schema == "mpiprobe.service/1" {
        Check::ok("service", format!("mpiprobe {version} answers, and has run for {runs}"))
    } else {
        let fix = "have both of one version: after an update, sudo systemctl restart mpiprobe";
        Check::limited("service", format!("the service is mpiprobe {version}, and this is {own}"), fix)
            .because("a later version may ask for what an earlier one does not know")
    };
    let sees = if you.sees_all {
        "you see all jobs of this node"
    } else {
        "you see your own jobs, as you could trace them yourself"
    };
    let used = format!(
        "{} of {} in use, {} of {} MiB of tables, {} connections at once",
        you.observations,
        counted(usize::try_from(quota.observations).unwrap_or(usize::MAX), "observation", "observations"),
        you.table_bytes.div_ceil(1 << 20),
        quota.tables >> 20,
        quota.connections
    );
    let is_full = you.observations >= quota.observations || you.table_bytes >= quota.tables;
    let limits = if is_full {
        Check::limited(
            "service-quota",
            used,
            "end an observation, or ask the administrator for more ([quota] in docs/service.md)",
        )
    } else {
        Check::info("service-quota", used)
    };
    let limits =
        if you.refused > 0 { limits.because(format!("{} of your requests were refused", you.refused)) } else { limits };
    let limits = limits
        .with(json!({ "observations": you.observations, "table_bytes": you.table_bytes, "refused": you.refused }));
    vec![
        service.with(json!({ "version": version, "running_s": running_s })),
        Check::info("service-access", sees).with(json!({ "sees_all": you.sees_all })),
        limits,
        observed(jobs_observed, jobs),
        told(metrics),
    ]
}

fn observed(is_on: bool, jobs: Option<Jobs>) -> Check {
    let name = "service-jobs";
    match jobs {
        _ if !is_on => Check::info(name, "no job is observed unasked"),
        None => Check::info(name, "every job is observed unasked"),
        Some(Jobs { observed, failed }) => {
            let number = counted(usize::try_from(observed).unwrap_or(usize::MAX), "job is", "jobs are");
            let finding = format!("{number} observed unasked");
            let Some(first) = failed.first() else { return Check::ok(name, finding) };
            let missing = counted(failed.len(), "is not", "are not");
            Check::limited(
                name,
                format!("{finding}, and {missing}"),
                "see [jobs] in docs/service.md, and the journal of the service",
            )
            .because(format!("job {}: {}", first.job, first.why))
            .with(Value::from(failed.iter().map(|one| one.job.clone()).collect::<Vec<_>>()))
        }
    }
}

fn told(port: Port) -> Check {
    let name = "service-metrics";
    match (port.address, port.problem) {
        (_, Some(problem)) => {
            let (finding, fix) =
                problem.split_once("; ").unwrap_or((&problem, "name another address ([metrics] in docs/service.md)"));
            Check::limited(name, finding, fix)
        }
        (Some(address), None) => Check::ok(name, format!("monitoring asks at http://{address}/metrics")),
        (None, None) => Check::info(name, "no port is open for monitoring"),
    }
}

#[cfg(test)]
mod tests {
    use mpiprobe_model::Verdict;

    use super::*;

    fn answer(version: &str, change: impl FnOnce(&mut Value)) -> Vec<Check> {
        let mut answer = json!({
            "schema": "mpiprobe.service/1", "version": version, "running_s": 90,
            "you": { "user": 1000, "sees_all": false, "observations": 1, "table_bytes": 8 << 20, "refused": 0 },
            "quota": { "connections": 16, "observations": 4, "tables": 256 << 20, "tables-of-all": 1 << 30 },
        });
        change(&mut answer);
        judge(answer.to_string().as_bytes())
    }

    fn verdicts(checks: &[Check]) -> Vec<(&'static str, Verdict)> {
        checks.iter().map(|check| (check.name, check.verdict)).collect()
    }

    #[test]
    fn what_is_well_and_what_is_not() {
        let own = env!("CARGO_PKG_VERSION");
        let well = answer(own, |_| {});
        assert!(well.iter().all(|check| check.verdict <= Verdict::Ok), "{well:?}");
        assert!(well[0].finding.contains("1m 30s"), "{well:?}");
        assert_eq!(verdicts(&answer("0.0.1", |_| {}))[0], ("service", Verdict::Limited));
        let full = answer(own, |answer| answer["you"]["observations"] = 4.into());
        assert_eq!(verdicts(&full)[2], ("service-quota", Verdict::Limited));
        let failing = answer(own, |answer| {
            answer["jobs_observed"] = true.into();
            answer["jobs"] = json!({ "observed": 1, "failed": [{ "job": "ompi:1", "why": "no room" }] });
            answer["metrics"] = json!({ "address": null, "problem": "taken; name another" });
        });
        assert_eq!(
            verdicts(&failing)[3..],
            [("service-jobs", Verdict::Limited), ("service-metrics", Verdict::Limited)]
        );
        assert_eq!(failing[4].fix.as_deref(), Some("name another"));
        assert_eq!(verdicts(&judge(b"<html>")), [("service", Verdict::Failed)]);
    }
}
