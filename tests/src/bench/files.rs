//! What is done with traces in files costs: wait states and exports of a course of calls and of one ten times as long, from the
//! program's start to its end.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use mpiprobe_trace::{HandMade, Span, Trace as _, store};
use serde::Serialize;
use thiserror::Error;

use super::cost::{Cost, CostError};
use crate::ProfilerError;

/// Bytes of an event of calls that repeat, at most.
const GOAL_BYTES: f64 = 4.0;
/// Seconds for the wait states of ten million events, at most.
const GOAL_WAITS_SECONDS: f64 = 3.0;
const TEN_MILLIONS: f64 = 1e7;
/// Calls that are exported as OTF2 in a second of one core, at least.
const GOAL_OTF2_CALLS: f64 = 5e6;
/// How much longer the long trace is.
const LONGER: u64 = 10;
/// Time for each of its events, and memory, over those of the short one, at most: what is neither linear nor bounded is far beyond.
const GOAL_GROWTH: f64 = 1.25;

/// Calls that repeat, as most programs' do, and such of which nothing does.
const HALO: &str = "halo exchange";
const IRREGULAR: &str = "irregular";
/// Steps of a course before it begins again: more than a thread's calls of one chunk, so that nothing in a chunk is the same again.
const STEPS: u64 = 700;

/// What is done with a trace, and with which arguments behind its path; whatever is written goes to a path behind these.
const USES: [(&str, &str, &[&str]); 6] = [
    ("waits", "waits", &["--json"]),
    ("otf2", "export", &["--to", "otf2"]),
    ("perfetto", "export", &["--to", "perfetto"]),
    ("parquet", "export", &["--to", "parquet"]),
    ("csv", "export", &["--to", "csv"]),
    ("chrome", "export", &["--to", "chrome"]),
];

/// How large the traces are, and how often each is used.
#[derive(Debug, Clone, Copy)]
pub struct FilesEffort {
    pub ranks: u32,
    /// Events of the short trace, about.
    pub events: u64,
    pub repetitions: u32,
}

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum FilesError {
    #[error("the trace to be used cannot be made: {0}")]
    Trace(#[from] store::CopyError),
    #[error("{0}")]
    File(#[from] io::Error),
    #[error(transparent)]
    Profiler(#[from] ProfilerError),
    #[error("mpiprobe, {name}: {error}")]
    Use { name: &'static str, error: CostError },
}

/// One use of one trace.
#[derive(Debug, Serialize)]
struct Use {
    name: &'static str,
    #[serde(flatten)]
    cost: Cost,
}

/// One trace.
#[derive(Debug, Serialize)]
struct Traced {
    course: &'static str,
    events: u64,
    bytes_per_event: f64,
    /// Until it was written, which includes making the events up.
    written_in_s: f64,
    uses: Vec<Use>,
}

#[derive(Debug, Serialize)]
pub struct FilesReport {
    ranks: u32,
    traces: Vec<Traced>,
}

/// Makes the traces and has `mpiprobe` use them.
pub fn run(mpiprobe: &Path, effort: FilesEffort) -> Result<FilesReport, FilesError> {
    let courses = [(HALO, HandMade::halo(effort.ranks, STEPS)), (IRREGULAR, HandMade::irregular(effort.ranks, STEPS))];
    let mut traces = Vec::new();
    for (course, made) in courses {
        let times = effort.events.div_ceil(made.event_count()).max(1);
        for times in [times, times * LONGER] {
            traces.push(measure(mpiprobe, course, &made, times, effort.repetitions)?);
        }
    }
    Ok(FilesReport { ranks: effort.ranks, traces })
}

fn measure(
    mpiprobe: &Path,
    course: &'static str,
    made: &HandMade,
    times: u64,
    repetitions: u32,
) -> Result<Traced, FilesError> {
    let folder = tempfile::tempdir()?;
    let (path, output) = (folder.path().join("job.trace"), folder.path().join("output"));
    let repeated = made.repeated(times);
    let begun = Instant::now();
    store::copy(&repeated, Span::ALL, BufWriter::new(File::create(&path)?))?;
    let written_in_s = begun.elapsed().as_secs_f64();
    let uses = USES.into_iter().map(|(name, command, arguments)| {
        let cost = Cost::of(repetitions, &output, || {
            let mut run = Command::new(mpiprobe);
            run.arg(command).arg(&path).args(arguments);
            if command == "export" {
                run.arg(&output);
            }
            run
        });
        Ok(Use { name, cost: cost.map_err(|error| FilesError::Use { name, error })? })
    });
    let uses = uses.collect::<Result<_, FilesError>>()?;
    let events = repeated.event_count();
    Ok(Traced {
        course,
        events,
        bytes_per_event: fs::metadata(&path)?.len() as f64 / events as f64,
        written_in_s,
        uses,
    })
}

/// One aim: what, how much there is, how much there should be, and whether that is so.
struct Goal {
    what: String,
    found: f64,
    limit: f64,
    is_met: bool,
}

impl FilesReport {
    fn of(&self, course: &str) -> impl Iterator<Item = &Traced> {
        self.traces.iter().filter(move |trace| trace.course == course)
    }

    fn goals(&self) -> Vec<Goal> {
        let at_most = |what: String, found: f64, limit: f64| Goal { what, found, limit, is_met: found <= limit };
        let mut goals = Vec::new();
        let bytes = self.of(HALO).map(|trace| trace.bytes_per_event).fold(0.0, f64::max);
        goals.push(at_most(format!("{HALO}: bytes of an event"), bytes, GOAL_BYTES));
        for long in self.traces.iter().filter(|trace| trace.events >= 1_000_000) {
            for each in long.uses.iter().filter(|each| each.name == "waits") {
                let seconds = each.cost.seconds / long.events as f64 * TEN_MILLIONS;
                let what = format!("{}: wait states, seconds for ten million events of {}", long.course, long.events);
                goals.push(at_most(what, seconds, GOAL_WAITS_SECONDS));
            }
            for each in long.uses.iter().filter(|each| each.name == "otf2") {
                let Some(seconds) = each.cost.processor_seconds else { continue };
                let found = long.events as f64 / seconds;
                let what = format!("{}: OTF2, calls in a second of a core", long.course);
                goals.push(Goal { what, found, limit: GOAL_OTF2_CALLS, is_met: found >= GOAL_OTF2_CALLS });
            }
        }
        // Where all ranks meet from time to time. Where they never do, more is remembered, up to limits of their own.
        if let [short, long] = self.of(HALO).collect::<Vec<_>>().as_slice() {
            for (one, ten) in short.uses.iter().zip(&long.uses) {
                let per_event = |each: &Use, trace: &Traced| Some(each.cost.processor_seconds? / trace.events as f64);
                if let Some((one, ten_times)) = per_event(one, short).zip(per_event(ten, long)) {
                    let what = format!("{}: {}, time of an event of ten times as many", long.course, ten.name);
                    goals.push(at_most(what, ten_times / one, GOAL_GROWTH));
                }
                if let Some((one, ten_times)) = one.cost.peak_rss_mib.zip(ten.cost.peak_rss_mib) {
                    let what = format!("{}: {}, memory for ten times as many", long.course, ten.name);
                    goals.push(at_most(what, ten_times / one, GOAL_GROWTH));
                }
            }
        }
        goals
    }
}

impl fmt::Display for FilesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ranks; M events/s by the clock, and of a core", self.ranks)?;
        for Traced { course, events, bytes_per_event, written_in_s, uses } in &self.traces {
            let written = *events as f64 / written_in_s / 1e6;
            writeln!(f, "{course}: {events} events, {bytes_per_event:.2} bytes each, written at {written:.1} M/s")?;
            writeln!(
                f,
                "  {:<10}{:>8}{:>14}{:>10}{:>10}{:>8}{:>14}",
                "", "s", "processor, s", "M/s", "M/s/core", "MiB", "written, MB"
            )?;
            for Use { name, cost } in uses {
                let Cost { seconds, processor_seconds, peak_rss_mib, written_mb } = cost;
                let known =
                    |value: Option<f64>, places: usize| value.map_or_else(|| "?".into(), |v| format!("{v:.places$}"));
                let rate = |seconds: f64| *events as f64 / seconds / 1e6;
                writeln!(
                    f,
                    "  {name:<10}{seconds:>8.2}{:>14}{:>10.2}{:>10}{:>8}{written_mb:>14.1}",
                    known(*processor_seconds, 2),
                    rate(*seconds),
                    known(processor_seconds.map(rate), 2),
                    known(*peak_rss_mib, 0)
                )?;
            }
        }
        for Goal { what, found, limit, is_met } in self.goals() {
            let verdict = if is_met { "met" } else { "MISSED" };
            writeln!(f, "goal {what}: {verdict} ({found:.2}, aimed at {limit})")?;
        }
        Ok(())
    }
}
