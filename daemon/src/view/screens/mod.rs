//! The tables of all places, made of a profile and what has changed.

mod cells;
mod function;
mod functions;
mod rank;
mod ranks;
mod sums;

use super::state::{Grid, Place, Screen, Span};
use crate::{
    analyse::{Change, RankId},
    model::Profile,
};

pub(super) use sums::{Efficiencies, FunctionSum, functions_by_time};

/// What tables are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub profile: &'a Profile,
    /// Of the span that is shown.
    pub change: &'a Change,
    /// The ranks of the profile, told apart.
    pub ids: &'a [RankId],
    pub span: Span,
}

/// The table of a place.
pub(super) fn grid(place: Place, known: &Known<'_>) -> Grid {
    match place {
        Place::Screen(Screen::Overview) => Grid::default(),
        Place::Screen(Screen::Ranks) => ranks::grid(known),
        Place::Screen(Screen::Functions) => functions::grid(known),
        Place::Rank(id) => rank::grid(known, id),
        Place::Function(name) => function::grid(known, name),
    }
}

impl Known<'_> {
    /// "last 10 s", "since the beginning, 2 min"
    pub(super) fn span(&self) -> String {
        let ns = crate::present::units::ns(self.change.span_ns);
        match self.span {
            Span::Recent => format!("last {ns}"),
            Span::Start => format!("since the beginning, {ns}"),
        }
    }
}
