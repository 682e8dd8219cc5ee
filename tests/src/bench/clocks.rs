//! What it takes to find out how clocks of several nodes differ: of a trace, and of one with ten times as many events.

use std::fmt;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::process;
use std::time::Instant;

use mpiprobe_replay::{estimate, threads};
use mpiprobe_trace::store::{self, TraceFiles};
use mpiprobe_trace::{Definitions, HandMade, LocationId, NodeId, Part, Parts, ReadError, Span, Trace};
use serde::Serialize;

use super::BenchError;
use super::cost::peak_rss_mib;
use super::error::file_error;

const NODES: u32 = 4;
const RANKS: u32 = 16;
const STEPS: u64 = 500;
/// How many times as long it may take with ten times as many events, and how much more memory.
const GOAL_TIME: f64 = 12.0;
const GOAL_MEMORY: f64 = 1.5;

/// What it was.
#[derive(Debug, Serialize)]
pub struct ClocksReport {
    rows: Vec<ClocksRow>,
    met: bool,
}

#[derive(Debug, Serialize)]
struct ClocksRow {
    events: u64,
    seconds: f64,
    /// The most that was in memory meanwhile, MiB.
    most_mib: f64,
    /// What was found: how well the clock of the last node is known, ns.
    within_ns: Option<u64>,
}

/// The same short job again and again.
struct Repeated {
    once: HandMade,
    length_ns: u64,
    times: u64,
}

impl Trace for Repeated {
    fn definitions(&self) -> &Definitions {
        &self.once.definitions
    }

    fn span(&self) -> Span {
        let Span { from_ns, until_ns } = self.once.span();
        Span { from_ns, until_ns: until_ns + self.length_ns * self.times }
    }

    fn span_of(&self, _: LocationId) -> Option<Span> {
        Some(self.span())
    }

    fn event_count(&self) -> u64 {
        self.once.event_count() * self.times
    }

    fn parts(&self, location: LocationId, _: Span) -> Parts<'_> {
        let calls =
            self.once.parts(location, Span::ALL).filter_map(Result::ok).map(|part| part.rows.len() as u64).sum::<u64>();
        let part = move |time: u64, part: Result<Part, ReadError>| {
            let mut part = part?;
            for row in &mut part.rows {
                row.begin_ns += time * self.length_ns;
                row.end_ns += time * self.length_ns;
                row.number += time * calls;
            }
            Ok(part)
        };
        Box::new((0..self.times).flat_map(move |time| {
            self.once.parts(location, Span::ALL).map(move |one| part(time, one)).collect::<Vec<_>>()
        }))
    }
}

/// Measures with so many events, and with a tenth of them.
pub fn run(events: u64) -> Result<ClocksReport, BenchError> {
    let directory = tempfile::tempdir().map_err(|source| file_error("creating a directory in", "/tmp", source))?;
    let once = HandMade::halo(RANKS, STEPS);
    let length_ns = once.span().until_ns;
    let apart = |node: u32, ns: u64| ns + u64::from(node) * 86_400_000_000_000;
    let once = once.over_nodes(|rank| rank * NODES / RANKS, apart);
    let mut rows = Vec::new();
    for events in [events / 10, events] {
        let times = (events / once.event_count()).max(1);
        let repeated = Repeated { once: once.clone(), length_ns, times };
        let path = directory.path().join(format!("{events}.trace"));
        rows.push(row(&repeated, &path)?);
        let _ = fs::remove_file(&path);
    }
    let met = match rows.as_slice() {
        [few, many] => {
            let more = many.events as f64 / few.events.max(1) as f64 / 10.0;
            many.seconds <= few.seconds * GOAL_TIME * more && many.most_mib <= few.most_mib * GOAL_MEMORY
        }
        _ => false,
    };
    Ok(ClocksReport { rows, met })
}

fn row(trace: &Repeated, path: &Path) -> Result<ClocksRow, BenchError> {
    let failed = |error: String| file_error("writing", path, std::io::Error::other(error));
    let file = File::create_new(path).map_err(|source| file_error("creating", path, source))?;
    let written = store::copy(trace, Span::ALL, BufWriter::new(file)).map_err(|error| failed(error.to_string()))?;
    written.into_inner().map_err(|error| failed(error.to_string()))?;
    let read = TraceFiles::open(&[path]).map_err(|error| failed(error.to_string()))?;
    // From now on, the most that is in memory is counted anew.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = most_mib();
    let began = Instant::now();
    let clocks = estimate(&read, threads(), |_| {}).map_err(|error| failed(error.to_string()))?;
    let seconds = began.elapsed().as_secs_f64();
    let within_ns = clocks.within_ns(NodeId(0), NodeId(NODES - 1));
    Ok(ClocksRow { events: read.event_count(), seconds, most_mib: most_mib() - before, within_ns })
}

/// The most memory that this process has had, MiB.
fn most_mib() -> f64 {
    peak_rss_mib(process::id()).unwrap_or(0.0)
}

impl fmt::Display for ClocksReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "clocks of {NODES} nodes with {RANKS} ranks")?;
        for ClocksRow { events, seconds, most_mib, within_ns } in &self.rows {
            let rate = *events as f64 / seconds / 1e6;
            let within = within_ns.map_or_else(|| "not known".into(), |ns| format!("± {ns} ns"));
            writeln!(f, "{events:>12} events: {seconds:.2} s, {rate:.1} M events/s, {most_mib:.0} MiB more, {within}")?;
        }
        let verdict = if self.met { "met" } else { "MISSED" };
        writeln!(f, "goal time <= {GOAL_TIME} x, memory <= {GOAL_MEMORY} x with ten times the events: {verdict}")
    }
}
