//! Monitoring as sites have it: a Prometheus that scrapes the node service, and its tool on what is shipped.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    process::{Command, Output, Stdio},
};

use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Mpi, Requirement,
    bed::sources,
    debian,
    openmetrics::Exposition,
    prometheus::{JOB, Prometheus},
    requirement,
    second_user::FIRST,
    service::NodeService,
};
use serde_json::Value;

use crate::service::{finish, key_of, observed_job, truth_of, wait_until};

/// As many as a site has to reckon with, by default.
const MOST_SERIES: usize = 400;

/// As HTTP calls the formats.
pub(crate) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0";
const TEXT: &str = "text/plain; version=0.0.4";

pub(crate) fn tests() -> Vec<Trial> {
    let mpi = Mpi::Mpich;
    let tool = [Requirement::Unpacked("promtool")];
    let needs = [
        Requirement::Bpf,
        Requirement::Root,
        Requirement::Command("unshare"),
        Requirement::Command("setpriv"),
        Requirement::Unpacked("prometheus"),
        Requirement::Unpacked("promtool"),
        Requirement::Mpi(mpi),
    ];
    vec![
        requirement::trial("alert_rules_are_right_by_prometheus_itself", &tool, rules),
        requirement::trial(format!("{}::a_prometheus_scrapes_the_service", mpi.id()), &needs, move || scraped(mpi)),
    ]
}

fn promtool(arguments: &[&str], input: &str) -> Result<Output, Failed> {
    let mut command = Command::new(debian::program("promtool").ok_or("no promtool")?);
    command.args(arguments).current_dir(sources().join("docs/monitoring"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().ok_or("no input")?.write_all(input.as_bytes())?;
    Ok(child.wait_with_output()?)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn rules() -> Result<(), Failed> {
    for (arguments, result) in
        [(["check", "rules", "rules.yml"], "SUCCESS: 7 rules found"), (["test", "rules", "rules_test.yml"], "SUCCESS")]
    {
        let output = promtool(&arguments, "")?;
        assert!(output.status.success() && said(&output).contains(result), "{arguments:?}: {}", said(&output));
    }
    Ok(())
}

/// What is read at a port by who accepts this.
pub(crate) fn read(address: &str, accept: &str) -> Result<String, Failed> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(format!("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    assert!(head.contains("200 OK") && head.contains(&format!("content-type: {accept}")), "{head}");
    Ok(body.to_owned())
}

/// Samples of a job, whatever their names.
fn samples(read: &Exposition, job: &str) -> usize {
    read.samples.iter().filter(|sample| sample.labels.get("job_id").is_some_and(|id| id == job)).count()
}

/// Invariant FEW-SERIES.
fn scraped(mpi: Mpi) -> Result<(), Failed> {
    let alice = FIRST - 40;
    let jobs = format!("[jobs]\nobserve = true\nlook-every = \"100ms\"\ninterval = \"100ms\"\nusers = [\"{alice}\"]\n");
    let service = NodeService::start(&format!("{jobs}[metrics]\naddress = \"127.0.0.1:0\"\n"))?;
    let state = service.send(b"GET /v1/service HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false)?;
    let state: Value = serde_json::from_str(String::from_utf8(state)?.split("\r\n\r\n").nth(1).ok_or("no answer")?)?;
    let address = state.pointer("/metrics/address").and_then(Value::as_str).ok_or_else(|| state.to_string())?;
    let prometheus = Prometheus::start(address)?;
    let up = format!("up{{job=\"{JOB}\"}}");
    wait_until(|| Ok(prometheus.value(&up)? == Some(1.0)))?;

    let mut of_jobs = Vec::new();
    for ranks in [2, 5] {
        let mut job = observed_job(mpi, alice, ranks)?;
        let key = key_of(&service, alice)?;
        let there = format!("mpiprobe_job_ranks{{job_id=\"{key}\"}}");
        wait_until(|| Ok(prometheus.value(&there)? == Some(f64::from(ranks))))?;
        let text = read(address, TEXT)?;
        let checked = promtool(&["check", "metrics"], &text)?;
        assert!(checked.status.success() && said(&checked).is_empty(), "{}\n{text}", said(&checked));
        let new = Exposition::parse(&read(address, OPENMETRICS)?)?;
        assert!(new.samples.len() <= MOST_SERIES, "{}", new.samples.len());
        finish(&mut job)?;
        // What Prometheus has in the end is what has really been called.
        let (calls, _) = truth_of(&job)?;
        for (group, number) in &calls {
            let counted = format!("mpiprobe_mpi_calls_total{{job_id=\"{key}\", group=\"{group}\"}}");
            let mut last = None;
            let arrived = wait_until(|| {
                last = prometheus.value(&counted)?;
                Ok(last == Some(*number))
            });
            arrived.map_err(|_| format!("{counted} is {last:?}, not {number}"))?;
        }
        let all = prometheus.value(&format!("sum(mpiprobe_mpi_calls_total{{job_id=\"{key}\"}})"))?;
        assert_eq!(all, Some(calls.values().sum()), "{calls:?}");
        of_jobs.push((key, job));
    }
    // When both are over, and nothing is said of the moment any more.
    let mut last = Exposition::default();
    wait_until(|| {
        last = Exposition::parse(&read(address, OPENMETRICS)?)?;
        let of_now = ["mpiprobe_job_ranks", "mpiprobe_job_ranks_not_observed"];
        Ok(of_now.iter().all(|name| last.values(name, &[]).is_empty()))
    })?;
    let [few, many] = [0, 1].map(|place| of_jobs.get(place).map(|(key, _)| samples(&last, key)));
    assert!(few > Some(0) && few == many, "{few:?} series of two ranks, {many:?} of five");
    // All that Prometheus has of this node, but what it says of its own scraping.
    let series = prometheus.value(&format!("count({{job=\"{JOB}\", __name__=~\"mpiprobe_.*\"}})"))?;
    assert!(series.is_some_and(|series| series <= MOST_SERIES as f64), "{series:?}");
    Ok(())
}
