//! `mpiprobe report`: a run that was kept, in one of several formats.

use std::{
    fs::DirBuilder,
    io::{self, IsTerminal as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use clap::Args;
use mpiprobe_discover::with_callers_rights;
use mpiprobe_model::filter::Filter;
use mpiprobe_report::page::html::{HtmlError, has_page};
use mpiprobe_report::present::{Output, OutputError, TextOptions, say};
use mpiprobe_report::{By, Format, ReportOptions, Source, TABLES, tables_as_csv, text, write};
use thiserror::Error;

use super::{
    output::{FileMode, filter},
    sources::{OpenError, SpanArguments, open_source},
    terminal::{show, width},
};
use crate::session::{Outcome, ProfileTo, WriteError, create_file};

/// Which run, and what becomes of it.
#[derive(Args, Debug)]
pub struct Report {
    /// A recording (--record), a profile as JSON (--json), or a directory of tables (run --output), whose job may still run;
    /// several are parts of one job, of a node each.
    #[arg(required = true, value_name = "SOURCE")]
    pub sources: Vec<PathBuf>,
    /// What it is written as.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// As JSON: short for --format json.
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    pub json: bool,
    /// Of CSV, only this table.
    #[arg(long, value_name = "TABLE", value_parser = TABLES, help_heading = "Output")]
    pub table: Option<String>,
    /// Show so many rows of each table for people at most; with -v, all of them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Output")]
    pub top: Option<u32>,
    /// Show rows with most of this first: ranks, functions, call sites, communicators and pairs, of text, Markdown and CSV.
    #[arg(long, value_name = "WHAT", value_enum, help_heading = "Output")]
    pub by: Option<By>,
    /// Show only what went over communicators whose name matches, such as `world`, `row*`, `split#*`; may be given several times.
    /// Functions and ranks are shown as without.
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub comm: Vec<String>,
    /// Text on a terminal as it is, not by $PAGER.
    #[arg(long, help_heading = "Output")]
    pub no_pager: bool,
    /// Of HTML, show the source around call sites from files below DIR, that you may read and whose name is theirs alone there.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub source: Vec<PathBuf>,
    /// Show only rows for which this is not false; see docs/filter.md
    #[arg(long, value_name = "FILTER", value_parser = filter, help_heading = "Output")]
    pub filter: Option<Filter>,
    /// Write to a new FILE instead of standard output; of CSV without --table, files in a new directory.
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub files: FileMode,
    #[command(flatten)]
    pub span: SpanArguments,
    /// Take tables of other users in as well, who may have written anything into them.
    #[arg(long)]
    pub any_owner: bool,
}

/// Why there is no report.
#[derive(Debug, Error)]
pub enum ReportError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("CSV has one table in a file: choose one by --table ({}), or a directory for all by -o DIR", TABLES.join(", "))]
    ManyTables,
    #[error("this format is no text that a terminal can show: write it to a file by -o FILE")]
    NoText,
    #[error(transparent)]
    NoPage(#[from] HtmlError),
}

/// Reads the run and writes its report.
pub(super) fn report(asked: &Report, verbose: bool) -> Result<Outcome, ReportError> {
    let format = if asked.json { Format::Json } else { asked.format };
    let options = ReportOptions {
        filter: asked.filter.clone(),
        communicators: asked.comm.clone(),
        text: TextOptions {
            width: if asked.output.is_none() { width() } else { None },
            top: asked.top.and_then(|top| usize::try_from(top).ok()),
            all: verbose,
            by: asked.by,
        },
        table: asked.table.as_deref().and_then(|name| TABLES.into_iter().find(|table| *table == name)),
        sources: asked.source.clone(),
    };
    if format == Format::Html && !has_page() {
        return Err(HtmlError::NotBuilt.into());
    }
    match (&asked.output, format, options.table) {
        (None, Format::Csv, None) => Err(ReportError::ManyTables),
        (None, Format::Cube | Format::Html, _) if io::stdout().is_terminal() => Err(ReportError::NoText),
        (Some(directory), Format::Csv, None) => write_tables(asked, directory, &options),
        (path, ..) => write_report(asked, path.as_deref(), format, &options),
    }
}

fn open(asked: &Report) -> Result<Source, OpenError> {
    let source = open_source(&asked.sources, asked.span.into(), asked.any_owner)?;
    for note in source.notes() {
        say(format_args!("{}: {note}", source.name()));
    }
    Ok(source)
}

fn outcome(source: &Source) -> Outcome {
    if source.profile().complete { Outcome::Complete } else { Outcome::Incomplete }
}

fn write_report(
    asked: &Report,
    path: Option<&Path>,
    format: Format,
    options: &ReportOptions,
) -> Result<Outcome, ReportError> {
    let to = path.map(|path| ProfileTo { path: path.to_owned(), mode: asked.files.file_mode });
    // Whether it can be made is known before anything is read.
    let file = to.as_ref().map(create_file).transpose()?;
    let source = open(asked)?;
    match file {
        Some(file) => {
            let path = file.path().to_owned();
            file.write_with(|to| write(&source, format, options, to)).map_err(|error| WriteError::new(&path, error))?;
        }
        None if format == Format::Text => show(&text(&source, options), !asked.no_pager)?,
        None => Output.with(|to| write(&source, format, options, to))?,
    }
    Ok(outcome(&source))
}

/// A file for each table.
fn write_tables(asked: &Report, directory: &Path, options: &ReportOptions) -> Result<Outcome, ReportError> {
    let source = open(asked)?;
    let failed = |error| WriteError::new(directory, error);
    with_callers_rights(|| DirBuilder::new().mode(0o700).create(directory)).map_err(failed)?;
    tables_as_csv(&source, options, &mut |name, text| -> Result<(), WriteError> {
        let path = directory.join(name).with_extension("csv");
        let file = create_file(&ProfileTo { path: path.clone(), mode: asked.files.file_mode })?;
        file.write(&text).map_err(|error| WriteError::new(&path, error))
    })?;
    Ok(outcome(&source))
}
