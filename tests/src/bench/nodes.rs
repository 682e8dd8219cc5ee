//! What grows with the number of nodes of a job: what one mpiprobe takes that puts their profiles together, what summaries take, and series of
//! metrics.
//!
//! The nodes are this machine. Agents are this program, and tell profiles that were made before; who starts others tells those of all of them.
//! A summary and a node's series come from a service that observes a job of as many ranks as a node has.

use std::{
    env, fmt, fs,
    io::{self, BufRead, BufReader, Write as _},
    os::unix::fs::chown,
    process::{Command, Stdio},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use mpiprobe_model::{EndReason, Profile, analyse::ProfileOutput};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    BenchError,
    cost::{peak_rss_mib, processor_seconds},
    error::file_error,
    service::{exposition, wait_until},
};
use crate::{
    Job, Mpi, proc::children, profiler, program, second_user::FIRST, service::NodeService, synthetic::Synthetic,
};

/// Variables of agents: their node, and how many ranks each node has.
const NODE: &str = "MPIPROBE_BENCH_NODE";
const RANKS: &str = "MPIPROBE_BENCH_RANKS";
const NODES: &str = "MPIPROBE_BENCH_NODES";
/// Between two looks at a process.
const PAUSE: Duration = Duration::from_millis(5);
/// For all nodes.
const PATIENCE: Duration = Duration::from_mins(10);
/// For a service to see a job, and to write down that it is over.
const SERVICE_PATIENCE: Duration = Duration::from_mins(1);
/// Whom the service writes summaries as.
const NOBODY: u32 = 65534;
/// Jobs that a node runs in a day, for what summaries come to.
const JOBS_A_DAY: u64 = 100;
/// Series of a node's metrics at most, by default.
const MOST_SERIES: u64 = 400;

#[derive(Debug, Serialize)]
pub struct NodesReport {
    ranks: u32,
    rows: Vec<Row>,
    summary: Summary,
}

/// One mpiprobe and so many nodes.
#[derive(Debug, Serialize)]
struct Row {
    nodes: u32,
    /// To agents.
    connections: usize,
    /// From the start to the first table, and to the end.
    first_s: f64,
    whole_s: f64,
    /// For two profiles of each node; `null`: not known.
    processor_s: Option<f64>,
    peak_mib: Option<f64>,
}

/// What a service keeps and tells of one job of a node.
#[derive(Debug, Serialize)]
struct Summary {
    mpi: String,
    line_bytes: u64,
    parquet_bytes: u64,
    series: u64,
}

/// `numbers` of nodes, one after the other, with so many ranks each.
pub fn run(mpi: Mpi, numbers: &[u32], ranks: u32) -> Result<NodesReport, BenchError> {
    let summary = summary(mpi, ranks)?;
    let rows = numbers.iter().map(|&nodes| together(nodes, ranks)).collect::<Result<_, _>>()?;
    Ok(NodesReport { ranks, rows, summary })
}

fn together(nodes: u32, ranks: u32) -> Result<Row, BenchError> {
    let own = env::current_exe().map_err(|source| file_error("finding", "this program", source))?;
    let hosts = (0..nodes).map(|node| format!("n{node}")).collect::<Vec<_>>().join(",");
    let mut command = Command::new(profiler::binary()?);
    command.args(["--plain", "--once", "--pid-of", "solve", "--hosts", &hosts]).arg("--agent").arg(own);
    command.arg("--launcher").arg(format!("env {NODE}={{host}}"));
    command.env(RANKS, ranks.to_string()).env(NODES, nodes.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    let failed = |source| BenchError::Start { program: "mpiprobe".into(), source };
    let mut child = command.spawn().map_err(failed)?;
    let pid = child.id();
    let (to, first) = channel();
    let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(failed(io::ErrorKind::BrokenPipe.into()));
    };
    let (printed, said) = (thread::spawn(move || lines(output, Some(&to))), thread::spawn(move || lines(errors, None)));
    let mut row = Row { nodes, connections: 0, first_s: f64::NAN, whole_s: 0.0, processor_s: None, peak_mib: None };
    loop {
        match first.recv_timeout(PAUSE) {
            Ok(()) => row.first_s = begun.elapsed().as_secs_f64(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => thread::sleep(PAUSE),
        }
        row.connections = row.connections.max(children(pid).len());
        row.processor_s = processor_seconds(pid).or(row.processor_s);
        row.peak_mib = peak_rss_mib(pid).or(row.peak_mib);
        if child.try_wait().map_err(failed)?.is_some() {
            break;
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
        }
    }
    row.whole_s = begun.elapsed().as_secs_f64();
    let (printed, said) = (printed.join().unwrap_or_default(), said.join().unwrap_or_default());
    let all = u64::from(nodes) * u64::from(ranks);
    let expected = format!(": {all} of {all} ranks");
    if printed.contains(&expected) {
        Ok(row)
    } else {
        let reason = format!("it has not seen {nodes} nodes of {ranks} ranks");
        Err(BenchError::Target {
            reason,
            output: printed.lines().take(5).chain(said.lines().take(20)).collect::<Vec<_>>().join("\n"),
        })
    }
}

/// All that somebody says; `first` is told when it begins.
fn lines(from: impl io::Read, first: Option<&std::sync::mpsc::Sender<()>>) -> String {
    let mut text = String::new();
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        if let (true, Some(first)) = (text.is_empty(), first) {
            let _ = first.send(());
        }
        text += &line;
        text.push('\n');
    }
    text
}

/// Is an agent, and those below it.
pub fn agent() -> io::Result<()> {
    let variable = |name: &str| env::var(name).map_err(|_| io::Error::other(format!("{name} is not set")));
    let number = |text: &str| text.parse::<u32>().map_err(io::Error::other);
    let own = number(variable(NODE)?.trim_start_matches('n'))?;
    let (ranks, nodes) = (number(&variable(RANKS)?)?, number(&variable(NODES)?)?);
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    writeln!(output, "{}", json!({ "observation": 0, "version": env!("CARGO_PKG_VERSION") }))?;
    output.flush()?;
    let mut request = String::new();
    input.read_line(&mut request)?;
    let request: Value = serde_json::from_str(&request)?;
    let below = request.pointer("/below/nodes").and_then(Value::as_array).into_iter().flatten();
    let below = below.filter_map(|node| u32::try_from(node.get(0)?.as_u64()?).ok());
    let all: Vec<u32> = std::iter::once(own).chain(below).collect();
    let mut say = |node: u32, line: &str| {
        if node == own { writeln!(output, "{line}") } else { writeln!(output, "{{\"from\":{node},\"line\":{line}}}") }?;
        output.flush()
    };
    let told = |node: u32, seconds: u64, end: Option<EndReason>| {
        let profile = profile(node, nodes, ranks, seconds, end);
        serde_json::to_string(&ProfileOutput::new(&profile, &profile))
    };
    for &node in &all {
        say(node, r#"{"begun":true}"#)?;
        say(node, &told(node, 1, None)?)?;
    }
    let mut end = String::new();
    input.read_line(&mut end)?;
    for &node in &all {
        say(node, &told(node, 2, Some(EndReason::Interrupted))?)?;
        say(node, r#"{"ended":true}"#)?;
    }
    Ok(())
}

fn profile(node: u32, nodes: u32, ranks: u32, seconds: u64, end: Option<EndReason>) -> Profile {
    let job = Synthetic { ranks, traffic: false, trouble: false, ..Synthetic::LARGE };
    let mut profile = job.profile(seconds, end);
    for rank in &mut profile.ranks {
        rank.rank = rank.rank.map(|rank| node * ranks + rank);
        rank.size = Some(nodes * ranks);
    }
    profile
}

/// A service that observes a job unasked, until it has summed it up.
fn summary(mpi: Mpi, ranks: u32) -> Result<Summary, BenchError> {
    let place = tempfile::tempdir().map_err(|source| file_error("making", env::temp_dir(), source))?;
    let (file, tables) = (place.path().join("jobs.jsonl"), place.path().join("jobs"));
    fs::create_dir(&tables).map_err(|source| file_error("making", &tables, source))?;
    for path in [place.path(), &tables] {
        // The service writes with no rights of its own.
        chown(path, Some(NOBODY), Some(NOBODY)).map_err(|source| file_error("giving away", path, source))?;
    }
    let (shown_file, shown_tables) = (file.display(), tables.display());
    let settings = format!(
        "user = \"nobody\"\n[jobs]\nobserve = true\nusers = [\"{FIRST}\"]\nlook-every = \"1s\"\ninterval = \"1s\"\n[summaries]\nfile = \"{shown_file}\"\nparquet = \"{shown_tables}\"\n"
    );
    let service = NodeService::start(&settings)?;
    let job = Job::builder(mpi, program::RING).ranks(ranks).args(["20"]).gates(&["start"]).own_name().user(FIRST);
    let mut job = job.deadline(PATIENCE).spawn()?;
    job.wait_for_gate("start")?;
    let mut series = 0;
    wait_until(SERVICE_PATIENCE, "the job is not observed", || {
        let told = exposition(&service)?;
        series = told.samples.len() as u64;
        Ok(told.values("mpiprobe_job_ranks", &[]).into_iter().sum::<f64>() >= f64::from(ranks))
    })?;
    job.open_gate("start")?;
    job.wait()?.success()?;
    let size_of_tables =
        || -> io::Result<u64> { fs::read_dir(&tables)?.map(|entry| Ok(entry?.metadata()?.len())).sum() };
    let text = || fs::read_to_string(&file).unwrap_or_default();
    wait_until(SERVICE_PATIENCE, "the job has no summary", || {
        Ok(text().ends_with('\n') && size_of_tables().is_ok_and(|size| size > 0))
    })?;
    let line_bytes = text().lines().next().map_or(0, |line| line.len() as u64 + 1);
    let parquet_bytes = size_of_tables().map_err(|source| file_error("reading", &tables, source))?;
    Ok(Summary { mpi: mpi.to_string(), line_bytes, parquet_bytes, series })
}

impl fmt::Display for NodesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "One mpiprobe and nodes of {} ranks each, two profiles of each node", self.ranks)?;
        let heads = ["nodes", "ranks", "connections", "first table s", "all s", "processor s", "MiB"];
        writeln!(f, "{}", heads.map(|head| format!("{head:>14}")).concat())?;
        let known = |value: Option<f64>| value.map_or_else(|| "?".into(), |value| format!("{value:.2}"));
        for row in &self.rows {
            let cells = [
                row.nodes.to_string(),
                (u64::from(row.nodes) * u64::from(self.ranks)).to_string(),
                row.connections.to_string(),
                format!("{:.2}", row.first_s),
                format!("{:.2}", row.whole_s),
                known(row.processor_s),
                row.peak_mib.map_or_else(|| "?".into(), |mib| format!("{mib:.0}")),
            ];
            writeln!(f, "{}", cells.map(|cell| format!("{cell:>14}")).concat())?;
        }
        let Summary { mpi, line_bytes, parquet_bytes, series } = &self.summary;
        writeln!(
            f,
            "\nA job on a node ({mpi}): summary {line_bytes} B as JSON, {parquet_bytes} B as Parquet; {series} series, at most {MOST_SERIES}"
        )?;
        let heads = ["nodes", "series", "at most", "MB a day JSON", "Parquet"];
        writeln!(f, "{}", heads.map(|head| format!("{head:>14}")).concat())?;
        for Row { nodes, .. } in &self.rows {
            let nodes = u64::from(*nodes);
            let mb = |bytes: u64| format!("{:.1}", (nodes * JOBS_A_DAY * bytes) as f64 / 1e6);
            let cells = [
                nodes.to_string(),
                (nodes * series).to_string(),
                (nodes * MOST_SERIES).to_string(),
                mb(*line_bytes),
                mb(*parquet_bytes),
            ];
            writeln!(f, "{}", cells.map(|cell| format!("{cell:>14}")).concat())?;
        }
        write!(f, "({JOBS_A_DAY} jobs a day on each node)")
    }
}
