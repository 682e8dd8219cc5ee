//! Monitoring as sites have it: a Prometheus that scrapes the node service, and its tool on what is shipped; a collector of
//! OpenTelemetry's that is sent what the service says.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Output, Stdio},
    thread,
};

use flate2::read::GzDecoder;
use libtest_mimic::{Failed, Trial};
use mpiprobe_tests::{
    Mpi, Profiler, Requirement,
    bed::sources,
    debian,
    openmetrics::Exposition,
    profiler::binary,
    prometheus::{JOB, Prometheus},
    requirement,
    second_user::nobody_else,
    service::NodeService,
    wheel::readers,
};
use nix::sched::{CloneFlags, unshare};
use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::{KeyValue, any_value},
    metrics::v1::{metric::Data, number_data_point},
};
use prost::Message as _;
use serde_json::Value;

use crate::service::{ended, exposition, finish, key_of, observed_job, truth_of, wait_until};

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
    let pushed_needs = [
        Requirement::Bpf,
        Requirement::Root,
        Requirement::Command("unshare"),
        Requirement::Command("setpriv"),
        Requirement::Command("ip"),
        Requirement::Readers,
        Requirement::Mpi(Mpi::OpenMpi),
    ];
    vec![
        requirement::trial(format!("{}::a_collector_is_sent_metrics", Mpi::OpenMpi.id()), &pushed_needs, || {
            pushed(Mpi::OpenMpi)
        }),
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

/// Settings by which jobs of this user are observed unasked.
fn observing(user: u32) -> String {
    format!("[jobs]\nobserve = true\nlook-every = \"100ms\"\ninterval = \"100ms\"\nusers = [\"{user}\"]\n")
}

/// Waits until Prometheus has this value.
fn expect_value(prometheus: &Prometheus, expression: &str, expected: f64) -> Result<(), Failed> {
    let mut last = None;
    let arrived = wait_until(|| {
        last = prometheus.value(expression)?;
        Ok(last == Some(expected))
    });
    arrived.map_err(|_| format!("{expression} is {last:?}, not {expected}").into())
}

/// Invariant FEW-SERIES.
fn scraped(mpi: Mpi) -> Result<(), Failed> {
    let alice = nobody_else();
    let service = NodeService::start(&format!("{}[metrics]\naddress = \"127.0.0.1:0\"\n", observing(alice)))?;
    let state = service.send(b"GET /v1/service HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false)?;
    let state: Value = serde_json::from_str(String::from_utf8(state)?.split("\r\n\r\n").nth(1).ok_or("no answer")?)?;
    let address = state.pointer("/metrics/address").and_then(Value::as_str).ok_or_else(|| state.to_string())?;
    let prometheus = Prometheus::start(address)?;
    let up = format!("up{{job=\"{JOB}\"}}");
    expect_value(&prometheus, &up, 1.0)?;

    let mut of_jobs = Vec::new();
    for ranks in [2, 5] {
        let mut job = observed_job(mpi, alice, ranks)?;
        let key = key_of(&service, alice, &mut job)?;
        let there = format!("mpiprobe_job_ranks{{job_id=\"{key}\"}}");
        expect_value(&prometheus, &there, f64::from(ranks))?;
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
            expect_value(&prometheus, &counted, *number)?;
        }
        let all = prometheus.value(&format!("sum(mpiprobe_mpi_calls_total{{job_id=\"{key}\"}})"))?;
        assert_eq!(all, Some(calls.values().sum()), "{calls:?}");
        of_jobs.push((key, job));
    }
    // When both are over, and nothing is said of the moment any more.
    let mut last = Exposition::default();
    let is_over = wait_until(|| {
        last = Exposition::parse(&read(address, OPENMETRICS)?)?;
        let of_now = ["mpiprobe_job_ranks", "mpiprobe_job_ranks_not_observed"];
        Ok(of_now.iter().all(|name| last.values(name, &[]).is_empty()))
    });
    is_over.map_err(|_| format!("jobs that are over are said to run: {:?}", last.samples))?;
    let [few, many] = [0, 1].map(|place| of_jobs.get(place).map(|(key, _)| samples(&last, key)));
    assert!(few > Some(0) && few == many, "{few:?} series of two ranks, {many:?} of five");
    // All that Prometheus has of this node, but what it says of its own scraping.
    let series = prometheus.value(&format!("count({{job=\"{JOB}\", __name__=~\"mpiprobe_.*\"}})"))?;
    assert!(series.is_some_and(|series| series <= MOST_SERIES as f64), "{series:?}");
    Ok(())
}

/// Where a collector listens that is told nothing else, and where the one of this test passes on what it gets.
const RECEIVED_AT: &str = "127.0.0.1:4318";
const PASSED_ON_TO: &str = "127.0.0.1:4319";

/// What is pushed is what has been called.
fn pushed(mpi: Mpi) -> Result<(), Failed> {
    let alice = nobody_else();
    let service = NodeService::start(&observing(alice))?;
    let mut job = observed_job(mpi, alice, 3)?;
    let key = key_of(&service, alice, &mut job)?;
    let metrics = || -> Result<Exposition, Failed> {
        let answer = service.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false)?;
        exposition(&String::from_utf8(answer)?)
    };
    wait_until(|| Ok(metrics()?.value("mpiprobe_job_ranks", &[("job_id", &key)]) == Some(3.0)))?;
    finish(&mut job)?;
    let (calls, _) = truth_of(&job)?;
    // Nobody else has this network, in which all ports are free.
    let socket = service.socket();
    thread::scope(|scope| scope.spawn(|| passed_on(&socket, &key, &calls)).join().map_err(|_| "a panic")?)?;

    // Who may not have it, and who is not there.
    let refused = ended(service.client(alice, ["push", "--once"]))?;
    assert_eq!(refused.status.code(), Some(1), "{}", refused.printed());
    assert!(refused.printed().contains("you may not see all"), "{}", refused.printed());
    let push = |to: &str| {
        let mut command = Command::new(binary()?);
        command.args(["push", "--once", "--to", to, "--socket"]).arg(service.socket());
        ended(command)
    };
    // Nobody listens at the first port of all.
    let nobody = push("http://127.0.0.1:1")?;
    let expected = "the collector at http://127.0.0.1:1/v1/metrics does not answer: Connection refused";
    assert!(nobody.status.code() == Some(1) && nobody.printed().contains(expected), "{}", nobody.printed());
    let encrypted = push("https://127.0.0.1:1")?;
    assert_eq!(encrypted.status.code(), Some(2), "{}", encrypted.printed());
    assert!(encrypted.printed().contains("wants encryption"), "{}", encrypted.printed());
    Ok(())
}

/// Has metrics pushed to a collector in a network of this thread's own, which passes them on to it, until what has arrived is what has been
/// called.
fn passed_on(socket: &Path, key: &str, calls: &BTreeMap<&'static str, f64>) -> Result<(), Failed> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status()?;
    assert!(up.success(), "{up}");
    let listener = TcpListener::bind(PASSED_ON_TO)?;

    // It is there before the collector, and says so.
    let mut push = Command::new(binary()?);
    push.args(["push", "--interval", "100ms", "--socket"]).arg(socket);
    let mut push = Profiler::spawn(push)?;
    push.wait_for("the collector at http://localhost:4318/v1/metrics does not answer: ")?;
    let python = readers().ok_or("no readers")?;
    let found =
        Command::new(python).args(["-c", "import rotel, os; print(os.path.dirname(rotel.__file__))"]).output()?;
    let collector = Path::new(String::from_utf8(found.stdout)?.trim()).join("rotel-agent");
    let mut collector = Command::new(collector);
    collector.args(["start", "--otlp-http-endpoint", RECEIVED_AT, "--otlp-grpc-endpoint", "127.0.0.1:4317"]);
    collector.args(["--exporter", "otlp", "--otlp-exporter-protocol", "http"]);
    collector.arg("--otlp-exporter-endpoint").arg(format!("http://{PASSED_ON_TO}"));
    let _collector = Profiler::spawn(collector)?;
    push.wait_for("figures are handed on again")?;

    let mut last = BTreeMap::new();
    for stream in listener.incoming().take(MOST_CONNECTIONS) {
        let mut stream = BufReader::new(stream?);
        while let Some(body) = request(&mut stream)? {
            let arrived = ExportMetricsServiceRequest::decode(&*body)?;
            last = calls_by_group(&arrived, key);
            if last == *calls {
                return Ok(());
            }
            stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        }
    }
    Err(format!("{last:?} instead of {calls:?}").into())
}

/// Far more than it takes.
const MOST_CONNECTIONS: usize = 1000;

/// The body of the next request; `None`: there is none.
fn request(stream: &mut BufReader<TcpStream>) -> Result<Option<Vec<u8>>, Failed> {
    let (mut length, mut is_compressed) = (0, false);
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.split_once(':') else {
            if line.trim().is_empty() {
                break;
            }
            assert!(line.starts_with("POST /v1/metrics "), "{line}");
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse()?;
        }
        is_compressed |= name.eq_ignore_ascii_case("content-encoding") && value.trim() == "gzip";
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    if is_compressed {
        let mut raw = Vec::new();
        GzDecoder::new(&*body).read_to_end(&mut raw)?;
        body = raw;
    }
    Ok(Some(body))
}

fn calls_by_group(arrived: &ExportMetricsServiceRequest, key: &str) -> BTreeMap<&'static str, f64> {
    let value = |pairs: &[KeyValue], name: &str| -> Option<String> {
        match pairs.iter().find(|pair| pair.key == name)?.value.clone()?.value? {
            any_value::Value::StringValue(text) => Some(text),
            _ => None,
        }
    };
    let scopes = arrived.resource_metrics.iter().flat_map(|resource| &resource.scope_metrics);
    let metrics = scopes.flat_map(|scope| &scope.metrics).filter(|metric| metric.name == "mpiprobe_mpi_calls");
    let points = metrics.filter_map(|metric| match metric.data.as_ref()? {
        Data::Sum(sum) => Some(&sum.data_points),
        _ => None,
    });
    let of_job = points.flatten().filter(|point| value(&point.attributes, "job_id").as_deref() == Some(key));
    let of_group = of_job.filter_map(|point| {
        let group = value(&point.attributes, "group")?;
        let group = mpiprobe_functions::Group::ALL.into_iter().find(|one| one.key() == group)?;
        match point.value? {
            number_data_point::Value::AsInt(number) => Some((group.key(), number as f64)),
            number_data_point::Value::AsDouble(_) => None,
        }
    });
    of_group.collect()
}
