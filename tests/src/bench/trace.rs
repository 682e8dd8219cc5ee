//! What a call costs that is recorded: the same process with its calls counted and with them recorded besides, by either engine, in rounds.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mpiprobe_attach::choose_method;
use mpiprobe_common::Config;
use mpiprobe_trace::store::TraceFiles;
use mpiprobe_trace::{Event, LocationId, Span, Trace as _};
use serde::Serialize;
use tempfile::TempDir;

use super::callrate::{CallRate, LOOPS, Loop, PING_PONG};
use super::child::Tracer;
use super::error::file_error;
use super::figures::{Figure, Figures};
use super::settled::settle;
use super::sites::Sites;
use super::{BenchError, Effort};
use crate::Mpi;

/// What recording a call may cost more than counting what it moves, ns.
const GOAL_EBPF_NS: f64 = 40.0;
/// The same of a call that takes as long as one with probes, as a part.
const GOAL_EBPF_PART: f64 = 0.03;
const GOAL_WRAPPER_NS: f64 = 20.0;
/// What a call may take of the recorder's core, ns: it keeps up with 2.5 M calls a second, as many as a node can make.
const GOAL_RECORDER_NS: u32 = 400;

/// Calls of a batch of a process that makes as many as a node can make, and for how long it does.
const SUSTAINED_TURNS: u32 = 1000;
const SUSTAINED: Duration = Duration::from_secs(4);
/// How much longer than it is to take the program may, as a part.
const BEHIND: f64 = 0.02;

/// How calls are observed, in the order in which they are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Traffic,
    /// Into a file.
    Recorded,
    /// The last part stays in memory.
    Flight,
    /// Who waits for whom is found out meanwhile.
    Waits,
    Wrapper,
    WrapperRecorded,
}

/// What runs at the rate that is aimed at: messages of blocking calls, and of requests.
const LASTING: [&str; 2] = ["MPI_Sendrecv", "MPI_Irecv+MPI_Isend+MPI_Waitall"];

/// Those of the eBPF engine.
const BY_KERNEL: [Kind; 4] = [Kind::Traffic, Kind::Recorded, Kind::Flight, Kind::Waits];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Traffic => "eBPF, traffic",
            Self::Recorded => "eBPF, recorded",
            Self::Flight => "eBPF, flight",
            Self::Waits => "eBPF, waits",
            Self::Wrapper => "wrapper",
            Self::WrapperRecorded => "wrapper, recorded",
        }
    }
}

/// Everything about one MPI.
#[derive(Debug, Serialize)]
pub struct TraceReport {
    mpi: String,
    rounds: u32,
    batches: u32,
    turns: u32,
    rows: Vec<Row>,
    goals: Vec<Goal>,
    /// Of the eBPF engine's recordings and the wrapper's.
    files: [Recording; 2],
    recorders: Vec<Recorder>,
    sustained: Vec<Sustained>,
}

/// One loop; times per call, ns.
#[derive(Debug, Serialize)]
struct Row {
    functions: &'static str,
    /// With probes that find out what calls move; `None`: this loop needs two ranks.
    traffic: Option<Figure>,
    /// What recording adds, into a file, in memory, and for wait states.
    recorded: Option<Figure>,
    flight: Option<Figure>,
    waits: Option<Figure>,
    /// With the wrapper.
    wrapper: Figure,
    wrapper_recorded: Figure,
}

#[derive(Debug, Serialize)]
struct Goal {
    what: &'static str,
    at_most: f64,
    /// `None`: nothing was measured that could tell.
    mean: Option<f64>,
    met: bool,
}

/// What is in files of traces.
#[derive(Debug, Default, Serialize)]
struct Recording {
    calls: u64,
    /// Those that there was no room for.
    lost: u64,
    /// Those that asked in vain while there was little room.
    left_out: u64,
    bytes: u64,
}

/// Of whoever takes calls from the rings, and does with them what was asked for.
#[derive(Debug, Serialize)]
struct Recorder {
    of: &'static str,
    calls: u64,
    processor_s: f64,
}

/// One loop of a process that counts itself, and makes as many calls as a node can make for seconds.
#[derive(Debug, Serialize)]
struct Sustained {
    functions: &'static str,
    calls: u64,
    seconds: f64,
    /// Of the recorder's.
    processor_s: f64,
    /// Those that there was no room for.
    lost: u64,
}

impl Sustained {
    /// Cores that the recorder has taken.
    fn cores(&self) -> f64 {
        self.processor_s / self.seconds
    }

    /// From one call to the next one.
    fn ns_per_call(&self) -> f64 {
        self.seconds * 1e9 / self.calls as f64
    }
}

impl Recorder {
    fn ns_per_call(&self) -> f64 {
        self.processor_s * 1e9 / self.calls.max(1) as f64
    }
}

/// Measures under one MPI, with an executable of mpiprobe. Gives up between two steps when `interrupted` becomes true.
pub fn run(mpi: Mpi, mpiprobe: &Path, effort: Effort, interrupted: &AtomicBool) -> Result<TraceReport, BenchError> {
    let directory = tempfile::tempdir().map_err(|source| file_error("creating a directory in", "/tmp", source))?;
    let wrapped_trace = directory.path().join("wrapped.trace");
    let engine = choose_method(&Config::DEFAULT, None)?;
    let mut probed = CallRate::start(mpi)?;
    let sites = Sites::plan(probed.library())?;
    let mut wrapped = [CallRate::start_wrapped(mpi)?, CallRate::start_traced(mpi, &wrapped_trace)?];
    let loops: Vec<&'static Loop> = LOOPS.iter().filter(|each| !each.probed.is_empty()).chain([&PING_PONG]).collect();
    let mut figures = Figures::default();
    let mut by_kernel = Recording::default();
    let mut recorders: Vec<Recorder> =
        BY_KERNEL.map(|kind| Recorder { of: kind.name(), calls: 0, processor_s: 0.0 }).into();
    for round in 0..effort.rounds {
        for (kind, recorder) in BY_KERNEL.into_iter().zip(&mut recorders) {
            let trace = directory.path().join(format!("{round}.trace"));
            let tracer = observe(mpiprobe, kind, &trace, probed.pid())?;
            // What is found out about each call once is found out.
            for each in loops.iter().filter(|each| !each.takes_all) {
                probed.measure(each, 1, 1)?;
            }
            settle(&engine, &sites)?;
            let began = tracer.processor_seconds();
            probed.forget_calls();
            for (index, each) in loops.iter().enumerate().filter(|(_, each)| !each.takes_all) {
                figures.add(index, kind as usize, probed.measure(each, effort.batches, effort.turns)?);
                stop_if(interrupted)?;
            }
            recorder.calls += probed.calls_made().map(|(_, calls)| calls).sum::<u64>();
            recorder.processor_s += began.zip(tracer.processor_seconds()).map_or(0.0, |(began, ended)| ended - began);
            tracer.stop()?;
            if kind == Kind::Recorded {
                by_kernel.add(&trace)?;
                let _ = std::fs::remove_file(&trace);
            }
        }
        for (index, each) in loops.iter().enumerate() {
            for (kind, target) in [Kind::Wrapper, Kind::WrapperRecorded].into_iter().zip(&mut wrapped) {
                figures.add(index, kind as usize, target.measure(each, effort.batches, effort.turns)?);
                stop_if(interrupted)?;
            }
        }
    }
    let launcher_s = wrapped.last().and_then(CallRate::launcher_seconds).unwrap_or_default();
    let by_wrapper = end(wrapped, &wrapped_trace, directory)?;
    let of = Kind::WrapperRecorded.name();
    recorders.push(Recorder { of, calls: by_wrapper.calls, processor_s: launcher_s });
    let lasting = loops.iter().filter(|each| LASTING.contains(&each.name));
    let sustained: Result<Vec<Sustained>, BenchError> = lasting.map(|each| sustain(mpi, each)).collect();
    let sustained = sustained?;
    let rows: Vec<Row> = loops.iter().enumerate().filter_map(|(index, each)| row(index, each, &figures)).collect();
    let Effort { rounds, batches, turns } = effort;
    let files = [by_kernel, by_wrapper];
    let goals = goals(&rows, &recorders, &sustained);
    Ok(TraceReport { mpi: mpi.to_string(), rounds, batches, turns, rows, goals, files, recorders, sustained })
}

fn stop_if(interrupted: &AtomicBool) -> Result<(), BenchError> {
    if interrupted.load(Ordering::Relaxed) { Err(BenchError::Interrupted) } else { Ok(()) }
}

/// The files are gone with the directory.
fn end(wrapped: [CallRate; 2], trace: &Path, directory: TempDir) -> Result<Recording, BenchError> {
    for target in wrapped {
        target.end()?;
    }
    let mut recording = Recording::default();
    recording.add(trace)?;
    drop(directory);
    Ok(recording)
}

/// Has a loop run at the rate that is aimed at.
fn sustain(mpi: Mpi, each: &'static Loop) -> Result<Sustained, BenchError> {
    let directory = tempfile::tempdir().map_err(|source| file_error("creating a directory in", "/tmp", source))?;
    let trace = directory.path().join("sustained.trace");
    let mut target = CallRate::start_traced(mpi, &trace)?;
    target.measure(each, 1, 1)?;
    let calls_of_batch = u64::from(SUSTAINED_TURNS) * each.probed.len() as u64;
    let apart = Duration::from_nanos(u64::from(GOAL_RECORDER_NS) * calls_of_batch);
    let batches = (SUSTAINED.as_nanos() / apart.as_nanos()).try_into().unwrap_or(u32::MAX);
    let (began, began_s) = (Instant::now(), target.launcher_seconds());
    target.measure_apart(each, batches, SUSTAINED_TURNS, apart)?;
    let seconds = began.elapsed().as_secs_f64();
    let processor_s = began_s.zip(target.launcher_seconds()).map_or(0.0, |(began, ended)| ended - began);
    target.end()?;
    let mut recording = Recording::default();
    recording.add(&trace)?;
    let calls = u64::from(batches) * calls_of_batch;
    Ok(Sustained { functions: each.name, calls, seconds, processor_s, lost: recording.lost + recording.left_out })
}

/// Returns when every call is seen.
fn observe(mpiprobe: &Path, kind: Kind, trace: &Path, pid: u32) -> Result<Tracer, BenchError> {
    let pid = pid.to_string();
    let mut arguments: Vec<&OsStr> = match kind {
        Kind::Recorded => ["trace", "-o"].map(OsStr::new).into(),
        Kind::Flight => ["trace", "--flight", "30s", "-o"].map(OsStr::new).into(),
        // What records single calls has no limit of what it costs.
        Kind::Waits => ["--waits", "--interval", "1h"].map(OsStr::new).into(),
        _ => ["--traffic", "--interval", "1h", "--max-overhead", "off"].map(OsStr::new).into(),
    };
    if matches!(kind, Kind::Recorded | Kind::Flight) {
        arguments.push(trace.as_os_str());
    }
    arguments.extend(["--json", "--pid", &pid].map(OsStr::new));
    let mut tracer = Tracer::start(mpiprobe.as_os_str(), &arguments)?;
    tracer.wait_for("observing ")?;
    Ok(tracer)
}

impl Recording {
    fn add(&mut self, path: &Path) -> Result<(), BenchError> {
        let failed = |error: String| file_error("reading", path, std::io::Error::other(error));
        let trace = TraceFiles::open(&[path]).map_err(|error| failed(error.to_string()))?;
        self.bytes += std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        for (number, location) in (0..).zip(&trace.definitions().locations) {
            self.lost += location.losses.missing();
            self.left_out += location.losses.left_out.by_pressure;
            for event in trace.events(LocationId(number), Span::ALL) {
                let event = event.map_err(|error| failed(error.to_string()))?;
                self.calls += u64::from(matches!(event, Event::Call(_)));
            }
        }
        Ok(())
    }
}

fn row(index: usize, each: &Loop, figures: &Figures) -> Option<Row> {
    // Both ranks of a ping-pong are waited for.
    let calls = each.probed.len() * if each.takes_all { 2 } else { 1 };
    let figure = |kind: Kind| figures.per_call(index, kind as usize, calls);
    let added = |more: Kind, less: Kind| figures.more_per_call(index, [more as usize, less as usize], calls);
    Some(Row {
        functions: each.name,
        traffic: figure(Kind::Traffic),
        recorded: added(Kind::Recorded, Kind::Traffic),
        flight: added(Kind::Flight, Kind::Traffic),
        waits: added(Kind::Waits, Kind::Traffic),
        wrapper: figure(Kind::Wrapper)?,
        wrapper_recorded: added(Kind::WrapperRecorded, Kind::Wrapper)?,
    })
}

fn goals(rows: &[Row], recorders: &[Recorder], sustained: &[Sustained]) -> Vec<Goal> {
    let ebpf = || rows.iter().filter_map(|row| Some((row.recorded?.minimum_ns, row.traffic?.minimum_ns)));
    let parts = ebpf().map(|(added, call)| added / call);
    let files = [Kind::Recorded, Kind::WrapperRecorded].map(Kind::name);
    let of_files = recorders.iter().filter(|recorder| files.contains(&recorder.of)).map(Recorder::ns_per_call);
    // Where the program itself could not make so many, nothing is known.
    let fast_enough =
        || sustained.iter().filter(|each| each.ns_per_call() <= f64::from(GOAL_RECORDER_NS) * (1.0 + BEHIND));
    let all = [
        goal("recorder, ns of a processor for a call", GOAL_RECORDER_NS.into(), of_files),
        goal("recorder, cores for 2.5 M calls/s", 1.0, fast_enough().map(Sustained::cores)),
        goal("recorder, calls lost of 2.5 M calls/s", 0.0, fast_enough().map(|each| each.lost as f64)),
        goal("eBPF, ns more a call", GOAL_EBPF_NS, ebpf().map(|(added, _)| added)),
        goal("eBPF, part of a call", GOAL_EBPF_PART, parts),
        goal("wrapper, ns more a call", GOAL_WRAPPER_NS, rows.iter().map(|row| row.wrapper_recorded.minimum_ns)),
    ];
    all.into()
}

fn goal(what: &'static str, at_most: f64, added: impl Iterator<Item = f64>) -> Goal {
    let added: Vec<f64> = added.collect();
    let mean = (!added.is_empty()).then(|| added.iter().sum::<f64>() / added.len() as f64);
    Goal { what, at_most, mean, met: mean.is_some_and(|mean| mean <= at_most) }
}

impl fmt::Display for TraceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mpi, rounds, batches, turns, .. } = self;
        writeln!(
            f,
            "{mpi}: {rounds} rounds of {batches} batches of {turns} turns; ns per call, of the fastest and the middle batch; what is more, in the middle round"
        )?;
        let titles = ["eBPF, traffic", "recorded", "flight", "waits", "wrapper", "recorded"];
        writeln!(f, "{:<32}{}", "loop", titles.map(|title| format!("{title:>16}")).concat())?;
        for Row { functions, traffic, recorded, flight, waits, wrapper, wrapper_recorded } in &self.rows {
            let plain = |figure: &Figure| format!("{:.1} {:.1}", figure.minimum_ns, figure.median_ns);
            let more = |figure: &Figure| format!("{:+.1} {:+.1}", figure.minimum_ns, figure.median_ns);
            let or_empty = |figure: &Option<Figure>| figure.as_ref().map_or_else(String::new, more);
            let figures = [
                traffic.as_ref().map_or_else(String::new, plain),
                or_empty(recorded),
                or_empty(flight),
                or_empty(waits),
                plain(wrapper),
                more(wrapper_recorded),
            ];
            writeln!(f, "{functions:<32}{}", figures.map(|figure| format!("{figure:>16}")).concat())?;
        }
        for (engine, Recording { calls, lost, left_out, bytes }) in ["eBPF", "wrapper"].iter().zip(&self.files) {
            let each = *bytes as f64 / (*calls).max(1) as f64;
            writeln!(f, "{engine}: {calls} calls recorded, {each:.2} bytes each; {lost} lost, {left_out} left out")?;
        }
        for recorder in &self.recorders {
            let (Recorder { of, calls, processor_s }, ns) = (recorder, recorder.ns_per_call());
            writeln!(f, "mpiprobe itself, {of}: {calls} calls in {processor_s:.2} s of a processor, {ns:.0} ns each")?;
        }
        for each in &self.sustained {
            let (Sustained { functions, calls, lost, .. }, rate, cores) =
                (each, 1e3 / each.ns_per_call(), each.cores());
            writeln!(
                f,
                "{functions}, wrapper: {calls} calls recorded at {rate:.2} M/s, {lost} lost or left out; {cores:.2} cores"
            )?;
        }
        for Goal { what, at_most, mean, met } in &self.goals {
            let verdict = if *met { "met" } else { "MISSED" };
            let mean = mean.map_or_else(|| "not measured".to_owned(), |mean| format!("mean {mean:.3}"));
            writeln!(f, "goal {what} <= {at_most}: {verdict} ({mean})")?;
        }
        Ok(())
    }
}
