//! How often functions are called that are counted in windows only. Does no I/O.
//!
//! In each window the rate of calls is no less than what was counted, over the longest time that the window may have taken: calls that are
//! probed take longer, and whoever looks takes a processor besides, so there are no fewer without. Windows at random times are a random sample
//! of that rate; the limit is that of its mean, by Student's distribution.
//!
//! There is no upper limit. A program that polls calls many times as often when nobody looks (75 ns a call were seen, of which a probe makes
//! 650), and how often exactly would follow from the difference of two times that are nearly equal. On a node without a processor to spare,
//! probes and whoever looks take it from the ranks just in the windows.

use std::collections::BTreeMap;

use mpiprobe_model::Estimate;

/// What was counted in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Counted {
    pub(super) calls: u64,
    /// At most so long, s.
    pub(super) longest: f64,
}

impl Counted {
    /// Calls per second as they are when probed.
    pub(super) fn probed_rate(self) -> f64 {
        if self.longest > 0.0 { self.calls as f64 / self.longest } else { 0.0 }
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
        z + (z.powi(3) + z) / (4.0 * degrees)
            + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * degrees.powi(2))
    })
}

/// Calls of one function in one process, as far as they were sampled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampled {
    low: Sample,
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

    /// A window is over.
    pub(super) fn end_window(&mut self, counted: Counted) {
        self.latest = counted.probed_rate();
        self.low.add(self.latest);
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
        Estimate {
            calls: of_rate(self.low.mean()),
            calls_low: of_rate(self.low.mean() - self.low.margin()),
            calls_high: None,
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
            // A program that calls at a rate which changes all the time, and less often while it is probed.
            let base = 10f64.powf(1.0 + 5.5 * random(&mut state));
            let (mut sampled, mut truth) = (Sampled::default(), 0.0);
            for _ in 0..60 {
                let rate = base * (0.5 + random(&mut state));
                truth += rate;
                let window = 0.02;
                let counted = rate * window / (1.0 + rate * 500e-9 * random(&mut state));
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a test's own numbers")]
                let calls = (counted + random(&mut state)) as u64;
                sampled.pass(1.0, calls);
                sampled.end_window(Counted { calls, longest: window * 1.001 });
            }
            held += u32::from(truth >= sampled.estimate(sampled.counted).calls_low as f64);
        }
        assert!(f64::from(held) >= 0.95 * f64::from(all), "{held} of {all}");
    }

    #[test]
    fn what_was_counted_is_the_least() {
        let mut sampled = Sampled::default();
        sampled.pass(10.0, 3);
        assert_eq!(sampled.estimate(103), Estimate { calls: 103, calls_low: 103, calls_high: None, windows: 0 });
        for _ in 0..5 {
            sampled.end_window(Counted { calls: 100, longest: 0.1 });
        }
        let estimate = sampled.estimate(103);
        assert_eq!((estimate.calls_low, estimate.calls), (10_100, 10_100));
        assert_eq!(sampled.estimate(50_000).calls_low, 59_997);
        assert!((student(30) - 2.042).abs() < 3e-3 && (student(11) - 2.201).abs() < 3e-3);
    }
}
