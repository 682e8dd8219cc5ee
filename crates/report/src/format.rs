//! What a report can be written as.

use std::{
    borrow::Cow,
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::present::{TextOptions, filtered, findings};
use mpiprobe_model::{
    Profile,
    analyse::{self, ProfileOutput, over_communicators},
    filter::Filter,
};

use super::{
    Source,
    csv::csv,
    cube::cube,
    folded::folded,
    html::html,
    markdown::markdown,
    mpip::mpip,
    tables::{self, Content, NAMES},
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
    /// Names of communicators, with `*` and `?`: only what went over those is shown. Functions and ranks are as without.
    pub communicators: Vec<String>,
    /// How tables for people are laid out, and what rows of tables are ordered by.
    pub text: TextOptions,
    /// Of CSV, this table, one of [`TABLES`].
    pub table: Option<&'static str>,
    /// Directories in which HTML looks for the source of call sites.
    pub sources: Vec<PathBuf>,
}

/// The tables of CSV.
pub const TABLES: [&str; NAMES.len()] = NAMES;

/// Writes a report of the span that was chosen. Of CSV without a table, all of them one after the other.
pub fn write(source: &Source, format: Format, options: &ReportOptions, to: &mut dyn Write) -> io::Result<()> {
    let all = chosen(source.profile(), options);
    let shown = filtered(&all, options.filter.as_ref());
    let findings = || findings(source.profile());
    match format {
        Format::Text => to.write_all(text(source, options).as_bytes()),
        Format::Mpip => mpip(&shown, to),
        Format::Markdown => markdown(source.name(), &shown, &findings(), &options.text, to),
        Format::Csv => tables_as_csv(source, options, &mut |_, text| to.write_all(text.as_bytes())),
        Format::Folded => folded(&shown, to),
        Format::Json => {
            serde_json::to_writer(&mut *to, &ProfileOutput::new(&shown, &all))?;
            to.write_all(b"\n")
        }
        Format::Cube => cube(&shown, to),
        Format::Html => html(source, &shown, &options.sources, to),
    }
}

/// The report for people.
pub fn text(source: &Source, options: &ReportOptions) -> String {
    let all = chosen(source.profile(), options);
    crate::present::profile(&options.text, &all, &findings(source.profile()), options.filter.as_ref())
}

/// What went over the communicators that were chosen.
fn chosen<'a>(profile: &'a Profile, options: &ReportOptions) -> Cow<'a, Profile> {
    if options.communicators.is_empty() {
        return Cow::Borrowed(profile);
    }
    Cow::Owned(over_communicators(profile, &options.communicators))
}

/// Gives each table that has rows, with its name; or the one that was chosen, rows or not.
pub fn tables_as_csv<E>(
    source: &Source,
    options: &ReportOptions,
    to: &mut dyn FnMut(&'static str, String) -> Result<(), E>,
) -> Result<(), E> {
    let all = chosen(source.profile(), options);
    let shown = filtered(&all, options.filter.as_ref());
    let findings = analyse::findings(source.profile());
    for name in NAMES.into_iter().filter(|name| options.table.is_none_or(|wanted| wanted == *name)) {
        let table = tables::table(name, Content { profile: &shown, findings: &findings, by: options.text.by });
        if options.table.is_some() || !table.rows.is_empty() {
            to(name, csv(&table))?;
        }
    }
    Ok(())
}
