//! Whether differences may be chance.
//!
//! Of many runs, by permutation: if nothing had changed, it would be chance which runs are called before and which after. For each way of
//! dealing the runs out to both sides, the largest statistic of all subjects is found; a difference is no chance if hardly any way gives
//! as large a one. That holds however times are distributed and however subjects depend on each other, as waiting times do, and the
//! number of subjects is accounted for: the step-down maxT procedure of Westfall and Young (1993).
//!
//! Five runs a side can be dealt out in 126 ways only: too few to tell one subject of dozens by them, because each of the others has a
//! way of its own that divides its runs as well. So few runs are compared by Student's test with Holm's correction, where the number of
//! subjects is no limit but times are taken for normally distributed. They are not, now and then: so the order of the runs has to say
//! the same of the subject for itself, by Mann and Whitney's test, or, where runs are too few for that, by none being on the wrong side.
//!
//! A few runs tell little of how much one subject varies, all subjects together tell more: the statistic of both is Student's with the
//! variance drawn towards what is usual for a subject that takes so long, as far as subjects are alike in that (the moderated t of Smyth
//! 2004, with a trend).

use schemars::JsonSchema;
use serde::Serialize;
use statrs::{
    distribution::{ContinuousCDF as _, StudentsT},
    function::gamma::digamma,
};

/// A difference is told as one if chance gives any such in so many comparisons at most.
pub(super) const LEVEL: f64 = 0.01;
/// The same of the order of the runs of one subject alone.
const LEVEL_OF_ORDER: f64 = 0.05;
/// Of a mean: what varies less is taken to vary so, because no clock is better in whole jobs.
const FINEST: f64 = 0.001;
/// Ways of dealing out that are tried, if there are more.
const MOST_WAYS: u64 = 4000;
/// Of these ways, so many may be as good as the one that is looked at for a permutation to tell anything about dozens of subjects.
const LEAST_RARE: f64 = 50.0;
/// Subjects that tell what is usual.
const LEAST_SUBJECTS: usize = 6;
/// Share of the differences of which the interval holds the true one.
const CONFIDENCE: f64 = 0.95;

/// How it was found out what is chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Repeated runs, dealt out anew.
    Permutation,
    /// Repeated runs, but few: Student's test, and Mann and Whitney's.
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

/// Whether so many runs are enough to be compared by permutation.
pub(super) fn is_enough(before: usize, after: usize) -> bool {
    before.min(after) >= 2 && ways(before, after) as f64 * LEVEL >= LEAST_RARE
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

/// Relative values of a subject, by run: over the mean of all, so that subjects can be compared, and with 0 as their mean.
#[derive(Debug)]
struct Row {
    values: Vec<f64>,
    /// The sum of their squares.
    squares: f64,
    /// Of the values as they are.
    mean: f64,
}

impl Row {
    fn of(values: &Values) -> Self {
        let all: Vec<f64> = values.before.iter().chain(&values.after).copied().collect();
        let mean = mean(&all);
        let relative = |value: &f64| if mean > 0.0 { value / mean - 1.0 } else { 0.0 };
        let values: Vec<f64> = all.iter().map(relative).collect();
        let squares = values.iter().map(|value| value * value).sum();
        Self { values, squares, mean }
    }

    /// Difference of means, and the variance of a run around that of its side. Since all add up to nothing, what one side adds up to tells
    /// both.
    fn difference(&self, sides: &Sides) -> (f64, f64) {
        let sum: f64 = sides.after.iter().filter_map(|&run| self.values.get(run)).sum();
        let left = self.squares - sum * sum * sides.scale;
        (sum * sides.scale, left.max(0.0) / sides.freedom)
    }
}

/// Which runs are after, and what follows from how many there are on each side.
#[derive(Debug)]
struct Sides {
    after: Vec<usize>,
    /// Over the variance of a run, that of a difference of means.
    scale: f64,
    /// Of a variance.
    freedom: f64,
}

impl Sides {
    /// As the runs were given: so many before, and then those after.
    fn given(before: usize, runs: usize) -> Self {
        Self::of(&(0..runs).map(|run| run >= before).collect::<Vec<_>>())
    }

    /// `is_after` by run.
    fn of(is_after: &[bool]) -> Self {
        let after: Vec<usize> = (0..).zip(is_after).filter(|(_, is_after)| **is_after).map(|(run, _)| run).collect();
        let (all, number) = (is_after.len() as f64, after.len() as f64);
        Self { after, scale: 1.0 / number + 1.0 / (all - number), freedom: all - 2.0 }
    }
}

/// What is usual for variances of relative values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Usual {
    /// So many degrees of freedom is it worth; infinite: all subjects vary alike.
    freedom: f64,
    /// Of the logarithm of the variance, over that of the mean.
    slope: f64,
    offset: f64,
}

impl Usual {
    /// Smyth (2004), section 6.2, with a linear trend; `subjects` are means and variances of `freedom` degrees of freedom.
    fn of(subjects: &[(f64, f64)], freedom: f64) -> Self {
        let half = freedom / 2.0;
        let logs: Vec<(f64, f64)> = subjects
            .iter()
            .filter(|(mean, _)| *mean > 0.0)
            .map(|(mean, variance)| (mean.ln(), variance.max(FINEST * FINEST).ln() - digamma(half) + half.ln()))
            .collect();
        if logs.len() < LEAST_SUBJECTS {
            return Self { freedom: 0.0, slope: 0.0, offset: 0.0 };
        }
        let number = logs.len() as f64;
        let [x, y] = [mean_of(&logs, |(x, _)| *x), mean_of(&logs, |(_, y)| *y)];
        let squares = mean_of(&logs, |(of, _)| (of - x).powi(2));
        let slope = if squares > 0.0 { mean_of(&logs, |(of, to)| (of - x) * (to - y)) / squares } else { 0.0 };
        let left = mean_of(&logs, |(of, to)| (to - y - slope * (of - x)).powi(2)) * number / (number - 2.0);
        let prior = trigamma_inverse(left - trigamma(half));
        let shift = if prior.is_finite() { digamma(prior) - prior.ln() } else { 0.0 };
        Self { freedom: 2.0 * prior, slope, offset: y - slope * x + shift }
    }

    /// The usual variance of subjects of this mean, if there is any.
    fn of_mean(&self, mean: f64) -> Option<f64> {
        (self.freedom > 0.0 && mean > 0.0).then(|| (self.offset + self.slope * mean.ln()).exp())
    }

    /// A variance, drawn towards the usual one.
    fn drawn(&self, usual: Option<f64>, variance: f64, freedom: f64) -> f64 {
        match usual {
            None => variance,
            Some(usual) if self.freedom.is_infinite() => usual,
            Some(usual) => (self.freedom * usual + freedom * variance) / (self.freedom + freedom),
        }
    }
}

fn mean_of<T>(values: &[T], of: impl Fn(&T) -> f64) -> f64 {
    values.iter().map(of).sum::<f64>() / values.len() as f64
}

/// The derivative of [`digamma`]: by recurrence up to where its asymptotic series holds (Abramowitz and Stegun, 6.4.6 and 6.4.12).
fn trigamma(of: f64) -> f64 {
    let (mut at, mut sum) = (of, 0.0);
    while at < 10.0 {
        sum += 1.0 / (at * at);
        at += 1.0;
    }
    let inverse = 1.0 / at;
    let square = inverse * inverse;
    sum + inverse * (1.0 + inverse / 2.0 + square * (1.0 / 6.0 - square * (1.0 / 30.0 - square / 42.0)))
}

/// Where [`trigamma`] has this value; infinite: nowhere, because it is 0 or less.
fn trigamma_inverse(value: f64) -> f64 {
    let (mut low, mut high) = (1e-3_f64, 1e6_f64);
    if value <= trigamma(high) {
        return f64::INFINITY;
    }
    for _ in 0..80 {
        let middle = (low * high).sqrt();
        if trigamma(middle) > value { low = middle } else { high = middle }
    }
    low
}

/// Relative values of all subjects, and what is usual for how much they vary.
struct Relative {
    /// Each with the usual variance of its like.
    rows: Vec<(Row, Option<f64>)>,
    usual: Usual,
    /// Of a variance.
    freedom: f64,
}

impl Relative {
    fn of(subjects: &[Values], given: &Sides) -> Self {
        let rows: Vec<Row> = subjects.iter().map(Row::of).collect();
        let vary: Vec<(f64, f64)> = rows.iter().map(|row| (row.mean, row.difference(given).1)).collect();
        let usual = Usual::of(&vary, given.freedom);
        let with_usual = |row: Row| {
            let of_its_like = usual.of_mean(row.mean);
            (row, of_its_like)
        };
        Self { rows: rows.into_iter().map(with_usual).collect(), usual, freedom: given.freedom }
    }

    /// Student's t of a subject, moderated; 0: there is no such subject.
    fn t(&self, index: usize, sides: &Sides) -> f64 {
        let Some((row, usual)) = self.rows.get(index) else { return 0.0 };
        let (difference, variance) = row.difference(sides);
        let error = (self.usual.drawn(*usual, variance, self.freedom) * sides.scale).sqrt();
        difference.abs() / error.max(FINEST)
    }

    /// Degrees of freedom of it, at most those of all subjects together.
    fn freedom(&self) -> f64 {
        (self.freedom + self.usual.freedom).min(self.freedom * self.rows.len() as f64)
    }
}

/// The number of pairs of a run before and one after that may be in the other order than the means are.
fn most_inversions(before: usize, after: usize) -> usize {
    // Ways to choose a number as a sum of at most `before` numbers of at most `after`: by how many of them there are, and their sum.
    let most = before * after;
    let mut ways = vec![vec![0.0_f64; most + 1]; before + 1];
    if let Some(none) = ways.first_mut().and_then(|row| row.first_mut()) {
        *none = 1.0;
    }
    for part in 0..=after {
        // Each number may be taken again: from few to many.
        for count in 1..=before {
            for sum in part..=most {
                let with = ways.get(count - 1).and_then(|row| row.get(sum - part)).copied().unwrap_or_default();
                if let Some(place) = ways.get_mut(count).and_then(|row| row.get_mut(sum)) {
                    *place += with;
                }
            }
        }
    }
    let counts = ways.pop().unwrap_or_default();
    let all: f64 = counts.iter().sum();
    let (mut below, mut inversions) = (0.0, None);
    for (number, count) in counts.iter().enumerate() {
        below += count;
        if 2.0 * below / all > LEVEL_OF_ORDER {
            break;
        }
        inversions = Some(number);
    }
    // So few runs cannot tell more than that none is on the wrong side.
    inversions.unwrap_or(0)
}

/// Pairs of a run before and one after that are in the other order than the means are; those that are equal count as half of one.
fn inversions(values: &Values) -> f64 {
    let is_longer = mean(&values.after) > mean(&values.before);
    let pair = |before: &f64, after: &f64| match before.total_cmp(after) {
        std::cmp::Ordering::Equal => 0.5,
        order => f64::from(u8::from(order.is_gt() == is_longer)),
    };
    values.before.iter().flat_map(|before| values.after.iter().map(move |after| pair(before, after))).sum()
}

/// Adjusted probabilities by subject.
fn by_permutation(subjects: &[Values], before: usize) -> Vec<f64> {
    let runs = subjects.first().map_or(0, |values| values.before.len() + values.after.len());
    let given = Sides::given(before, runs);
    let rows = Relative::of(subjects, &given);

    let observed: Vec<f64> = (0..subjects.len()).map(|index| rows.t(index, &given)).collect();
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    let of = |index: usize| observed.get(index).copied().unwrap_or_default();
    order.sort_by(|&a, &b| of(b).total_cmp(&of(a)));
    let mut as_large = vec![0_u64; order.len()];
    let mut tried = 0_u64;
    let mut deal = |sides: &[bool]| {
        tried += 1;
        let sides = Sides::of(sides);
        // From the smallest on: what is larger competes with all that is smaller.
        let mut largest = 0.0_f64;
        for (&index, count) in order.iter().zip(&mut as_large).rev() {
            largest = largest.max(rows.t(index, &sides));
            // Equal ones differ by rounding.
            if largest >= of(index) * (1.0 - 1e-9) {
                *count += 1;
            }
        }
    };
    for_each_way(runs, before, &mut deal);

    let mut probabilities = vec![1.0; subjects.len()];
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
    let Some(first) = subjects.first() else { return Vec::new() };
    let (before, after) = (first.before.len(), first.after.len());
    let given = Sides::given(before, before + after);
    let rows = Relative::of(subjects, &given);
    let students = StudentsT::new(0.0, 1.0, rows.freedom());
    let of = |index: usize| students.as_ref().map_or(1.0, |students| 2.0 * students.sf(rows.t(index, &given)));
    let mut probabilities: Vec<(usize, f64)> = (0..subjects.len()).map(|index| (index, of(index))).collect();
    probabilities.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let most = most_inversions(before, after) as f64;
    let (mut adjusted, mut least) = (vec![1.0; subjects.len()], 0.0_f64);
    for (rank, (index, p)) in probabilities.into_iter().enumerate() {
        least = least.max((p * (subjects.len() - rank) as f64).min(1.0));
        let is_apart = subjects.get(index).is_some_and(|values| inversions(values) <= most);
        if let Some(adjusted) = adjusted.get_mut(index).filter(|_| is_apart) {
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
    // No time is less than none.
    Some(((ratio - 1.0 - t * error).max(-1.0), ratio - 1.0 + t * error))
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
        assert!(is_enough(8, 8) && is_enough(5, 20) && !is_enough(5, 5) && !is_enough(1, 500));
    }

    /// Student's distribution of four degrees of freedom has a closed form.
    #[test]
    fn students_test_is_that_of_the_textbooks() {
        let p = by_student(&[values(&[10.1, 9.8, 10.3], &[11.2, 11.0, 11.5])])[0];
        // t = 1.1667 / sqrt(0.063333/3 + 0.063333/3), 4 degrees of freedom.
        let t: f64 = 1.166_666_7 / (2.0 * 0.063_333_33_f64 / 3.0).sqrt();
        let cdf = |t: f64| 0.5 + 0.5 * t / (4.0 + t * t).sqrt() * (1.0 + 2.0 / (4.0 + t * t));
        assert!((p - 2.0 * (1.0 - cdf(t))).abs() < 1e-6, "{p}");
    }

    #[test]
    fn holm_takes_the_number_of_subjects_into_account() {
        let one = by_student(&[values(&[1.0, 1.1, 0.9], &[1.5, 1.6, 1.4])])[0];
        let same = values(&[1.0, 1.1, 0.9], &[1.0, 1.1, 0.9]);
        let adjusted = by_student(&[same.clone(), values(&[1.0, 1.1, 0.9], &[1.5, 1.6, 1.4]), same]);
        assert!((adjusted[1] - 3.0 * one).abs() < 1e-12 && adjusted[0] > 0.99, "{adjusted:?}");
    }

    #[test]
    fn runs_on_the_wrong_side_are_those_of_the_tables() {
        // Critical values of Mann and Whitney's U, two-sided, 5 %.
        for (before, after, wanted) in [(5, 5, 2), (6, 6, 5), (7, 7, 8), (5, 8, 6), (4, 4, 0), (2, 3, 0)] {
            assert_eq!(most_inversions(before, after), wanted, "{before} and {after}");
        }
        assert!(inversions(&values(&[1.0, 2.0, 3.0], &[2.5, 4.0, 5.0])) - 1.0 < 1e-9);
        assert!(inversions(&values(&[5.0, 4.0], &[1.0, 4.0])) - 0.5 < 1e-9);
        // However far two of five are off, the others do not say the same.
        let outlier = values(&[1.0, 1.01, 0.99, 1.0, 1.02], &[9.5, 9.6, 1.005, 1.001, 0.995]);
        assert_eq!(by_student(&[outlier]), [1.0]);
    }

    #[test]
    fn variances_are_drawn_towards_the_usual_one() {
        let sixth = std::f64::consts::PI.powi(2) / 6.0;
        assert!((trigamma(1.0) - sixth).abs() < 1e-9 && (trigamma(0.5) - 3.0 * sixth).abs() < 1e-9);
        assert!((trigamma_inverse(sixth) - 1.0).abs() < 1e-6 && trigamma_inverse(-1.0).is_infinite());
        // All vary alike: whatever one of them says by chance counts for nothing.
        let alike = Usual::of(&[(1.0, 0.0001); 20], 8.0);
        assert!(alike.freedom.is_infinite() && (alike.drawn(alike.of_mean(1.0), 0.01, 8.0) / 0.0001).ln().abs() < 0.2);
        // Each as it is: what one says of itself counts most.
        let different: Vec<(f64, f64)> = (0..20).map(|place| (1.0, 1e-6 * 3_f64.powi(place % 10))).collect();
        let different = Usual::of(&different, 8.0);
        assert!(
            different.freedom < 2.0 && (different.drawn(different.of_mean(1.0), 0.01, 8.0) / 0.01).ln().abs() < 0.3
        );
        // What is shorter varies more.
        let trend: Vec<(f64, f64)> = (0..14).map(|place| (2_f64.powi(place), 0.1 * 0.5_f64.powi(place))).collect();
        let trend = Usual::of(&trend, 8.0);
        assert!((trend.slope + 1.0).abs() < 1e-6 && trend.freedom.is_infinite());
        assert_eq!(Usual::of(&[(1.0, 1.0); 3], 8.0).freedom.to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn the_interval_holds_the_change() {
        let (low, high) =
            interval(&values(&[100.0, 101.0, 99.0, 100.5, 99.5], &[105.0, 106.0, 104.0, 105.5, 104.5])).unwrap();
        assert!(low > 0.035 && low < 0.05 && high > 0.05 && high < 0.065, "{low} {high}");
        assert_eq!(interval(&values(&[0.0, 0.0], &[1.0, 1.0])), None);
        assert_eq!(interval(&values(&[1.0, 9.0], &[1.0, 0.0])).unwrap().0.to_bits(), (-1.0_f64).to_bits());
    }
}
