//! Whether differences may be chance.
//!
//! Where runs were repeated often enough, by permutation: if nothing had changed, it would be chance which runs are called before and
//! which after. For each way of dealing the runs out to both sides, the largest statistic of all subjects is found; a difference is no
//! chance if hardly any way gives as large a one. That holds however times are distributed and however subjects depend on each other,
//! as waiting times do, and the number of subjects is accounted for: the step-down maxT procedure of Westfall and Young (1993). The
//! statistic is a difference of means over its standard error and the median of all standard errors, as by Tusher, Tibshirani and Chu
//! (2001), because a few runs tell little of how much one subject varies.
//!
//! Of fewer runs, by Student's test with Holm's correction: Welch's has too few degrees of freedom left to find anything in three runs.

use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// A difference is told as one if chance gives any such in so many comparisons at most.
pub(super) const LEVEL: f64 = 0.01;
/// Of a mean: what varies less is taken to vary so, because no clock is better in whole jobs.
const FINEST: f64 = 0.001;
/// Ways of dealing out that are tried, if there are more.
const MOST_WAYS: u64 = 4000;
/// Share of the differences of which the interval holds the true one.
const CONFIDENCE: f64 = 0.95;

/// How it was found out what is chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Repeated runs, dealt out anew.
    Permutation,
    /// Repeated runs, but few: Student's test.
    Student,
    /// One run a side: the parts of each, dealt out anew.
    Moments,
    /// Not known: one run a side, and no moments of it.
    None,
}

/// What is known of one subject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tested {
    /// Chance that there would be any such difference if nothing had changed.
    pub(super) p: f64,
    /// Of the second mean over the first, minus one: the interval that holds the true change.
    pub(super) interval: Option<(f64, f64)>,
}

/// Values of one subject, one for each run.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pub(super) before: Vec<f64>,
    pub(super) after: Vec<f64>,
}

/// Ways to deal `before + after` runs out to two sides of these numbers, both sides taken as the same where they are as many.
fn ways(before: usize, after: usize) -> u64 {
    let total = (before + after) as u64;
    let choose = (1..=before.min(after) as u64).try_fold(1_u64, |ways, k| Some(ways.checked_mul(total - k + 1)? / k));
    let all = choose.unwrap_or(u64::MAX);
    if before == after { all / 2 } else { all }
}

/// Whether so many runs are enough for a permutation to be rarer than [`LEVEL`].
pub(super) fn is_enough(before: usize, after: usize) -> bool {
    before.min(after) >= 2 && ways(before, after) as f64 * LEVEL >= 1.0
}

/// Tests all subjects together, all of which have values of the same runs.
pub(super) fn test(subjects: &[Values]) -> Vec<Tested> {
    let Some(first) = subjects.first() else { return Vec::new() };
    let (before, after) = (first.before.len(), first.after.len());
    let probabilities = match () {
        () if before.min(after) < 2 => return vec![Tested { p: 1.0, interval: None }; subjects.len()],
        () if is_enough(before, after) => by_permutation(subjects, before),
        () => by_student(subjects),
    };
    let tested = |(values, p): (&Values, f64)| Tested { p, interval: interval(values) };
    subjects.iter().zip(probabilities).map(tested).collect()
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Variance of the mean of some values.
fn variance_of_mean(values: &[f64]) -> f64 {
    let (number, mean) = (values.len() as f64, mean(values));
    if number < 2.0 {
        return 0.0;
    }
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (number - 1.0) / number
}

/// Over the mean of all, so that subjects can be compared.
fn relative(values: &Values) -> Vec<f64> {
    let all: Vec<f64> = values.before.iter().chain(&values.after).copied().collect();
    let mean = mean(&all);
    if mean > 0.0 { all.iter().map(|value| value / mean).collect() } else { vec![0.0; all.len()] }
}

/// Difference of means, and its standard error with one variance for both sides; `is_after` by run.
fn difference(values: &[f64], is_after: &[bool]) -> (f64, f64) {
    let (mut sums, mut numbers) = ([0.0; 2], [0.0; 2]);
    for (value, &side) in values.iter().zip(is_after) {
        let [before, after] = &mut sums;
        let [number_before, number_after] = &mut numbers;
        if side {
            *after += value;
            *number_after += 1.0;
        } else {
            *before += value;
            *number_before += 1.0;
        }
    }
    let [before, after] = [sums[0] / numbers[0], sums[1] / numbers[1]];
    let squares = values.iter().zip(is_after).map(|(value, &side)| (value - if side { after } else { before }).powi(2));
    let variance = squares.sum::<f64>() / (numbers[0] + numbers[1] - 2.0);
    (after - before, (variance * (1.0 / numbers[0] + 1.0 / numbers[1])).sqrt())
}

/// Adjusted probabilities by subject.
fn by_permutation(subjects: &[Values], before: usize) -> Vec<f64> {
    let rows: Vec<Vec<f64>> = subjects.iter().map(relative).collect();
    let runs = rows.first().map_or(0, Vec::len);
    let given: Vec<bool> = (0..runs).map(|run| run >= before).collect();
    let mut errors: Vec<f64> = rows.iter().map(|row| difference(row, &given).1).collect();
    errors.sort_by(f64::total_cmp);
    let usual = errors.get(errors.len() / 2).copied().unwrap_or_default().max(FINEST);
    let statistic = |row: &Vec<f64>, sides: &[bool]| {
        let (difference, error) = difference(row, sides);
        difference.abs() / (error + usual)
    };

    let observed: Vec<f64> = rows.iter().map(|row| statistic(row, &given)).collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let of = |index: usize| observed.get(index).copied().unwrap_or_default();
    order.sort_by(|&a, &b| of(b).total_cmp(&of(a)));
    let mut as_large = vec![0_u64; order.len()];
    let mut tried = 0_u64;
    let mut deal = |sides: &[bool]| {
        tried += 1;
        // From the smallest on: what is larger competes with all that is smaller.
        let mut largest = 0.0_f64;
        for (&index, count) in order.iter().zip(&mut as_large).rev() {
            largest = largest.max(rows.get(index).map_or(0.0, |row| statistic(row, sides)));
            // Equal ones differ by rounding.
            if largest >= of(index) * (1.0 - 1e-9) {
                *count += 1;
            }
        }
    };
    for_each_way(runs, before, &mut deal);

    let mut probabilities = vec![1.0; rows.len()];
    let mut least = 0.0_f64;
    for (index, count) in order.into_iter().zip(as_large) {
        least = least.max(count as f64 / tried.max(1) as f64);
        if let Some(probability) = probabilities.get_mut(index) {
            *probability = least;
        }
    }
    probabilities
}

/// Every way of dealing out, or so many of them at random, always the same ones: who compares twice sees the same.
fn for_each_way(runs: usize, before: usize, deal: &mut dyn FnMut(&[bool])) {
    let after = runs - before;
    if ways(before, after) <= MOST_WAYS {
        let mut sides = vec![false; runs];
        return choose(&mut sides, 0, after, before == after, deal);
    }
    let mut sides: Vec<bool> = (0..runs).map(|run| run >= before).collect();
    deal(&sides);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 1..MOST_WAYS {
        for last in (1..runs).rev() {
            sides.swap(last, random.below(last + 1));
        }
        deal(&sides);
    }
}

/// `first_stays`: the first run is always before, because the other way round it is the same.
fn choose(sides: &mut Vec<bool>, from: usize, left: usize, first_stays: bool, deal: &mut dyn FnMut(&[bool])) {
    if left == 0 {
        return deal(sides);
    }
    for run in from.max(usize::from(first_stays))..sides.len() {
        if sides.len() - run < left {
            return;
        }
        if let Some(side) = sides.get_mut(run) {
            *side = true;
        }
        choose(sides, run + 1, left - 1, first_stays, deal);
        if let Some(side) = sides.get_mut(run) {
            *side = false;
        }
    }
}

/// xorshift64*, for which any seed but 0 does.
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Limits are small: what is not even about it does not show.
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from((self.next() >> 33) % limit as u64).unwrap_or_default()
    }
}

/// Adjusted probabilities by subject.
fn by_student(subjects: &[Values]) -> Vec<f64> {
    let mut probabilities: Vec<(usize, f64)> = subjects.iter().map(student).enumerate().collect();
    probabilities.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let (mut adjusted, mut least) = (vec![1.0; subjects.len()], 0.0_f64);
    for (rank, (index, p)) in probabilities.into_iter().enumerate() {
        least = least.max((p * (subjects.len() - rank) as f64).min(1.0));
        if let Some(adjusted) = adjusted.get_mut(index) {
            *adjusted = least;
        }
    }
    adjusted
}

/// Standard error and degrees of freedom of the difference of two means whose variances may differ.
fn spread(a: f64, b: f64, values: &Values) -> (f64, f64) {
    let (number_a, number_b) = (values.before.len() as f64, values.after.len() as f64);
    let squares = a * a / (number_a - 1.0) + b * b / (number_b - 1.0);
    let freedom = if squares > 0.0 { (a + b).powi(2) / squares } else { number_a + number_b - 2.0 };
    ((a + b).sqrt(), freedom.max(1.0))
}

fn student(values: &Values) -> f64 {
    let runs = values.before.len() + values.after.len();
    let is_after: Vec<bool> = (0..runs).map(|run| run >= values.before.len()).collect();
    let (difference, error) = difference(&relative(values), &is_after);
    let t = difference.abs() / error.max(FINEST);
    StudentsT::new(0.0, 1.0, runs as f64 - 2.0).map_or(1.0, |students| 2.0 * students.sf(t))
}

/// Of the ratio of means, minus one.
fn interval(values: &Values) -> Option<(f64, f64)> {
    let (before, after) = (mean(&values.before), mean(&values.after));
    if before <= 0.0 {
        return None;
    }
    let ratio = after / before;
    // By how much each mean varies in the ratio.
    let (a, b) =
        (variance_of_mean(&values.before) * (ratio / before).powi(2), variance_of_mean(&values.after) / before.powi(2));
    let (error, freedom) = spread(a, b, values);
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.5 + CONFIDENCE / 2.0);
    Some((ratio - 1.0 - t * error, ratio - 1.0 + t * error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(before: &[f64], after: &[f64]) -> Values {
        Values { before: before.into(), after: after.into() }
    }

    #[test]
    fn each_way_is_dealt_once() {
        for (before, after, wanted) in [(5, 5, 126), (4, 4, 35), (3, 5, 56), (2, 6, 28)] {
            let mut seen = std::collections::BTreeSet::new();
            for_each_way(before + after, before, &mut |sides| {
                assert_eq!(sides.iter().filter(|side| **side).count(), after);
                assert!(seen.insert(sides.to_vec()));
            });
            assert_eq!((seen.len() as u64, ways(before, after)), (wanted, wanted));
        }
        let mut tried = 0;
        for_each_way(40, 20, &mut |sides| {
            assert_eq!(sides.iter().filter(|side| **side).count(), 20);
            tried += 1;
        });
        assert_eq!(tried, MOST_WAYS);
        assert!(is_enough(5, 5) && is_enough(4, 6) && !is_enough(4, 4) && !is_enough(1, 500));
    }

    /// Student's distribution of four degrees of freedom has a closed form.
    #[test]
    fn students_test_is_that_of_the_textbooks() {
        let p = student(&values(&[10.1, 9.8, 10.3], &[11.2, 11.0, 11.5]));
        // t = 1.1667 / sqrt(0.063333/3 + 0.063333/3), 4 degrees of freedom.
        let t: f64 = 1.166_666_7 / (2.0 * 0.063_333_33_f64 / 3.0).sqrt();
        let cdf = |t: f64| 0.5 + 0.5 * t / (4.0 + t * t).sqrt() * (1.0 + 2.0 / (4.0 + t * t));
        assert!((p - 2.0 * (1.0 - cdf(t))).abs() < 1e-6, "{p}");
    }

    #[test]
    fn holm_takes_the_number_of_subjects_into_account() {
        let one = student(&values(&[1.0, 1.1, 0.9], &[1.5, 1.6, 1.4]));
        let same = values(&[1.0, 1.1, 0.9], &[1.0, 1.1, 0.9]);
        let adjusted = by_student(&[same.clone(), values(&[1.0, 1.1, 0.9], &[1.5, 1.6, 1.4]), same]);
        assert!((adjusted[1] - 3.0 * one).abs() < 1e-12 && adjusted[0] > 0.99, "{adjusted:?}");
    }

    #[test]
    fn the_interval_holds_the_change() {
        let (low, high) =
            interval(&values(&[100.0, 101.0, 99.0, 100.5, 99.5], &[105.0, 106.0, 104.0, 105.5, 104.5])).unwrap();
        assert!(low > 0.035 && low < 0.05 && high > 0.05 && high < 0.065, "{low} {high}");
        assert_eq!(interval(&values(&[0.0, 0.0], &[1.0, 1.0])), None);
    }
}
