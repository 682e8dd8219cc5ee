//! `mpiprobe waits`: who has waited for whom, and why, in a trace.

use clap::Args;
use mpiprobe_model::{WAITS_SCHEMA, WaitStates};
use mpiprobe_replay::{analyse, threads};
use mpiprobe_report::present::{Output, OutputError, Progress, TextOptions, wait_states};
use mpiprobe_trace::{ReadError, Trace as _};
use serde::Serialize;
use thiserror::Error;

use super::{
    terminal::width,
    traces::{TraceArguments, TraceError, compared},
};
use crate::session::Outcome;

/// Which trace, and how it is shown.
#[derive(Args, Debug)]
pub struct Waits {
    #[command(flatten)]
    pub trace: TraceArguments,
    /// As JSON.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Show so many rows of each table at most.
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Output")]
    pub top: usize,
}

/// Why there are no wait states.
#[derive(Debug, Error)]
pub enum WaitsError {
    #[error(transparent)]
    Open(#[from] TraceError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl WaitsError {
    /// Whether what was asked for can never be.
    pub(super) fn is_wrong_usage(&self) -> bool {
        matches!(self, Self::Open(error) if error.is_wrong_usage())
    }
}

/// The same under the name of its form.
#[derive(Serialize)]
struct Named<'a> {
    schema: &'static str,
    mpiprobe_version: &'static str,
    #[serde(flatten)]
    states: &'a WaitStates,
}

/// Reads the trace and says who has waited.
pub(super) fn waits(asked: &Waits) -> Result<Outcome, WaitsError> {
    let files = asked.trace.open()?;
    let trace = asked.trace.selected(&files);
    let clocks = compared(&files)?;
    let span = asked.trace.span(clocks.span(&trace).from_ns);
    let events = usize::try_from(trace.event_count()).unwrap_or(usize::MAX);
    let states = {
        let progress = Progress::new("looking for wait states", events);
        analyse(&trace, &clocks, span, threads(), |events| progress.advance(events))?
    };
    if asked.json {
        let version = env!("CARGO_PKG_VERSION");
        Output.json(&Named { schema: WAITS_SCHEMA, mpiprobe_version: version, states: &states })?;
    } else {
        let options = TextOptions { width: width(), top: Some(asked.top), ..TextOptions::default() };
        Output.text(&wait_states(&states, &options))?;
    }
    // Whatever is cut off or damaged was said when the files were opened.
    let is_whole = states.complete && files.notes().is_empty();
    Ok(if is_whole { Outcome::Complete } else { Outcome::Incomplete })
}
