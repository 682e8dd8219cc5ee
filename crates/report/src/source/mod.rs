//! One run, whatever it is kept in.

mod error;
mod json;
mod part;
mod timeline;

use std::path::PathBuf;

use crate::present::recording::At;
use mpiprobe_model::{
    Profile,
    analyse::{between, merge},
};

use self::timeline::Timeline;
pub use self::{error::SourceError, part::Part};

/// Which part of a run is meant; all of it without any of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// From the beginning up to this moment.
    pub at: Option<At>,
    /// What has happened since this moment; `None`: since the beginning.
    pub from: Option<At>,
    /// What had happened until this moment; `None`: until the last one.
    pub until: Option<At>,
}

/// One run: a recording, profiles as JSON, tables, or several of these that are of one job.
#[derive(Debug)]
pub struct Source {
    name: String,
    notes: Vec<String>,
    parts: Vec<Part>,
    timeline: Timeline,
    /// The moments that were chosen: that before the span, if there is one, and the last one of it.
    before: Option<usize>,
    last: usize,
    profile: Profile,
}

impl Source {
    /// Of files: recordings, and profiles as JSON. Several are parts of one job, of a node each.
    pub fn open(paths: &[PathBuf], span: Span) -> Result<Self, SourceError> {
        Self::of_parts(paths.iter().map(|path| Part::open(path)).collect::<Result<_, _>>()?, span)
    }

    /// Of a single profile, such as that of a directory of tables.
    pub fn of_profile(name: impl Into<String>, profile: Profile) -> Self {
        let part = Part::of_profile(name, profile.clone());
        let timeline = Timeline::of(std::slice::from_ref(&part));
        Self {
            name: part.name().to_owned(),
            notes: Vec::new(),
            parts: vec![part],
            timeline,
            before: None,
            last: 0,
            profile,
        }
    }

    /// Of parts of one job.
    pub fn of_parts(parts: Vec<Part>, span: Span) -> Result<Self, SourceError> {
        let timeline = Timeline::of(&parts);
        let name = parts.iter().map(Part::name).collect::<Vec<_>>().join(" + ");
        let several = parts.len() > 1;
        let note = |part: &Part, note: &String| if several { format!("{}: {note}", part.name()) } else { note.clone() };
        let notes = parts.iter().flat_map(|part| part.notes().iter().map(move |text| note(part, text))).collect();
        let (before, last) = timeline.chosen(span, &name)?;
        let until = moment(&parts, &timeline, last)?;
        let profile = match before {
            Some(before) => between(&moment(&parts, &timeline, before)?, &until),
            None => until,
        };
        Ok(Self { name, notes, parts, timeline, before, last, profile })
    }

    /// What it is called: the names of its files.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is wrong with the files, or missing in them, for people.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What has happened in the span that was chosen: without one, in all of the run.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// How many moments the span has; at least 1.
    pub fn moments_count(&self) -> usize {
        self.last.saturating_sub(self.first()).saturating_add(1)
    }

    /// The moments of the span, oldest first: each is read when it is asked for. Their profiles are sums since the beginning of the
    /// observation; with `from`, the first one is that from which the span goes on, so that differences of successive ones are all of
    /// it. A moment that cannot be read is an error, and those after it may be whole.
    pub fn moments(&self) -> Moments<'_> {
        Moments { source: self, next: self.first() }
    }

    /// Whether it has one moment only: there is nothing to be seen of the course of time.
    pub fn is_single(&self) -> bool {
        self.timeline.len() <= 1
    }

    /// Whether the span begins later than the observation does: then the first of the moments is the one that it goes on from.
    pub fn begins_later(&self) -> bool {
        self.before.is_some()
    }

    fn first(&self) -> usize {
        self.before.unwrap_or(0)
    }
}

/// Moments of a source: time since the beginning of observation, ns, and the profile.
#[derive(Debug)]
pub struct Moments<'a> {
    source: &'a Source,
    next: usize,
}

impl Iterator for Moments<'_> {
    type Item = Result<(u64, Profile), SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (source, index) = (self.source, self.next);
        if index > source.last {
            return None;
        }
        self.next += 1;
        let at_ns = source.timeline.at_ns(index);
        Some(moment(&source.parts, &source.timeline, index).map(|profile| (at_ns, profile)))
    }

    /// What is left out is not read.
    fn nth(&mut self, left_out: usize) -> Option<Self::Item> {
        self.next = self.next.saturating_add(left_out);
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.source.last + 1).saturating_sub(self.next);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Moments<'_> {}

/// All parts together at one moment.
fn moment(parts: &[Part], timeline: &Timeline, index: usize) -> Result<Profile, SourceError> {
    let mut profiles = Vec::with_capacity(parts.len());
    for (part, place) in parts.iter().zip(timeline.places(parts, index)) {
        if let Some(place) = place {
            profiles.push((part.name().to_owned(), part.profile(place)?));
        }
    }
    Ok(merge(profiles)?)
}

#[cfg(test)]
mod tests;
