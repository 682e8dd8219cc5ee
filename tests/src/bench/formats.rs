//! What reports of a large job that was recorded cost: one after the other in every format, from the program's start to its end.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use mpiprobe_discover::files::PRIVATE;
use mpiprobe_model::EndReason;
use mpiprobe_report::present::recording::{RecordingError, Writer};
use serde::Serialize;
use tempfile::TempDir;
use thiserror::Error;

use super::cost::{Cost, CostError};
use crate::{
    ProfilerError,
    synthetic::{Synthetic, earlier},
};

/// Seconds that a report may take.
const GOAL_SECONDS: f64 = 2.0;
/// MiB that it may take.
const GOAL_RSS: f64 = 300.0;

/// What `--format` is, and the ending of the file.
const FORMATS: [(&str, &str); 8] = [
    ("text", "txt"),
    ("mpip", "mpip"),
    ("markdown", "md"),
    ("csv", "csv"),
    ("folded", "folded"),
    ("json", "json"),
    ("cube", "cubex"),
    ("html", "html"),
];

/// How large the job is, and how often each report is made.
#[derive(Debug, Clone, Copy)]
pub struct FormatsEffort {
    pub ranks: u32,
    pub functions: usize,
    /// In how many places each function is called that moves data.
    pub places: u32,
    pub moments: u64,
    pub repetitions: u32,
}

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum FormatsError {
    #[error("the recording to be reported on cannot be made: {0}")]
    Recording(#[from] RecordingError),
    #[error("{0}")]
    File(#[from] io::Error),
    #[error(transparent)]
    Profiler(#[from] ProfilerError),
    #[error("mpiprobe report --format {format}: {error}")]
    Report { format: &'static str, error: CostError },
}

/// One format.
#[derive(Debug, Serialize)]
struct Row {
    format: &'static str,
    #[serde(flatten)]
    cost: Cost,
}

#[derive(Debug, Serialize)]
pub struct FormatsReport {
    ranks: u32,
    functions: usize,
    call_sites: usize,
    moments: u64,
    recording_mb: f64,
    rows: Vec<Row>,
}

/// Makes a recording and has `mpiprobe` report on it.
pub fn run(mpiprobe: &Path, effort: FormatsEffort) -> Result<FormatsReport, FormatsError> {
    let folder = tempfile::tempdir()?;
    let recording = folder.path().join("job.rec");
    let call_sites = record(&recording, effort)?;
    let rows = FORMATS.into_iter().map(|format| measure(mpiprobe, &recording, format, &folder, effort.repetitions));
    Ok(FormatsReport {
        ranks: effort.ranks,
        functions: effort.functions,
        call_sites,
        moments: effort.moments,
        recording_mb: fs::metadata(&recording)?.len() as f64 / 1e6,
        rows: rows.collect::<Result<_, _>>()?,
    })
}

/// A moment a second. The first and the last are whole; of those between, all that is read of them is: what adds up over functions and
/// ranks. The number of call sites.
fn record(path: &Path, effort: FormatsEffort) -> Result<usize, FormatsError> {
    let job = Synthetic {
        ranks: effort.ranks,
        functions: effort.functions,
        places: effort.places,
        trouble: false,
        ..Synthetic::LARGE
    };
    let mut writer = Writer::create(path, PRIVATE, u64::MAX)?;
    writer.add(&job.profile(1, None))?;
    let last = job.profile(effort.moments, Some(EndReason::TargetsEnded));
    for second in 2..effort.moments {
        writer.add(&earlier(&last, second, effort.moments))?;
    }
    writer.add(&last)?;
    writer.end(0)?;
    let flows = last.ranks.first().and_then(|rank| rank.traffic.as_ref()).map(|traffic| &traffic.flows);
    let mut sites: Vec<_> = flows.into_iter().flatten().map(|flow| (flow.function, flow.site.as_deref())).collect();
    sites.sort_unstable();
    sites.dedup();
    Ok(sites.len())
}

fn measure(
    mpiprobe: &Path,
    recording: &Path,
    (format, ending): (&'static str, &str),
    folder: &TempDir,
    repetitions: u32,
) -> Result<Row, FormatsError> {
    let output = folder.path().join("report").with_extension(ending);
    let cost = Cost::of(repetitions, &output, || {
        let mut command = Command::new(mpiprobe);
        command.arg("report").arg(recording).args(["--format", format, "-o"]).arg(&output);
        command
    });
    Ok(Row { format, cost: cost.map_err(|error| FormatsError::Report { format, error })? })
}

impl fmt::Display for FormatsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ranks, functions, call_sites, moments, recording_mb, rows } = self;
        writeln!(
            f,
            "{ranks} ranks x {functions} functions x {call_sites} call sites x {moments} moments ({recording_mb:.0} MB)"
        )?;
        writeln!(f, "{:<10}{:>8}{:>14}{:>8}{:>14}", "format", "s", "processor, s", "MiB", "written, MB")?;
        for Row { format, cost } in rows {
            let peak = cost.peak_rss_mib.map_or_else(|| "?".into(), |mib| format!("{mib:.0}"));
            let processor = cost.processor_seconds.map_or_else(|| "?".into(), |seconds| format!("{seconds:.2}"));
            let Cost { seconds, written_mb, .. } = cost;
            writeln!(f, "{format:<10}{seconds:>8.2}{processor:>14}{peak:>8}{written_mb:>14.1}")?;
        }
        let verdict = |met| if met { "met" } else { "MISSED" };
        let seconds = rows.iter().map(|row| row.cost.seconds).fold(0.0, f64::max);
        let peak = rows.iter().filter_map(|row| row.cost.peak_rss_mib).fold(0.0, f64::max);
        writeln!(f, "goal any format <= {GOAL_SECONDS} s: {} ({seconds:.2} s)", verdict(seconds <= GOAL_SECONDS))?;
        writeln!(f, "goal memory <= {GOAL_RSS} MiB: {} ({peak:.0} MiB)", verdict(peak <= GOAL_RSS))
    }
}
