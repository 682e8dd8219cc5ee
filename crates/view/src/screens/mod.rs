//! The tables of all places, made of a profile and what has changed.

mod cells;
mod communicators;
mod function;
mod functions;
mod histogram;
mod layers;
mod matrix;
mod rank;
mod ranks;
mod recent;
mod requests;
mod sites;
mod stacks;
mod sums;
mod threads;
mod waits;

use std::collections::HashSet;

use mpiprobe_model::{
    CommunicatorProfile, Profile, RankProfile,
    analyse::{Change, RankId},
    filter::{Facts, Filter},
};

use super::{
    content::{Grid, Location, RecentOf, Screen, Span},
    source::Stacks,
};

pub(super) use matrix::{communicators_with_pairs, matrix};
pub(super) use recent::shown_rank;
pub(super) use sums::{FunctionSum, functions_by_time};

/// A profile, and what goes with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a> {
    pub profile: &'a Profile,
    /// Of the span that is shown.
    pub change: &'a Change,
    /// The ranks of the profile, told apart.
    pub ids: &'a [RankId],
}

/// What tables are made of: the rows that the filter keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableData<'a> {
    pub profile: &'a Profile,
    /// Of the span that is shown.
    pub change: &'a Change,
    /// The ranks of the profile, told apart.
    pub ids: &'a [RankId],
    pub span: Span,
    /// Everything, whatever the filter: for sums, and for looking up what rows refer to.
    pub all: Rows<'a>,
    pub filter: Option<&'a Filter>,
    pub recent: RecentOf,
    pub stacks: Option<ShownStacks<'a>>,
}

/// The stacks that have been seen last.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShownStacks<'a> {
    pub stacks: &'a Stacks,
    /// Functions of which it is not shown what they have called, by their numbers.
    pub folded: &'a HashSet<u64>,
}

/// The table of a place.
pub(super) fn grid(place: Location, data: &TableData<'_>) -> Grid {
    match place {
        // These are no tables.
        Location::Screen(Screen::Overview | Screen::Matrix | Screen::Timeline) | Location::Block(_) => Grid::default(),
        Location::Screen(Screen::Ranks) => ranks::grid(data),
        Location::Screen(Screen::Functions) => functions::grid(data),
        Location::Screen(Screen::CallSites) => sites::grid(data),
        Location::Screen(Screen::Communicators) => communicators::grid(data),
        Location::Screen(Screen::Requests) => requests::grid(data),
        Location::Screen(Screen::Recent) => recent::grid(data),
        Location::Screen(Screen::Waiting) => waits::grid(data),
        Location::Screen(Screen::Stacks) => stacks::grid(data),
        Location::Site(id) => sites::of_ranks(data, id),
        Location::Communicator(id) => communicators::functions(data, id),
        Location::Rank(id) => rank::grid(data, id),
        Location::Threads(id) => threads::grid(data, id),
        Location::Function(name) => function::grid(data, name),
        Location::Layers(name) => layers::grid(data, name),
        Location::Histogram(name, rank) => histogram::grid(data, name, rank),
    }
}

impl<'a> TableData<'a> {
    /// Rows of everything, which are those that a filter keeps if there is one.
    pub(super) fn new(rows: Rows<'a>, all: Rows<'a>, span: Span, filter: Option<&'a Filter>) -> Self {
        let Rows { profile, change, ids } = rows;
        Self { profile, change, ids, span, all, filter, recent: RecentOf::NOBODY, stacks: None }
    }

    /// The same without a filter.
    pub(super) fn unfiltered(&self) -> Self {
        Self { recent: self.recent, stacks: self.stacks, ..Self::new(self.all, self.all, self.span, None) }
    }

    /// Of a row that is not in profiles by itself.
    fn keeps(&self, facts: &Facts<'_>) -> bool {
        self.filter.is_none_or(|filter| filter.keeps(facts))
    }

    fn rank(&self, id: RankId) -> Option<&'a RankProfile> {
        let index = self.ids.iter().position(|data| *data == id)?;
        self.profile.ranks.get(index)
    }

    /// Of a rank's own number for it.
    pub(super) fn communicator(&self, rank: &RankProfile, number: Option<u32>) -> Option<&'a CommunicatorProfile> {
        let number = number?;
        let row = rank.traffic.as_ref()?.communicators.iter().find(|row| row.number == number)?;
        let id = row.id?;
        self.all.profile.traffic.as_ref()?.communicators.iter().find(|communicator| communicator.id == id)
    }

    /// "last 10 s", "since the beginning, 2 min"
    pub(super) fn span(&self) -> String {
        let ns = mpiprobe_report::present::units::ns(self.change.span_ns);
        match self.span {
            Span::Recent => format!("last {ns}"),
            Span::Start => format!("since the beginning, {ns}"),
        }
    }
}
