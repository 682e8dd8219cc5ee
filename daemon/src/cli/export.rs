//! `mpiprobe export`: a trace as files that other tools open.

use std::{
    cell::Cell,
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use mpiprobe_discover::files::{create_new, with_callers_rights};
use mpiprobe_export::{
    ExportError, Exported, Selection, chrome, csv,
    otf2::{self, Archive, ArchiveFile, Otf2Options},
    perfetto,
};
use mpiprobe_model::filter::Filter;
use mpiprobe_replay::threads;
use mpiprobe_report::present::{Output, OutputError, Progress, say, units};
use mpiprobe_trace::{Definitions, LocationId, ReadError, Span, Trace, store::TraceFiles};
use thiserror::Error;

use super::{
    output::{FileMode, filter},
    traces::{TraceArguments, TraceError, compared, of_clocks},
};
use crate::session::{Outcome, ProfileTo, WriteError, create_file};

/// Which trace, and what becomes of it.
#[derive(Args, Debug)]
pub struct Export {
    #[command(flatten)]
    pub trace: TraceArguments,
    /// What it is written as, and where: `otf2 DIR` for Vampir, Scalasca and others; `perfetto FILE` for ui.perfetto.dev; `parquet DIR` for
    /// DuckDB, Polars and pandas; `csv FILE`; `chrome FILE` for what reads nothing else. All are new; `csv -` is standard output.
    #[arg(long, num_args = 2, value_names = ["FORMAT", "OUT"], required = true)]
    pub to: Vec<String>,
    /// Of formats that show calls, only those for which this is not false; see docs/filter.md
    #[arg(long, value_name = "FILTER", value_parser = filter, help_heading = "What of it")]
    pub filter: Option<Filter>,
    /// Of OTF2, make up an MPI_Init and an MPI_Finalize of no length where a part of a run has none: without, Scalasca looks for no causes.
    #[arg(long, help_heading = "Output")]
    pub synthetic_ends: bool,
    #[command(flatten)]
    pub files: FileMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Otf2,
    Perfetto,
    Parquet,
    Csv,
    Chrome,
}

/// Why there is no export.
#[derive(Debug, Error)]
pub enum ExportFailure {
    #[error(transparent)]
    Open(#[from] TraceError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{} exists already, and no export overwrites a file: choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    #[error("cannot write the export to {}: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("{0:?} is none of the formats otf2, perfetto, parquet, csv and chrome")]
    Format(String),
    #[error("OTF2 has messages with both ends: take a part of them by --ranks, --from and --until, not by --filter")]
    FilteredOtf2,
    #[error("--synthetic-ends is of OTF2 only: other formats need none")]
    SyntheticEnds,
    #[error("this mpiprobe was built without Parquet (cargo feature `parquet`)")]
    NoParquet,
    #[error("only CSV goes to standard output: give a path in `--to {0}`, such as ./-")]
    NoStream(String),
}

impl From<WriteError> for ExportFailure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Exists(path) => Self::Exists(path),
            WriteError::Write { path, source } => Self::Write { path, source },
        }
    }
}

impl ExportFailure {
    /// Whether what was asked for can never be.
    pub(super) fn is_wrong_usage(&self) -> bool {
        match self {
            Self::Open(error) => error.is_wrong_usage(),
            Self::Format(_) | Self::FilteredOtf2 | Self::SyntheticEnds | Self::NoStream(_) => true,
            _ => false,
        }
    }
}

/// Reads the trace and writes it.
pub(super) fn export(asked: &Export) -> Result<Outcome, ExportFailure> {
    let (format, to) = match asked.to.as_slice() {
        [format, to] => match Format::from_str(format, true) {
            Ok(format) => (format, to),
            Err(_) => return Err(ExportFailure::Format(format.clone())),
        },
        _ => return Err(ExportFailure::Format(String::new())),
    };
    if format == Format::Otf2 && asked.filter.is_some() {
        return Err(ExportFailure::FilteredOtf2);
    }
    if format != Format::Otf2 && asked.synthetic_ends {
        return Err(ExportFailure::SyntheticEnds);
    }
    if to == "-" && format != Format::Csv {
        return Err(ExportFailure::NoStream(asked.to.join(" ")));
    }
    if format == Format::Parquet && !cfg!(feature = "parquet") {
        return Err(ExportFailure::NoParquet);
    }
    let files = asked.trace.open()?;
    let trace = asked.trace.selected(&files);
    let shown: Vec<LocationId> = trace.locations().collect();
    let has = |location: LocationId| shown.binary_search(&location).is_ok();
    let clocks = compared(&files)?;
    of_clocks(&clocks).iter().for_each(say);
    let selection = Selection {
        clocks: &clocks,
        span: asked.trace.span(clocks.span(&trace).from_ns),
        has: &has,
        filter: asked.filter.as_ref(),
        threads: threads(),
    };
    let passes = if format == Format::Csv { 1 } else { 2 };
    let exported = {
        let steps = usize::try_from(trace.event_count()).unwrap_or(usize::MAX).saturating_mul(passes);
        let progress = Progress::new("exporting", steps);
        write(format, Path::new(to), &trace, &selection, asked, &|events| progress.advance(events))?
    };
    Ok(tell(&exported, to, &files, asked))
}

fn write(
    format: Format,
    to: &Path,
    trace: &dyn Trace,
    selection: &Selection<'_>,
    asked: &Export,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Exported, ExportFailure> {
    let mode = asked.files.file_mode;
    match format {
        Format::Otf2 => {
            let options = Otf2Options { synthetic_ends: asked.synthetic_ends };
            one_directory(to, mode, |archive| {
                archive.subdirectory("traces")?;
                Ok(otf2::write(trace, selection, options, archive, progress)?)
            })
        }
        Format::Parquet => one_directory(to, mode, |directory| write_tables(directory, trace, selection, progress)),
        Format::Csv if to == Path::new("-") => {
            let written = Cell::new(None);
            Output.with(|out| keep(&written, csv::write(trace, selection, out, progress)))?;
            Ok(taken(written)?)
        }
        Format::Csv => one_file(to, mode, |out| csv::write(trace, selection, out, progress)),
        Format::Perfetto => one_file(to, mode, |out| perfetto::write(trace, selection, out, progress)),
        Format::Chrome => one_file(to, mode, |out| chrome::write(trace, selection, out, progress)),
    }
}

#[cfg(feature = "parquet")]
fn write_tables(
    directory: &Directory,
    trace: &dyn Trace,
    selection: &Selection<'_>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Exported, ExportFailure> {
    let mut calls = io::BufWriter::new(directory.file("calls.parquet")?);
    let exported = mpiprobe_export::parquet::write_calls(trace, selection, &mut calls, progress)?;
    calls.flush().map_err(ExportError::from)?;
    let mut messages = io::BufWriter::new(directory.file("messages.parquet")?);
    let written = mpiprobe_export::parquet::write_messages(trace, selection, &mut messages, progress)?;
    messages.flush().map_err(ExportError::from)?;
    let Exported { messages, between_clocks, loose_ends, .. } = written;
    Ok(Exported { messages, between_clocks, loose_ends, ..exported })
}

#[cfg(not(feature = "parquet"))]
fn write_tables(
    _: &Directory,
    _: &dyn Trace,
    _: &Selection<'_>,
    _: &(dyn Fn(u64) + Sync),
) -> Result<Exported, ExportFailure> {
    Err(ExportFailure::NoParquet)
}

type Written = Cell<Option<Result<Exported, ExportError>>>;

/// Hands on that writing has failed, and keeps what it was.
fn keep(written: &Written, result: Result<Exported, ExportError>) -> io::Result<()> {
    match result {
        Err(ExportError::Write(error)) => Err(error),
        Err(error) => {
            written.set(Some(Err(error)));
            Err(io::ErrorKind::InvalidData.into())
        }
        Ok(exported) => {
            written.set(Some(Ok(exported)));
            Ok(())
        }
    }
}

fn taken(written: Written) -> Result<Exported, ExportError> {
    written.into_inner().unwrap_or_else(|| Ok(Exported::default()))
}

/// A new file, which is gone again if it cannot be written whole.
fn one_file(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> Result<Exported, ExportError>,
) -> Result<Exported, ExportFailure> {
    let file = create_file(&ProfileTo { path: path.to_owned(), mode })?;
    let written = Cell::new(None);
    match file.write_with(|to| keep(&written, write(to))) {
        Err(error) => match written.into_inner() {
            Some(Err(error)) => Err(error.into()),
            _ => Err(WriteError::new(path, error).into()),
        },
        Ok(()) => Ok(taken(written)?),
    }
}

/// A new directory, which is gone again if what is in it cannot be written whole.
fn one_directory(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&Directory) -> Result<Exported, ExportFailure>,
) -> Result<Exported, ExportFailure> {
    let directory = Directory::create(path, mode)?;
    write(&directory).map_err(|error| {
        // That there are fragments left is said by what is there.
        let _ = with_callers_rights(|| fs::remove_dir_all(path));
        match error {
            ExportFailure::Export(ExportError::Write(source)) => WriteError::new(path, source).into(),
            error => error,
        }
    })
}

/// A new directory for an export.
struct Directory {
    path: PathBuf,
    mode: u32,
}

impl Directory {
    fn create(path: &Path, mode: u32) -> Result<Self, WriteError> {
        let directory = Self { path: path.to_owned(), mode };
        directory.make(path)?;
        Ok(directory)
    }

    /// Whoever may read the files may enter.
    fn make(&self, path: &Path) -> Result<(), WriteError> {
        let mode = self.mode | (self.mode & 0o444) >> 2;
        let result = with_callers_rights(|| DirBuilder::new().mode(mode).create(path));
        result.map_err(|error| WriteError::new(path, error))
    }

    fn subdirectory(&self, name: &str) -> Result<(), WriteError> {
        self.make(&self.path.join(name))
    }

    fn file(&self, name: &str) -> Result<File, WriteError> {
        let path = self.path.join(name);
        create_new(&path, self.mode).map_err(|error| WriteError::new(&path, error))
    }
}

impl Archive for Directory {
    fn create(&self, file: ArchiveFile) -> io::Result<Box<dyn Write + '_>> {
        let file = create_new(&self.path.join(file.path()), self.mode)?;
        Ok(Box::new(io::BufWriter::new(file)))
    }
}

/// Says what was written, and what was not.
fn tell(exported: &Exported, to: &str, files: &TraceFiles, asked: &Export) -> Outcome {
    let count = units::count;
    if to != "-" {
        let messages = match exported.messages {
            0 => String::new(),
            messages => format!(" and {} messages", count(messages)),
        };
        say(format_args!("{to} has {} calls{messages}", count(exported.calls)));
    }
    if exported.calls == 0 && files.event_count() > 0 {
        let Span { from_ns, until_ns } = files.span();
        let (events, length) = (count(files.event_count()), units::ns(until_ns.saturating_sub(from_ns)));
        say(format_args!(
            "nothing was asked for that is in the trace: it has {events} events in {length} (--from, --until, --ranks, --filter)"
        ));
    }
    let definitions = files.definitions();
    let notes = [
        (exported.cut_calls, "calls were left out that begin before the span or end behind it"),
        (
            exported.loose_ends,
            "sends, receives and collective calls have no other end in it, and were left out as such",
        ),
        (exported.between_clocks, "messages were left out: nothing compares the clocks of their nodes"),
        (exported.damaged, "parts of the trace are damaged"),
        (definitions.missing_calls(), "calls are missing in the trace"),
        (
            definitions.calls_without_room(),
            "calls that only asked in vain (MPI_Test, MPI_Iprobe) are missing in the trace: there was no room for them while it was recorded",
        ),
    ];
    for (number, what) in notes.into_iter().filter(|&(number, _)| number > 0) {
        say(format_args!("{} {what}", count(number)));
    }
    // Who asks for a part by time, ranks or a filter cuts messages.
    let is_part = asked.trace.is_part() || asked.filter.is_some();
    // What is wrong with the files was said when they were opened.
    let is_whole = is_whole(exported, definitions, is_part) && files.notes().is_empty();
    if is_whole { Outcome::Complete } else { Outcome::Incomplete }
}

/// Whether nothing is missing that was asked for.
fn is_whole(exported: &Exported, definitions: &Definitions, is_part: bool) -> bool {
    exported.damaged == 0
        && exported.between_clocks == 0
        && definitions.missing_calls() == 0
        && definitions.calls_without_room() == 0
        && (is_part || exported.loose_ends == 0)
}

#[cfg(test)]
mod tests {
    use mpiprobe_trace::{HandMade, LeftOut};

    use super::*;

    #[test]
    fn what_there_was_no_room_for_is_missing_and_what_was_not_wanted_is_not() {
        let with = |left_out: LeftOut| {
            let mut made = HandMade::of_ranks(2);
            if let Some(location) = made.definitions.locations.first_mut() {
                location.losses.left_out = left_out;
            }
            is_whole(&Exported::default(), &made.definitions, false)
        };
        let unwanted = LeftOut { by_function: 1, by_communicator: 1, by_duration: 1, by_time: 1, by_pressure: 0 };
        assert!(with(unwanted));
        assert!(!with(LeftOut { by_pressure: 1, ..LeftOut::default() }));
    }

    #[test]
    fn half_messages_are_missing_but_of_a_part() {
        let made = HandMade::of_ranks(2);
        let half = Exported { loose_ends: 1, ..Exported::default() };
        assert!(!is_whole(&half, &made.definitions, false));
        assert!(is_whole(&half, &made.definitions, true));
    }

    #[test]
    fn a_directory_that_cannot_be_filled_is_gone_again() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("out");
        let full = |directory: &Directory| {
            directory.subdirectory("traces")?;
            directory.file("one")?;
            Err(ExportError::Write(io::ErrorKind::StorageFull.into()).into())
        };
        let said = one_directory(&to, 0o600, full).unwrap_err().to_string();
        assert!(said.starts_with(&format!("cannot write the export to {}: ", to.display())), "{said}");
        assert!(!to.exists());
    }
}
