//! The communication matrix, and where in it one is.

use std::collections::HashMap;

use mpiprobe_model::Amounts;

use super::Block;

/// What is shown of each pair of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    #[default]
    Bytes,
    Calls,
    Time,
}

impl Measure {
    pub const ALL: [Self; 3] = [Self::Bytes, Self::Calls, Self::Time];

    /// As it is called in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Calls => "calls",
            Self::Time => "time",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Bytes => "bytes sent",
            Self::Calls => "calls",
            Self::Time => "time in calls",
        }
    }

    /// The one after it, round in circles.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Bytes => Self::Calls,
            Self::Calls => Self::Time,
            Self::Time => Self::Bytes,
        }
    }
}

/// Rows are ranks whose calls these are, columns those at the other end; `step` ranks share a row or a column.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    pub part: Block,
    /// Ranks in all.
    pub number: u32,
    pub step: u32,
    /// Rows, and columns.
    pub cells: usize,
    /// By row and column; those that are missing are empty.
    pub sums: HashMap<(usize, usize), MatrixCell>,
    /// Said if there is nothing.
    pub empty: &'static str,
    /// Pairs of ranks of the whole job.
    pub pairs: usize,
    /// As many as there are without the filter.
    pub unfiltered: usize,
    /// The job that is shown, if it is one of several.
    pub job: Option<String>,
    /// The communicator that is shown, if it is one, and whose ranks these are.
    pub over: Option<String>,
}

/// Sums over pairs of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatrixCell(pub Amounts);

impl MatrixCell {
    pub fn add(&mut self, amounts: &Amounts) {
        self.0.add(amounts);
    }

    pub fn value(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Bytes => self.0.sent_bytes,
            Measure::Calls => self.0.calls,
            Measure::Time => self.0.time_ns,
        }
    }
}

impl Matrix {
    pub fn value(&self, at: (usize, usize), measure: Measure) -> u64 {
        self.sums.get(&at).map_or(0, |cell| cell.value(measure))
    }

    pub fn highest(&self, measure: Measure) -> u64 {
        self.sums.values().map(|cell| cell.value(measure)).max().unwrap_or(0)
    }

    /// First and last rank of a row or column: `first` is that of the part.
    pub fn ranks(&self, first: u32, index: usize) -> (u32, u32) {
        let from = first + u32::try_from(index).unwrap_or(0) * self.step;
        let end = (first + self.part.side).min(self.number.max(1));
        (from, (from + self.step).min(end).saturating_sub(1).max(from))
    }

    /// What a look into a cell leads to, where several ranks share it.
    pub fn block(&self, (row, column): (usize, usize)) -> Option<Block> {
        let (from, to) = (self.ranks(self.part.from, row).0, self.ranks(self.part.to, column).0);
        (self.step > 1).then_some(Block { from, to, side: self.step })
    }
}
