//! Times of all rounds.

use std::collections::BTreeMap;

use serde::Serialize;

use super::callrate::Batches;

/// Batches by loop and kind of probes, one entry a round.
#[derive(Debug, Default)]
pub(super) struct Figures(BTreeMap<(usize, usize), Vec<Batches>>);

/// One time, over all rounds (ns).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Figure {
    /// Of the fastest batch of all.
    pub minimum_ns: f64,
    /// Of the middle batch of the middle round.
    pub median_ns: f64,
}

impl Figures {
    pub(super) fn add(&mut self, index: usize, kind: usize, batches: Batches) {
        self.0.entry((index, kind)).or_default().push(batches);
    }

    /// Per call, where a turn of the loop makes so many; `None` if it was not measured.
    pub(super) fn per_call(&self, index: usize, kind: usize, calls: usize) -> Option<Figure> {
        let rounds = self.0.get(&(index, kind))?;
        let minimum = rounds.iter().map(|round| round.minimum_ns).min_by(f64::total_cmp)?;
        let median = middle(rounds.iter().map(|round| round.median_ns))?;
        let calls = calls.max(1) as f64;
        Some(Figure { minimum_ns: minimum / calls, median_ns: median / calls })
    }

    /// What one kind takes more than another one, per call: the middle of what it did in each round. A processor is faster in one round than in
    /// another, by more than what the two differ.
    pub(super) fn more_per_call(&self, index: usize, [more, less]: [usize; 2], calls: usize) -> Option<Figure> {
        let rounds = || Some(self.0.get(&(index, more))?.iter().zip(self.0.get(&(index, less))?));
        let calls = calls.max(1) as f64;
        Some(Figure {
            minimum_ns: middle(rounds()?.map(|(more, less)| more.minimum_ns - less.minimum_ns))? / calls,
            median_ns: middle(rounds()?.map(|(more, less)| more.median_ns - less.median_ns))? / calls,
        })
    }
}

/// `None`: there are none.
pub(super) fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_batch_and_the_middle_round_count() {
        let mut figures = Figures::default();
        for (minimum_ns, median_ns) in [(30.0, 90.0), (10.0, 40.0), (20.0, 50.0)] {
            figures.add(1, 2, Batches { minimum_ns, median_ns });
        }
        assert_eq!(figures.per_call(1, 2, 2), Some(Figure { minimum_ns: 5.0, median_ns: 25.0 }));
        assert_eq!(figures.per_call(2, 1, 2), None);
        for (minimum_ns, median_ns) in [(60.0, 100.0), (14.0, 50.0), (26.0, 70.0)] {
            figures.add(1, 3, Batches { minimum_ns, median_ns });
        }
        assert_eq!(figures.more_per_call(1, [3, 2], 2), Some(Figure { minimum_ns: 3.0, median_ns: 5.0 }));
        assert_eq!(figures.more_per_call(1, [3, 4], 2), None);
    }
}
