//! What a node service costs: while nothing happens, and while a job of many ranks is observed.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{BenchError, cost::processor_seconds, error::file_error};
use crate::openmetrics::Exposition;
use crate::proc::descriptors;
use crate::second_user::FIRST;
use crate::service::NodeService;
use crate::{Job, Mpi, Profiler, program};

/// Per cent of a core, and MiB with tables, of a service that has nothing to do.
const GOAL_IDLE: [f64; 2] = [0.1, 25.0];
/// The same of an observation that is told of each second.
const GOAL_OBSERVING: [f64; 2] = [1.0, 80.0];
/// After a job's beginning it is looked at more often.
const SETTLING: Duration = Duration::from_secs(5);
/// For ranks to come, which are many more than processors.
const PATIENCE: Duration = Duration::from_mins(10);

/// Both halves of the service together.
#[derive(Debug, Serialize)]
pub struct ServiceReport {
    mpi: String,
    ranks: u32,
    seconds: u64,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    what: &'static str,
    /// Per cent of a core.
    processor_percent: f64,
    /// Their own (`Pss`), and that of tables in the kernel, MiB.
    memory_mib: f64,
    tables_mib: f64,
    /// Per cent and MiB at most, if anything was aimed at.
    goal: Option<[f64; 2]>,
}

/// `ranks`: of the job; each figure is of so many seconds.
pub fn run(mpi: Mpi, ranks: u32, seconds: u64) -> Result<ServiceReport, BenchError> {
    let mut service = NodeService::start("")?;
    let mut rows = vec![measured(&mut service, "nothing to do", seconds, Some(GOAL_IDLE))?];
    let job = Job::builder(mpi, program::RING).ranks(ranks).args(["1"]).gates(&["1"]).own_name();
    let mut job = job.user(FIRST).deadline(PATIENCE).spawn()?;
    // Initialised, and outside of MPI.
    job.wait_for_gate("1")?;
    rows.push(measured(&mut service, "a job that nobody observes", seconds, Some(GOAL_IDLE))?);
    let arguments = ["--json", "--interval", "1s", "--pid-of", job.called()];
    let mut observer = Profiler::spawn(service.client(FIRST, arguments))?;
    observer.wait_for_output(2)?;
    thread::sleep(SETTLING);
    rows.push(measured(&mut service, "a profile each second", seconds, Some(GOAL_OBSERVING))?);
    drop(observer);
    let unasked = "[jobs]\nobserve = true\n";
    fs::write(service.configuration(), unasked)
        .map_err(|source| file_error("writing", service.configuration(), source))?;
    service.profiler().signal(rustix::process::Signal::HUP)?;
    service.profiler().wait_for("has read its configuration again")?;
    wait_until_observed(&service, ranks)?;
    rows.push(measured(&mut service, "observed unasked", seconds, None)?);
    job.open_gate("1")?;
    job.wait()?.success()?;
    Ok(ServiceReport { mpi: mpi.to_string(), ranks, seconds, rows })
}

fn measured(
    service: &mut NodeService,
    what: &'static str,
    seconds: u64,
    goal: Option<[f64; 2]>,
) -> Result<Row, BenchError> {
    let halves = [service.profiler().pid(), service.worker()?];
    let (before, began) = (taken_seconds(halves)?, Instant::now());
    thread::sleep(Duration::from_secs(seconds));
    let (after, elapsed) = (taken_seconds(halves)?, began.elapsed());
    let tables = table_bytes(halves)?;
    Ok(Row {
        what,
        processor_percent: 100.0 * (after - before) / elapsed.as_secs_f64(),
        memory_mib: halves.into_iter().map(memory_kib).sum::<Result<f64, _>>()? / 1024.0,
        tables_mib: tables / f64::from(1 << 20),
        goal,
    })
}

/// Time of a processor that they have taken.
fn taken_seconds(halves: [u32; 2]) -> Result<f64, BenchError> {
    let gone = || BenchError::Target { reason: "the service has ended".into(), output: String::new() };
    halves.into_iter().map(|pid| processor_seconds(pid).ok_or_else(gone)).sum()
}

/// Its own, without the tables in the kernel that it has mapped, which are counted by themselves.
fn memory_kib(pid: u32) -> Result<f64, BenchError> {
    let path = format!("/proc/{pid}/smaps");
    let text = fs::read_to_string(&path).map_err(|source| file_error("reading", &path, source))?;
    let (mut is_table, mut all) = (false, 0.0);
    for line in text.lines() {
        if let Some(share) = line.strip_prefix("Pss:") {
            let share: Option<f64> = share.trim().strip_suffix("kB").and_then(|number| number.trim().parse().ok());
            all += share.filter(|_| !is_table).unwrap_or(0.0);
        } else if !line.split(' ').next().is_some_and(|word| word.ends_with(':')) {
            is_table = line.ends_with("anon_inode:bpf-map");
        }
    }
    Ok(all)
}

/// Memory of the tables that they have, as the kernel counts it, bytes: one that both have counts once.
fn table_bytes(halves: [u32; 2]) -> Result<f64, BenchError> {
    let mut tables = BTreeMap::new();
    for pid in halves {
        let path = format!("/proc/{pid}/fdinfo");
        for text in descriptors(pid).map_err(|source| file_error("reading", &path, source))? {
            let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
            if let (Some(id), Some(bytes)) = (value("map_id:"), value("memlock:")) {
                tables.insert(id, bytes);
            }
        }
    }
    Ok(tables.into_values().sum::<u64>() as f64)
}

/// All values of it together: others may have jobs here, too.
fn metric(service: &NodeService, name: &str) -> Result<f64, BenchError> {
    Ok(exposition(service)?.values(name, &[]).into_iter().sum())
}

/// What the service tells monitoring.
pub(super) fn exposition(service: &NodeService) -> Result<Exposition, BenchError> {
    let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let answer = service.send(request, false).map_err(|source| file_error("asking", service.socket(), source))?;
    let answer = String::from_utf8_lossy(&answer);
    let wrong = |reason: String| BenchError::Target { reason, output: answer.to_string() };
    let (_, body) = answer.split_once("\r\n\r\n").ok_or_else(|| wrong("no metrics".into()))?;
    Exposition::parse(body).map_err(&wrong)
}

/// And what it takes to begin is over: figures of all ranks have come.
fn wait_until_observed(service: &NodeService, ranks: u32) -> Result<(), BenchError> {
    wait_until(PATIENCE, "the job is not observed", || Ok(metric(service, "mpiprobe_job_ranks")? >= f64::from(ranks)))?;
    thread::sleep(SETTLING);
    Ok(())
}

/// `or` is said if it does not come to be.
pub(super) fn wait_until(
    patience: Duration,
    or: &str,
    mut is_so: impl FnMut() -> Result<bool, BenchError>,
) -> Result<(), BenchError> {
    let begun = Instant::now();
    while !is_so()? {
        if begun.elapsed() > patience {
            return Err(BenchError::Target { reason: or.into(), output: String::new() });
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

impl fmt::Display for ServiceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: a node service and a job of {} ranks, {} s each", self.mpi, self.ranks, self.seconds)?;
        writeln!(f, "{:<28} {:>10} {:>10} {:>12}", "", "% of a core", "MiB", "MiB of tables")?;
        for Row { what, processor_percent, memory_mib, tables_mib, goal } in &self.rows {
            write!(f, "{what:<28} {processor_percent:>10.2} {memory_mib:>10.1} {tables_mib:>12.1}")?;
            if let Some([percent, mib]) = goal {
                let is_met = processor_percent <= percent && memory_mib + tables_mib <= *mib;
                let verdict = if is_met { "met" } else { "MISSED" };
                write!(f, "    goal <= {percent} %, {mib} MiB: {verdict}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
