//! The moments of several parts of one job on one axis of time.

use crate::present::recording::{At, Times, describe, find, find_bound};
use jiff::Timestamp;

use super::{Part, SourceError, Span};

/// When each moment was. Those of the part with most of them are the moments of all; of the others, what they had recorded by then.
#[derive(Debug)]
pub(super) struct Timeline {
    began: Option<Timestamp>,
    /// Of each part, how much later than the first one it began, ns.
    later: Vec<u64>,
    /// The part whose moments they are.
    guide: usize,
    /// Since the beginning of the first part, ns.
    times: Vec<u64>,
}

impl Timeline {
    pub(super) fn of(parts: &[Part]) -> Self {
        let began = parts.iter().filter_map(Part::began).min();
        let later = |part: &Part| {
            let since = part.began().zip(began).map(|(own, first)| own.duration_since(first));
            since.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or(0)
        };
        let later: Vec<u64> = parts.iter().map(later).collect();
        let most = parts.iter().enumerate().max_by_key(|(_, part)| part.len());
        let (guide, times) = most.map_or((0, Vec::new()), |(guide, part)| {
            let offset = later.get(guide).copied().unwrap_or(0);
            (guide, (0..part.len()).map(|index| part.at_ns(index).saturating_add(offset)).collect())
        });
        Self { began, later, guide, times }
    }

    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    fn times<'a>(&self, at_ns: &'a dyn Fn(usize) -> u64) -> Times<'a> {
        Times { began: self.began, count: self.len(), at_ns }
    }

    pub(super) fn at_ns(&self, index: usize) -> u64 {
        self.times.get(index).or(self.times.last()).copied().unwrap_or(0)
    }

    /// Of each part, the number of its moment; `None`: it had none by then.
    pub(super) fn places(&self, parts: &[Part], index: usize) -> Vec<Option<usize>> {
        let is_last = index + 1 >= self.len();
        let until_ns = self.at_ns(index);
        let place = |(number, part): (usize, &Part)| match () {
            () if number == self.guide => Some(index),
            // How it ended is how it ended, whichever clock was ahead.
            () if is_last => part.len().checked_sub(1),
            () => {
                let later = self.later.get(number).copied().unwrap_or(0);
                // Moments are in the order of their times.
                let (mut low, mut high) = (0, part.len());
                while low < high {
                    let middle = low.midpoint(high);
                    if part.at_ns(middle).saturating_add(later) <= until_ns { low = middle + 1 } else { high = middle }
                }
                low.checked_sub(1)
            }
        };
        parts.iter().enumerate().map(place).collect()
    }

    /// The moment before a span, and its last one.
    pub(super) fn chosen(&self, span: Span, name: &str) -> Result<(Option<usize>, usize), SourceError> {
        let end = self.len().saturating_sub(1);
        let none = || self.none(name);
        let at_ns = |index: usize| self.at_ns(index);
        let times = self.times(&at_ns);
        let number = |at: At| find_bound(at, times);
        let last = match (span.until, span.at) {
            (Some(until), _) => number(until).map_err(|_| none())?,
            (None, Some(at)) => find(at, times).map_err(|_| none())?,
            (None, None) => end,
        };
        let before = match span.from.map(number) {
            Some(Ok(place)) => Some(place),
            // The span begins where the observation does.
            Some(Err(is_before)) if is_before => None,
            Some(Err(_)) => return Err(none()),
            None => None,
        };
        if before.is_some_and(|before| before >= last) {
            let from = self.describe(before.unwrap_or(0));
            return Err(SourceError::Backwards { from, until: self.describe(last) });
        }
        Ok((before, last))
    }

    /// The number of the moment that is meant.
    pub(super) fn find(&self, at: At, name: &str) -> Result<usize, SourceError> {
        find(at, self.times(&|index| self.at_ns(index))).map_err(|_| self.none(name))
    }

    /// There is no such moment in the run of this name.
    pub(super) fn none(&self, name: &str) -> SourceError {
        let (from, to) = (self.describe(0), self.describe(self.len().saturating_sub(1)));
        SourceError::NoMoment { name: name.to_owned(), from, to, count: self.len() }
    }

    /// "12:34:56 (+00:12)"
    pub(super) fn describe(&self, index: usize) -> String {
        describe(self.began, self.at_ns(index))
    }
}
