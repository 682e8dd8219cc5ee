//! The HTML report of a source.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use crate::page::html::{Finding, Page, Series, Sources};
use crate::present::{
    Progress, findings,
    units::{bytes, count},
};
use mpiprobe_model::Profile;

use super::Source;

/// Rows that are read for the course of time: more take longer than a few seconds, or more memory than a page should.
const MOST_ROWS: usize = 4_000_000;
/// More moments than these are no more to be seen than fewer.
const MOST_MOMENTS: usize = 1_200;

/// Writes the page of what is shown of a source, with lines around call sites from files in these directories.
pub(super) fn html(source: &Source, profile: &Profile, directories: &[PathBuf], to: &mut dyn Write) -> io::Result<()> {
    let series = if source.is_single() { None } else { Some(series(source)) };
    let sources = Sources::find(profile, directories)?;
    let findings: Vec<Finding> = findings(source.profile()).into_iter().map(Finding::from).collect();
    let mut notes = [source.notes(), sources.notes()].concat();
    notes.extend(uncertain(profile));
    let page = Page { profile, findings: &findings, notes: &notes, series: series.as_ref(), sources: &sources };
    to.write_all(page.html().map_err(io::Error::other)?.as_bytes())
}

/// What is not known exactly of the bytes that tables show.
fn uncertain(profile: &Profile) -> Vec<String> {
    let moved = || profile.functions.iter().filter_map(|function| function.all.traffic.as_ref());
    let at_most = moved().fold(0, |sum: u64, traffic| sum.saturating_add(traffic.received_at_most_bytes));
    let unknown = moved().fold(0, |sum: u64, traffic| sum.saturating_add(traffic.calls_of_unknown_bytes));
    let at_most = (at_most > 0).then(|| {
        format!(
            "of the bytes received, {} are an upper bound: the program ignores the status of what it receives",
            bytes(at_most)
        )
    });
    let unknown =
        (unknown > 0).then(|| format!("of {} calls it is not known how many bytes they moved", count(unknown)));
    at_most.into_iter().chain(unknown).collect()
}

/// The course of time: of all moments, or, if that would take long, of as many as can be read, evenly chosen; the last one is one of
/// them.
pub fn series(source: &Source) -> Series {
    let rows_of_rank = |rank: &mpiprobe_model::RankProfile| {
        1 + rank.functions.len() + rank.traffic.as_ref().map_or(0, |traffic| traffic.flows.len())
    };
    let profile = source.profile();
    let rows: usize = if source.has_sums() {
        profile.ranks.len() + profile.functions.len()
    } else {
        profile.ranks.iter().map(rows_of_rank).sum()
    };
    let all = source.count();
    let taken = (MOST_ROWS / rows.max(1)).clamp(2, MOST_MOMENTS).min(all);
    let mut series = Series::new(all, source.begin_later());
    let progress = Progress::new("reading moments", taken);
    for number in 0..taken {
        let index = if taken > 1 { number * (all - 1) / (taken - 1) } else { all - 1 };
        // A moment that cannot be read is left out: those after it may be whole.
        if let Ok(sums) = source.sums(index) {
            series.add(&sums);
        }
        progress.step();
    }
    series
}
