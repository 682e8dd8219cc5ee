//! `mpiprobe compare`: reads runs, and says what differs.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use clap::Args;
use mpiprobe_report::compare::{
    Basis, Comparison, Condition, ConditionError, Held, Options, Refused, Run, html, markdown, text,
};
use mpiprobe_report::page::html::{HtmlError, has_page};
use mpiprobe_report::present::{Output, OutputError, Progress, TextOptions, say};
use thiserror::Error;

use super::{
    output::FileMode,
    sources::{OpenError, SpanArguments, open_source},
    terminal::{show, width},
};
use crate::session::{ProfileTo, WriteError, create_file};

/// Runs, and how they are compared.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
#[derive(Args, Debug)]
pub struct Compare {
    /// Those before, or just one before and one after: each a recording (--record), a profile as JSON (--json), a directory of tables
    /// (run --output), or a directory with recordings of all nodes of a job.
    #[arg(required = true, value_name = "SOURCE")]
    pub sources: Vec<PathBuf>,
    /// Those after; without, the second of two.
    #[arg(long, value_name = "SOURCE", num_args = 1..)]
    pub to: Vec<PathBuf>,
    /// What times are divided by: `run`, `time` (the wall time observed), `call`, or `iteration=NAME`, where NAME is the function or the
    /// phase that there is one of in each iteration; the default is `run` if all runs were observed to their ends, else `time`.
    #[arg(long, value_name = "BASIS", value_parser = basis)]
    pub per: Option<Basis>,
    /// Exit with 4 if this holds, such as 'MPI_Allreduce > +10 %', 'elapsed > 5 %', 'Recv in rank 3 > 5 %' or 'site halo.c:91 > 5 %'; may
    /// be given several times. A change that may be chance does not count.
    #[arg(long, value_name = "CONDITION", value_parser = condition)]
    pub fail_if: Vec<Condition>,
    /// Also runs of different programs.
    #[arg(long)]
    pub anyway: bool,
    /// Of runs of different numbers of ranks: each rank has as much to do in all of them.
    #[arg(long)]
    pub weak: bool,
    /// How it is printed.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, help_heading = "Output")]
    pub format: Format,
    /// Write to a new FILE instead of standard output.
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub files: FileMode,
    /// Show so many rows of each table, those that differ most; with -v, all of them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Output")]
    pub top: Option<u32>,
    /// Text on a terminal as it is, not by $PAGER.
    #[arg(long, help_heading = "Output")]
    pub no_pager: bool,
    /// Of each run.
    #[command(flatten)]
    pub span: SpanArguments,
    /// Take tables of other users in as well, who may have written anything into them.
    #[arg(long)]
    pub any_owner: bool,
}

/// In which form a comparison is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    #[default]
    Text,
    /// GitHub's, for merge requests.
    Markdown,
    Json,
    /// One page for a browser, which holds everything and asks no network.
    Html,
}

/// Why there is no comparison.
#[derive(Debug, Error)]
pub enum CompareError {
    #[error("which of these runs are before, and which are after? put --to before the latter")]
    WhichSide,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Condition(#[from] ConditionError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("a page is no text that a terminal can show: write it to a file by -o FILE")]
    NoText,
    #[error(transparent)]
    NoPage(#[from] HtmlError),
}

impl Compare {
    /// Runs before and runs after; `None`: which is which is not said.
    fn sides(&self) -> Option<(&[PathBuf], &[PathBuf])> {
        match self.sources.as_slice() {
            sources if !self.to.is_empty() => Some((sources, &self.to)),
            [before, after] => Some((std::slice::from_ref(before), std::slice::from_ref(after))),
            _ => None,
        }
    }

    fn run(&self, path: &PathBuf) -> Result<Run, OpenError> {
        let source = open_source(std::slice::from_ref(path), self.span.into(), self.any_owner)?;
        for note in source.notes() {
            say(format_args!("{}: {note}", source.name()));
        }
        Ok(Run::of(&source))
    }
}

/// Prints the comparison; whether a condition holds.
pub(super) fn compare(asked: &Compare, verbose: bool) -> Result<bool, CompareError> {
    let (before, after) = asked.sides().ok_or(CompareError::WhichSide)?;
    if asked.format == Format::Html && !has_page() {
        return Err(HtmlError::NotBuilt.into());
    }
    if asked.format == Format::Html && asked.output.is_none() && io::stdout().is_terminal() {
        return Err(CompareError::NoText);
    }
    // Whether it can be made is known before anything is read.
    let to = asked.output.as_ref().map(|path| ProfileTo { path: path.clone(), mode: asked.files.file_mode });
    let file = to.as_ref().map(create_file).transpose()?;
    let progress = Progress::new("reading runs", before.len() + after.len());
    let read = |paths: &[PathBuf]| -> Result<Vec<Run>, OpenError> {
        let one = |path| asked.run(path).inspect(|_| progress.step());
        paths.iter().map(one).collect()
    };
    let (before, after) = (read(before)?, read(after)?);
    drop(progress);
    let how = Options { basis: asked.per.clone(), anyway: asked.anyway, is_weak: asked.weak };
    let comparison = Comparison::of(&before, &after, &how)?;
    let mut held = Vec::new();
    for condition in &asked.fail_if {
        held.extend(condition.held(&comparison)?);
    }
    let options = TextOptions {
        width: if file.is_none() { width() } else { None },
        top: asked.top.and_then(|top| usize::try_from(top).ok()),
        all: verbose,
        ..TextOptions::default()
    };
    let written = match asked.format {
        Format::Text => text(&options, &comparison),
        Format::Markdown => markdown(&options, &comparison),
        Format::Json => serde_json::to_string_pretty(&comparison).map_err(OutputError::Json)? + "\n",
        Format::Html => html(&comparison)?,
    };
    let shown = match file {
        Some(file) => {
            let path = file.path().to_owned();
            return match file.write(&written) {
                Ok(()) => Ok(told(&held)),
                Err(error) => Err(WriteError::new(&path, error).into()),
            };
        }
        None if asked.format == Format::Text => show(&written, !asked.no_pager),
        None => Output.text(&written),
    };
    match shown {
        // Whoever has closed the pipe has seen enough; what the exit status says does not depend on it.
        Ok(()) | Err(OutputError::Closed) => Ok(told(&held)),
        Err(error) => Err(error.into()),
    }
}

/// Names the conditions that hold; whether there are any.
fn told(held: &[Held]) -> bool {
    held.iter().for_each(say);
    !held.is_empty()
}

fn basis(text: &str) -> Result<Basis, String> {
    text.parse()
}

fn condition(text: &str) -> Result<Condition, String> {
    text.parse().map_err(|error: ConditionError| error.to_string())
}
