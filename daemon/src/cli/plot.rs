//! `mpiprobe plot`: pictures of runs that were kept.

use std::{ops::RangeInclusive, path::PathBuf};

use clap::{Args, ValueEnum};
use mpiprobe_report::page::plot::{self, CallsError, Measure, PlotError, PlotOptions};
use mpiprobe_report::present::{recording::At, say};
use mpiprobe_report::{Scaling, ScalingRun, Source, series};
use mpiprobe_trace::{ReadError, Span as TraceSpan, Trace as _};
use thiserror::Error;

use super::{
    output::FileMode,
    sources::{OpenError, SpanArguments, open_source},
    traces::{self, compared, is_trace, of_clocks},
};
use crate::session::{Outcome, ProfileTo, WriteError, create_file};

/// What is drawn of which runs.
#[derive(Args, Debug)]
pub struct Plot {
    #[arg(value_enum)]
    pub kind: PlotKind,
    /// A recording (--record), a profile as JSON (--json), or a directory of tables (run --output); of a timeline, a trace as well. Several
    /// are parts of one job, of a node each, but for scaling, where each is a run of its own.
    #[arg(required = true, value_name = "SOURCE")]
    pub sources: Vec<PathBuf>,
    /// The SVG file, which is new.
    #[arg(short = 'o', long, value_name = "FILE", required = true, help_heading = "Output")]
    pub output: PathBuf,
    #[command(flatten)]
    pub files: FileMode,
    /// Pixels.
    #[arg(long, value_name = "PIXELS", default_value_t = 800, value_parser = clap::value_parser!(u32).range(200..=10_000), help_heading = "Output")]
    pub width: u32,
    #[arg(long, value_name = "PIXELS", default_value_t = 560, value_parser = clap::value_parser!(u32).range(150..=10_000), help_heading = "Output")]
    pub height: u32,
    /// Amounts by their logarithms: colours of a matrix, bars of a histogram.
    #[arg(long, help_heading = "Output")]
    pub log: bool,
    /// Of a matrix, what went over the communicator of this name.
    #[arg(long, value_name = "NAME", help_heading = "What is shown")]
    pub comm: Option<String>,
    /// Of a matrix or a trace, these ranks, such as 0..15.
    #[arg(long, value_name = "FIRST..LAST", value_parser = ranks, help_heading = "What is shown")]
    pub ranks: Option<RangeInclusive<u32>>,
    /// Of a matrix, what its squares stand for.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, help_heading = "What is shown")]
    pub by: By,
    /// Of a histogram, the function; the default is the one with most time.
    #[arg(long, value_name = "NAME", help_heading = "What is shown")]
    pub function: Option<String>,
    /// Of scaling: each rank has as much to do in all runs; otherwise there is as much to do in all ranks together.
    #[arg(long, help_heading = "What is shown")]
    pub weak: bool,
    #[command(flatten)]
    pub span: SpanArguments,
    /// Take tables of other users in as well, who may have written anything into them.
    #[arg(long)]
    pub any_owner: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlotKind {
    /// Who sends how much to whom.
    Matrix,
    /// Time in MPI by group of functions over the moments of a recording; of a trace, the calls and messages of each rank.
    Timeline,
    /// How long calls of a function take.
    Histogram,
    /// Efficiencies of runs of different numbers of ranks.
    Scaling,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum By {
    #[default]
    Bytes,
    Calls,
    Time,
}

/// Why there is no picture.
#[derive(Debug, Error)]
pub enum PlotFailure {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Plot(#[from] PlotError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Trace(#[from] traces::TraceError),
    #[error(transparent)]
    Calls(#[from] CallsError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(
        "{0} is a trace, of which there is a timeline only; `mpiprobe export` writes its calls and messages for other programs"
    )]
    OnlyTimeline(String),
    #[error("of a trace, --from and --until are since its beginning, such as 1.5s or 200ms, and there is no --at")]
    NoMoments,
}

/// Reads the runs and draws.
pub(super) fn plot(asked: &Plot) -> Result<Outcome, PlotFailure> {
    // Whether it can be made is known before anything is read.
    let file = create_file(&ProfileTo { path: asked.output.clone(), mode: asked.files.file_mode })?;
    let options = PlotOptions {
        width: asked.width,
        height: asked.height,
        log: asked.log,
        communicator: asked.comm.clone(),
        ranks: asked.ranks.clone(),
    };
    let is_of_trace = asked.sources.first().is_some_and(|first| is_trace(first));
    let (svg, complete) = if is_of_trace {
        of_trace(asked, &options)?
    } else if asked.kind == PlotKind::Scaling {
        let mut complete = true;
        let run = |path| -> Result<ScalingRun, OpenError> {
            let source = open(asked, std::slice::from_ref(path))?;
            complete &= source.profile().complete;
            Ok(ScalingRun::of(source.profile()))
        };
        let runs: Vec<ScalingRun> = asked.sources.iter().map(run).collect::<Result<_, _>>()?;
        (plot::scaling(&Scaling::of(&runs, asked.weak), &options)?, complete)
    } else {
        let source = open(asked, &asked.sources)?;
        (draw(&source, asked, &options)?, source.profile().complete)
    };
    file.write(&svg).map_err(|error| WriteError::new(&asked.output, error))?;
    Ok(if complete { Outcome::Complete } else { Outcome::Incomplete })
}

/// The timeline of a trace, and whether nothing of it is missing.
fn of_trace(asked: &Plot, options: &PlotOptions) -> Result<(String, bool), PlotFailure> {
    if asked.kind != PlotKind::Timeline {
        let name = asked.sources.first().map_or_else(String::new, |path| path.display().to_string());
        return Err(PlotFailure::OnlyTimeline(name));
    }
    let since = |at: Option<At>| match at {
        None => Ok(None),
        Some(At::Since(ns) | At::Shown(ns)) => Ok(Some(ns)),
        Some(_) => Err(PlotFailure::NoMoments),
    };
    let (from, until) = (since(asked.span.from)?, since(asked.span.until)?);
    if asked.span.at.is_some() {
        return Err(PlotFailure::NoMoments);
    }
    let trace = traces::open(&asked.sources)?;
    trace.notes().iter().for_each(say);
    let clocks = compared(&trace)?;
    of_clocks(&clocks).iter().for_each(say);
    let begin_ns = clocks.span(&trace).from_ns;
    let at = |since: u64| begin_ns.saturating_add(since);
    let span = TraceSpan { from_ns: from.map_or(0, at), until_ns: until.map_or(u64::MAX, at) };
    let (svg, is_whole) = plot::calls(&trace, &clocks, span, options)?;
    Ok((svg, is_whole && trace.definitions().missing_calls() == 0 && trace.notes().is_empty()))
}

fn open(asked: &Plot, paths: &[PathBuf]) -> Result<Source, OpenError> {
    let source = open_source(paths, asked.span.into(), asked.any_owner)?;
    for note in source.notes() {
        say(format_args!("{}: {note}", source.name()));
    }
    Ok(source)
}

fn draw(source: &Source, asked: &Plot, options: &PlotOptions) -> Result<String, PlotError> {
    let profile = source.profile();
    match asked.kind {
        PlotKind::Matrix => {
            let measure = match asked.by {
                By::Bytes => Measure::Bytes,
                By::Calls => Measure::Calls,
                By::Time => Measure::Time,
            };
            plot::matrix(profile, measure, options)
        }
        PlotKind::Timeline => plot::timeline(profile, &series(source), options),
        PlotKind::Histogram => plot::histogram(profile, asked.function.as_deref(), options),
        PlotKind::Scaling => plot::scaling(&Scaling::of(&[ScalingRun::of(profile)], asked.weak), options),
    }
}

/// "0..15" or "0-15", both of which are meant, or "7".
fn ranks(text: &str) -> Result<RangeInclusive<u32>, String> {
    let (first, last) = traces::ends_of(text);
    let number =
        |text: &str| text.parse::<u32>().map_err(|_| format!("{text:?} is no rank: ranks are given as 0..15, or 7"));
    let (first, last) = (number(first)?, number(last)?);
    if first > last { Err(format!("there are no ranks from {first} to {last}")) } else { Ok(first..=last) }
}
