//! One run of a program.

use std::collections::{BTreeMap, BTreeSet};

use mpiprobe_discover::printable;
use mpiprobe_model::{EndReason, Profile};

use super::measure::Amounts;
use crate::{ScalingRun, Source};

/// So many moments of a run, evenly over it, tell how much it varies.
const MOMENTS: usize = 13;

/// What is known of a run: its figures, and what program it was of.
#[derive(Clone, Debug)]
pub struct Run {
    pub(super) name: String,
    pub(super) amounts: Amounts,
    /// Between moments.
    pub(super) spans: Vec<Amounts>,
    pub(super) facts: Facts,
    pub(super) scaling: ScalingRun,
    pub(super) is_whole: bool,
    pub(super) incomplete: Vec<String>,
}

/// What two runs of one program have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) programs: BTreeSet<String>,
    pub(super) libraries: BTreeSet<String>,
    pub(super) engine: &'static str,
    pub(super) hosts: BTreeSet<String>,
    pub(super) functions: BTreeSet<&'static str>,
    pub(super) has_traffic: bool,
}

impl Facts {
    fn of(profile: &Profile) -> Self {
        let base = |path: &str| printable(path.rsplit('/').next().unwrap_or(path).as_bytes());
        Self {
            programs: profile.ranks.iter().map(|rank| base(&rank.executable)).collect(),
            libraries: profile
                .engine
                .libraries
                .iter()
                .map(|library| printable(library.implementation.as_bytes()))
                .collect(),
            engine: profile.engine.engine,
            hosts: profile.ranks.iter().map(|rank| printable(rank.host.as_bytes())).collect(),
            functions: profile.functions.iter().filter(|row| row.all.calls > 0).map(|row| row.all.name).collect(),
            has_traffic: profile.traffic.is_some(),
        }
    }
}

impl Run {
    /// Of what was chosen of a run, with some of its moments.
    pub fn of(source: &Source) -> Self {
        let count = source.count();
        // A damaged moment only makes the parts longer.
        let moments = evenly(count).filter_map(|moment| source.moment(moment).ok());
        let mut run = Self::new(source.name(), source.profile());
        run.is_whole &= !source.begin_later();
        if source.begin_later() {
            run.with_moments(source.moment(0).into_iter().chain(moments), true)
        } else {
            run.with_moments(moments, false)
        }
    }

    /// `name`: how the user has called it.
    pub fn new(name: &str, profile: &Profile) -> Self {
        Self {
            name: printable(name.as_bytes()),
            amounts: Amounts::of(profile),
            spans: Vec::new(),
            facts: Facts::of(profile),
            scaling: ScalingRun::of(profile),
            is_whole: profile.end == Some(EndReason::TargetsEnded),
            incomplete: profile.incomplete_because.iter().map(|why| printable(why.as_bytes())).collect(),
        }
    }

    /// The same with profiles of moments in the order of their times, each since the beginning: from them it is known how much a figure
    /// varies within the run. If it `goes_on`, the first one is that from which the run goes on.
    #[must_use]
    pub fn with_moments(mut self, moments: impl IntoIterator<Item = Profile>, goes_on: bool) -> Self {
        let mut before = Amounts::default();
        for (place, moment) in moments.into_iter().enumerate() {
            let now = Amounts::of(&moment);
            let span = now.since(&before);
            if span.wall_ns > 0.0 && (place > 0 || !goes_on) {
                self.spans.push(span);
            }
            before = now;
        }
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ranks that were observed.
    pub fn ranks(&self) -> usize {
        self.amounts.ranks
    }

    /// Each part of the run as if all of it had been so.
    pub(super) fn parts(&self) -> Vec<Amounts> {
        let whole = self.amounts.wall_ns;
        let parts = self.spans.iter().map(|span| {
            let factor = whole / span.wall_ns;
            let scaled = span.by_subject.iter().map(|(subject, amount)| {
                let calls = amount.calls.map(|calls| calls * factor);
                (subject.clone(), super::measure::Amount { time_ns: amount.time_ns * factor, calls, ..*amount })
            });
            Amounts {
                by_subject: scaled.collect(),
                wall_ns: whole,
                elapsed_ns: self.amounts.elapsed_ns,
                ranks: span.ranks,
                opened: span
                    .opened
                    .iter()
                    .map(|(name, opened)| (name.clone(), opened * factor))
                    .collect::<BTreeMap<_, _>>(),
            }
        });
        parts.collect()
    }
}

/// Numbers of moments that are looked at, of so many.
fn evenly(moments: usize) -> impl Iterator<Item = usize> {
    let wanted = moments.min(MOMENTS);
    (1..=wanted).map(move |part| (part * moments).div_ceil(wanted.max(1)).saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_taken_evenly_and_the_last_is_among_them() {
        assert_eq!(evenly(5).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        let of_many: Vec<usize> = evenly(600).collect();
        assert_eq!((of_many.len(), of_many.first(), of_many.last()), (MOMENTS, Some(&46), Some(&599)));
        assert!(of_many.windows(2).all(|pair| (46..=47).contains(&(pair[1] - pair[0]))));
        assert_eq!(evenly(0).count(), 0);
    }
}
