//! How much later a command starts, and how much later its end is known, because `mpiprobe run` counts it.
//!
//! The command is this program, which puts down when it has begun, with a program that uses MPI as its argument: as it is with a launcher,
//! by that alone is known what has to be under probes before anything runs.

use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use mpiprobe_observe::monotonic_ns;
use serde::Serialize;

use super::{BenchError, error::file_error, figures};
use crate::compile::executable;
use crate::{JobError, Mpi, profiler, program};

/// Of what eBPF delays the start by, at most, ms.
const GOAL_MS: f64 = 300.0;
/// Who counts; nobody first, with whom the others are compared.
const ENGINES: [Option<&str>; 3] = [None, Some("wrapper"), Some("ebpf")];

/// Of one MPI.
#[derive(Debug, Serialize)]
pub struct StartReport {
    mpi: String,
    rows: Vec<Row>,
    /// What eBPF delays the start by: the middle one, ms.
    ebpf_delays_ms: f64,
    met: bool,
}

/// By one engine, each run, ms.
#[derive(Debug, Default, Serialize)]
struct Row {
    engine: Option<&'static str>,
    /// From the start of the process to the first line of the command's program.
    start_ms: Vec<f64>,
    /// From there to the end of the process.
    end_ms: Vec<f64>,
}

/// Is a command that puts down when it began, as ns of the monotonic clock.
pub fn stamp(file: &Path) -> io::Result<()> {
    fs::write(file, monotonic_ns().to_string())
}

/// So many runs by each engine, in turn. `command` is what this program is started with to [stamp] a file that is its next argument.
pub fn run(mpi: Mpi, runs: u32, command: &str) -> Result<StartReport, BenchError> {
    let target = executable(mpi, program::RING).map_err(JobError::from)?;
    let folder = tempfile::tempdir().map_err(|source| file_error("making", env::temp_dir(), source))?;
    let file = folder.path().join("began");
    let own = env::current_exe().map_err(|source| file_error("finding", "this program", source))?;
    let mut rows = ENGINES.map(|engine| Row { engine, ..Row::default() });
    for _ in 0..runs {
        for row in &mut rows {
            let mut started = match row.engine {
                None => Command::new(&own),
                Some(engine) => {
                    let mut run = Command::new(profiler::binary()?);
                    run.args(["run", "--engine", engine, "--"]).arg(&own);
                    run
                }
            };
            started.arg(command).arg(&file).arg(&target);
            let before = monotonic_ns();
            let output = started.stdin(Stdio::null()).output();
            let after = monotonic_ns();
            let output = output.map_err(|source| BenchError::Start { program: format!("{:?}", row.engine), source })?;
            let began = fs::read_to_string(&file).map_err(|source| file_error("reading", &file, source))?;
            let began: u64 = began.parse().unwrap_or(0);
            if !output.status.success() || !(before..=after).contains(&began) {
                let output = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(BenchError::Target { reason: format!("by {:?}", row.engine), output });
            }
            row.start_ms.push(ms(began - before));
            row.end_ms.push(ms(after - began));
        }
    }
    let [bare, _, ebpf] = &rows;
    let ebpf_delays_ms = middle(&ebpf.start_ms) - middle(&bare.start_ms);
    Ok(StartReport { mpi: mpi.to_string(), rows: rows.into(), ebpf_delays_ms, met: ebpf_delays_ms <= GOAL_MS })
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn middle(values: &[f64]) -> f64 {
    figures::middle(values.iter().copied()).unwrap_or(f64::NAN)
}

impl fmt::Display for StartReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: ms until a command runs, and from its end on (middle and worst of the runs)", self.mpi)?;
        for row in &self.rows {
            let worst = |values: &[f64]| values.iter().copied().fold(f64::NAN, f64::max);
            writeln!(
                f,
                "  {:<8} {:>8.1} {:>8.1}    {:>8.1} {:>8.1}",
                row.engine.unwrap_or("bare"),
                middle(&row.start_ms),
                worst(&row.start_ms),
                middle(&row.end_ms),
                worst(&row.end_ms)
            )?;
        }
        let verdict = if self.met { "met" } else { "NOT MET" };
        write!(f, "  eBPF starts it {:.0} ms later; goal {GOAL_MS:.0} ms: {verdict}", self.ebpf_delays_ms)
    }
}
