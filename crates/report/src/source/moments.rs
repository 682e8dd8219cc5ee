//! A run, moment by moment.

use mpiprobe_model::{Profile, analyse::merge};

use super::{Part, SourceError, Span, timeline::Timeline};
use crate::present::recording::{At, Sums};

/// The moments of a span of a run. They are read when they are asked for: hours of them need no memory.
#[derive(Debug)]
pub struct Moments {
    name: String,
    notes: Vec<String>,
    parts: Vec<Part>,
    timeline: Timeline,
    /// The moments that were chosen: that before the span, if there is one, and the last one of it.
    before: Option<usize>,
    last: usize,
}

impl Moments {
    pub(super) fn of_part(part: Part) -> Self {
        let timeline = Timeline::of(std::slice::from_ref(&part));
        let last = timeline.len().saturating_sub(1);
        Self {
            name: part.name().to_owned(),
            notes: part.notes().to_vec(),
            parts: vec![part],
            timeline,
            before: None,
            last,
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
        Ok(Self { name, notes, parts, timeline, before, last })
    }

    /// What the run is called: the names of its files.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is wrong with the files, or missing in them, for people.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How many there are; at least 1. They are numbered from 0 on, oldest first, and with `from`, the first one is that from
    /// which the span goes on, so that differences of successive ones are all of it.
    pub fn count(&self) -> usize {
        self.last.saturating_sub(self.first()).saturating_add(1)
    }

    /// Time of a moment since the beginning of observation, ns.
    pub fn at_ns(&self, moment: usize) -> u64 {
        self.timeline.at_ns(self.place(moment))
    }

    /// "12:34:56 (+00:12)", UTC.
    pub fn describe(&self, moment: usize) -> String {
        self.timeline.describe(self.place(moment))
    }

    /// Number of the moment that is meant.
    pub fn find(&self, at: At) -> Result<usize, SourceError> {
        let place = self.timeline.find(at, &self.name)?;
        if (self.first()..=self.last).contains(&place) {
            Ok(place - self.first())
        } else {
            Err(self.timeline.none(&self.name))
        }
    }

    /// The profile of a moment: sums since the beginning of the observation. One that cannot be read is an error, and others may be
    /// whole.
    pub fn moment(&self, moment: usize) -> Result<Profile, SourceError> {
        self::moment(&self.parts, &self.timeline, self.place(moment))
    }

    /// What of a moment adds up over rows; this is read much faster, if it was recorded.
    pub fn sums(&self, moment: usize) -> Result<Sums, SourceError> {
        let mut sums = Vec::with_capacity(self.parts.len());
        for (part, place) in self.parts.iter().zip(self.timeline.places(&self.parts, self.place(moment))) {
            let Some(place) = place else { continue };
            sums.push(match part.sums(place) {
                Some(sums) => sums,
                None => Sums::of(&part.profile(place)?),
            });
        }
        Ok(Sums::merge(sums))
    }

    /// Whether these were recorded.
    pub(crate) fn has_sums(&self) -> bool {
        self.parts.iter().all(Part::has_sums)
    }

    /// What the profile of a moment takes as JSON, bytes, as far as that is known.
    pub fn bytes(&self, moment: usize) -> u64 {
        let places = self.timeline.places(&self.parts, self.place(moment));
        let parts = self.parts.iter().zip(places).filter_map(|(part, place)| Some(part.bytes(place?)));
        parts.fold(0, u64::saturating_add)
    }

    /// Whether the run has one moment only: there is nothing to be seen of the course of time.
    pub fn is_single(&self) -> bool {
        self.timeline.len() <= 1
    }

    /// Whether the span begins later than the observation does: then the first of them is the one that it goes on from.
    pub fn begin_later(&self) -> bool {
        self.before.is_some()
    }

    fn first(&self) -> usize {
        self.before.unwrap_or(0)
    }

    /// Among the moments of the whole run.
    fn place(&self, moment: usize) -> usize {
        self.first().saturating_add(moment).min(self.last)
    }
}

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
