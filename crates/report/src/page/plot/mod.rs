//! Pictures for papers: SVG on a light ground, with titles, axes with units, and colours that people with any colour vision can tell
//! apart. The same profile gives the same picture.

mod calls;
mod canvas;
mod histogram;
mod matrix;
mod scaling;
mod timeline;

use std::ops::RangeInclusive;

pub use calls::{CallsError, calls};
pub use histogram::histogram;
pub use matrix::{Measure, matrix};
pub use scaling::scaling;
pub use timeline::timeline;

/// Why there is no picture.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlotError {
    #[error(
        "there is nothing to be plotted: it is not known what calls move (record with --traffic, or by the wrapper)"
    )]
    NoTraffic,
    #[error("nothing was sent between the ranks and over the communicators that were chosen")]
    NothingSent,
    #[error("a timeline needs a recording (--record) with two moments or more; this is of one moment")]
    OneMoment,
    #[error("there is no call of {0} in it; `mpiprobe report` lists the functions that were called")]
    NoFunction(String),
    #[error("no call has been completed in it: there is nothing to be plotted")]
    NoCalls,
    #[error("scaling needs runs of at least two different numbers of ranks; these are all of {0}")]
    OneSize(usize),
    #[error("no call of the chosen ranks is in that time: there is nothing to be plotted")]
    NothingThere,
    #[error("the picture cannot be drawn: {0}")]
    Drawing(String),
}

/// How a picture is made.
#[derive(Clone, Debug, PartialEq)]
pub struct PlotOptions {
    /// Pixels.
    pub width: u32,
    pub height: u32,
    /// Amounts by their logarithms.
    pub log: bool,
    /// Only over communicators of this name.
    pub communicator: Option<String>,
    /// Only these ranks.
    pub ranks: Option<RangeInclusive<u32>>,
}

impl Default for PlotOptions {
    fn default() -> Self {
        Self { width: 800, height: 560, log: false, communicator: None, ranks: None }
    }
}

impl PlotOptions {
    fn has_rank(&self, rank: u32) -> bool {
        self.ranks.as_ref().is_none_or(|ranks| ranks.contains(&rank))
    }

    /// ", ranks 0 to 15, over world" of what was chosen.
    fn chosen(&self) -> String {
        let ranks = self.ranks.as_ref().map(|ranks| format!(", ranks {} to {}", ranks.start(), ranks.end()));
        let communicator = self.communicator.as_ref().map(|name| format!(", over {name}"));
        [ranks, communicator].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests;
