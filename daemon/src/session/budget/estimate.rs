//! How often functions are called that are counted in windows only. Does no I/O.
//!
//! In each window the rate of calls is between two numbers. It is no less than what was counted, over the longest time that the window
//! may have taken: calls that are probed take longer, and so are fewer. And it is no more than that over the shortest time less what
//! the probes have cost, which is how often a program would call that does nothing else. Windows at random times are a random sample of
//! both; the limits are those of the two means with a confidence of 95 %, by Student's distribution.

use std::collections::BTreeMap;

use mpiprobe_model::Estimate;

/// What a probe hit costs at most, of what calibration found: caches and frequencies are not always as they were then.
const DEAREST: f64 = 1.3;
/// Of a window's time, what must be left without the cost of probes for an upper limit to be given.
const LEAST_LEFT: f64 = 0.05;
/// With fewer windows no upper limit is given.
const FEWEST: u64 = 5;

/// What was counted in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Counted {
    pub(super) calls: u64,
    /// At least and at most so long, s.
    pub(super) shortest: f64,
    pub(super) longest: f64,
}

impl Counted {
    /// Calls per second as they are when probed.
    pub(super) fn probed_rate(self) -> f64 {
        if self.longest > 0.0 { self.calls as f64 / self.longest } else { 0.0 }
    }

    /// Calls per second without what a hit has cost, s; `None`: that would be nearly all of the time.
    fn free_rate(self, cost: f64) -> Option<f64> {
        let left = self.shortest - self.calls as f64 * cost;
        (left > LEAST_LEFT * self.shortest).then(|| self.calls as f64 / left)
    }
}

/// A sum for mean and variance.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    number: u64,
    sum: f64,
    squares: f64,
}

impl Sample {
    fn add(&mut self, value: f64) {
        self.number += 1;
        self.sum += value;
        self.squares += value * value;
    }

    fn mean(self) -> f64 {
        if self.number == 0 { 0.0 } else { self.sum / self.number as f64 }
    }

    /// How far the true mean may be from that of the sample, with a confidence of 95 %.
    fn margin(self) -> f64 {
        if self.number < 2 {
            return f64::INFINITY;
        }
        let number = self.number as f64;
        let variance = ((self.squares - self.sum * self.sum / number) / (number - 1.0)).max(0.0);
        student(self.number - 1) * (variance / number).sqrt()
    }
}

/// The 97.5th percentile of Student's distribution.
fn student(degrees: u64) -> f64 {
    const FIRST: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    let index = usize::try_from(degrees.max(1) - 1).unwrap_or(usize::MAX);
    // By Cornish and Fisher's expansion, which is good to a thousandth from there on.
    FIRST.get(index).copied().unwrap_or_else(|| {
        let (z, degrees): (f64, f64) = (1.959_964, degrees as f64);
        z + (z.powi(3) + z) / (4.0 * degrees) + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * degrees.powi(2))
    })
}

/// Calls of one function in one process, as far as they were sampled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampled {
    low: Sample,
    middle: Sample,
    high: Sample,
    /// A window without an upper limit.
    unlimited: bool,
    /// How long it was sampled, s, and what was counted in that time.
    time: f64,
    counted: u64,
    latest: f64,
}

impl Sampled {
    /// It has been sampled for so long, in which so many calls were counted, in windows and at their edges.
    pub(super) fn pass(&mut self, seconds: f64, counted: u64) {
        self.time += seconds;
        self.counted += counted;
    }

    /// A window is over. `cost`: what a hit costs, s.
    pub(super) fn end_window(&mut self, counted: Counted, cost: f64) {
        let probed = counted.probed_rate();
        self.latest = probed;
        self.low.add(probed);
        self.middle.add(counted.free_rate(cost).unwrap_or(probed));
        match counted.free_rate(cost * DEAREST) {
            Some(rate) => self.high.add(rate),
            None => self.unlimited = true,
        }
    }

    /// How often it was called in the latest window, in a second.
    pub(super) fn latest_rate(&self) -> f64 {
        self.latest
    }

    /// Of all calls, of which so many were counted, sampled or not.
    pub(super) fn estimate(&self, counted: u64) -> Estimate {
        // As numbers of calls are whole and positive, and no program lives long enough for more than that.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let whole = |calls: f64| calls.max(0.0) as u64;
        let outside = counted.saturating_sub(self.counted);
        let of_rate = |rate: f64| outside.saturating_add(whole(rate * self.time)).max(counted);
        let is_limited = !self.unlimited && self.high.number >= FEWEST && self.high.sum > 0.0;
        let high = is_limited.then(|| of_rate(self.high.mean() + self.high.margin()).saturating_add(1));
        Estimate {
            calls: of_rate(self.middle.mean()).min(high.unwrap_or(u64::MAX)),
            calls_low: of_rate(self.low.mean() - self.low.margin()),
            calls_high: high,
            windows: self.low.number,
        }
    }
}

/// By process slot and function.
pub(super) type ByFunction = BTreeMap<(u32, u32), Sampled>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::budget::random;

    #[test]
    fn limits_hold_the_truth() {
        let mut state = 7;
        let (mut held, all) = (0, 400);
        for _ in 0..all {
            // A program that calls at a rate which changes all the time, and a cost that is not quite that of the calibration.
            let base = 10f64.powf(1.0 + 4.5 * random(&mut state));
            let real_cost = 400e-9 * (0.9 + 0.4 * random(&mut state));
            let (mut sampled, mut truth) = (Sampled::default(), 0.0);
            for _ in 0..60 {
                let rate = base * (0.5 + random(&mut state));
                truth += rate;
                let window = 0.02;
                let busy = rate * real_cost;
                let counted = rate * window / (1.0 + busy * random(&mut state));
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a test's own numbers")]
                let calls = (counted + random(&mut state)) as u64;
                sampled.pass(1.0, calls);
                sampled.end_window(Counted { calls, shortest: window * 0.999, longest: window * 1.001 }, 400e-9);
            }
            let estimate = sampled.estimate(sampled.counted);
            let high = estimate.calls_high.map_or(f64::INFINITY, |high| high as f64);
            held += u32::from(truth >= estimate.calls_low as f64 && truth <= high);
        }
        assert!(f64::from(held) >= 0.95 * f64::from(all), "{held} of {all}");
    }

    #[test]
    fn little_knowledge_has_no_upper_limit() {
        let mut sampled = Sampled::default();
        sampled.pass(10.0, 3);
        assert_eq!(sampled.estimate(103), Estimate { calls: 103, calls_low: 103, calls_high: None, windows: 0 });
        for _ in 0..FEWEST {
            sampled.end_window(Counted { calls: 0, shortest: 0.01, longest: 0.01 }, 5e-7);
        }
        // Nothing was seen: that says little of how often there is something.
        assert_eq!(sampled.estimate(103).calls_high, None);
        // A program that does nothing else: without probes it would do so at any rate.
        sampled.end_window(Counted { calls: 20_000, shortest: 0.01, longest: 0.01 }, 5e-7);
        assert_eq!(sampled.estimate(20_103).calls_high, None);
    }

    #[test]
    fn what_was_counted_is_the_least() {
        let mut sampled = Sampled::default();
        sampled.pass(1.0, 1000);
        for _ in 0..FEWEST {
            sampled.end_window(Counted { calls: 100, shortest: 0.1, longest: 0.1 }, 0.0);
        }
        let estimate = sampled.estimate(5000);
        assert_eq!((estimate.calls_low, estimate.calls, estimate.calls_high), (5000, 5000, Some(5001)));
        assert!((student(30) - 2.042).abs() < 2e-3 && (student(11) - 2.201).abs() < 2e-3);
    }
}
