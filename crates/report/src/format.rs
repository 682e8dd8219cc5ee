//! What a report can be written as.

use std::{
    borrow::Cow,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::present::{filtered, findings};
use mpiprobe_model::{Profile, analyse::ProfileOutput, filter::Filter};

use super::{
    Source,
    csv::csv,
    cube::cube,
    folded::folded,
    html::html,
    markdown::markdown,
    mpip::mpip,
    tables::{self, NAMES},
};

/// A format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Tables for people.
    #[default]
    Text,
    /// The sections and columns of mpiP, for scripts that parse these.
    Mpip,
    /// Findings and tables for a page of a project.
    Markdown,
    /// Figures for programs: one table (--table), or all of them in a new directory (-o DIR).
    Csv,
    /// Time in MPI as folded stacks, which flame graphs are drawn from.
    Folded,
    /// The profile as `--json` prints it, on one line.
    Json,
    /// For the Cube browser (.cubex).
    Cube,
    /// One page for a browser, which holds everything and asks no network.
    Html,
}

impl Format {
    /// That of files with such a name; `None`: their ending tells none, or one of CSV, which has a table in a file.
    pub fn of_path(path: &Path) -> Option<Self> {
        Some(match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "txt" => Self::Text,
            "mpip" => Self::Mpip,
            "md" => Self::Markdown,
            "folded" => Self::Folded,
            "json" => Self::Json,
            "cubex" => Self::Cube,
            "html" | "htm" => Self::Html,
            _ => return None,
        })
    }
}

/// What of a run is shown, and how.
#[derive(Clone, Debug, Default)]
pub struct ReportOptions {
    /// Rows that are shown; sums are of everything.
    pub filter: Option<Filter>,
    /// So many rows of each table for people at most.
    pub top: Option<usize>,
    /// Of CSV, this table, one of [`TABLES`].
    pub table: Option<&'static str>,
    /// Directories in which HTML looks for the source of call sites.
    pub sources: Vec<PathBuf>,
}

/// The tables of CSV.
pub const TABLES: [&str; 10] = NAMES;

/// Writes a report of the span that was chosen. Of CSV without a table, all of them one after the other.
pub fn write(source: &Source, format: Format, options: &ReportOptions, to: &mut dyn Write) -> io::Result<()> {
    let (all, filter) = (source.profile(), options.filter.as_ref());
    let shown = filtered(all, filter);
    match format {
        Format::Text => {
            let short = shortened(all, options.top);
            to.write_all(crate::present::profile(&short, &findings(all), filter).as_bytes())
        }
        Format::Mpip => mpip(&shown, to),
        Format::Markdown => markdown(source.name(), &shown, &findings(all), options.top, to),
        Format::Csv => {
            tables_as_csv(source, options).into_iter().try_for_each(|(_, text)| to.write_all(text.as_bytes()))
        }
        Format::Folded => folded(&shown, to),
        Format::Json => {
            serde_json::to_writer(&mut *to, &ProfileOutput::new(&shown, all))?;
            to.write_all(b"\n")
        }
        Format::Cube => cube(&shown, to),
        Format::Html => html(source, &options.sources, to),
    }
}

/// Each table that has rows, by name; or the one that was chosen, rows or not.
pub fn tables_as_csv(source: &Source, options: &ReportOptions) -> Vec<(&'static str, String)> {
    let shown = filtered(source.profile(), options.filter.as_ref());
    let chosen = tables::tables(&shown).into_iter().filter(|table| match options.table {
        Some(name) => table.name == name,
        None => !table.rows.is_empty(),
    });
    chosen.map(|table| (table.name, csv(&table))).collect()
}

/// With so many rows at most where rows are in the order of what they cost.
fn shortened(profile: &Profile, top: Option<usize>) -> Cow<'_, Profile> {
    let Some(top) = top else { return Cow::Borrowed(profile) };
    let mut short = profile.clone();
    short.functions.truncate(top);
    short.phases.truncate(top);
    short.layers.truncate(top);
    if let Some(traffic) = &mut short.traffic {
        traffic.partners.truncate(top);
    }
    Cow::Owned(short)
}
