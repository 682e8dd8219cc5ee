//! One run of a program.

use std::collections::{BTreeMap, BTreeSet};

use mpiprobe_discover::printable;
use mpiprobe_model::{EndReason, Profile};

use super::measure::Amounts;

/// So many moments of a recording, evenly over it, are wanted by [`Run::with_moments`].
pub const MOMENTS: usize = 13;

/// What is known of a run: its figures, and what program it was of.
#[derive(Clone, Debug)]
pub struct Run {
    pub(super) name: String,
    pub(super) amounts: Amounts,
    /// Between moments.
    pub(super) spans: Vec<Amounts>,
    pub(super) facts: Facts,
    pub(super) useful_ns: f64,
    /// POP's; `None`: not known.
    pub(super) efficiency: Option<mpiprobe_model::Efficiency>,
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
    /// `name`: how the user has called it.
    pub fn new(name: &str, profile: &Profile) -> Self {
        let amounts = Amounts::of(profile);
        let useful_ns = amounts
            .by_subject
            .iter()
            .find(|(subject, _)| subject.section == super::Section::Whole && subject.name == "computing")
            .map_or(0.0, |(_, amount)| amount.time_ns);
        Self {
            name: printable(name.as_bytes()),
            amounts,
            spans: Vec::new(),
            facts: Facts::of(profile),
            useful_ns,
            efficiency: profile.totals.efficiency,
            is_whole: profile.end == Some(EndReason::TargetsEnded),
            incomplete: profile.incomplete_because.iter().map(|why| printable(why.as_bytes())).collect(),
        }
    }

    /// The same with profiles of moments in the order of their times, each since the beginning: from them it is known how much a figure
    /// varies within the run.
    #[must_use]
    pub fn with_moments(mut self, moments: impl IntoIterator<Item = Profile>) -> Self {
        let mut before = Amounts::default();
        for moment in moments {
            let now = Amounts::of(&moment);
            let span = now.since(&before);
            if span.wall_ns > 0.0 {
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
