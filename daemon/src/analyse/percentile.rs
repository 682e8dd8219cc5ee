//! Percentiles from the in-kernel histogram.

use mpiprobe_common::{FunctionStats, histogram};

/// The duration (ns) that a share of the calls did not exceed, known to within a bucket: an eighth of its value.
///
/// The middle of the bucket, kept within what was really measured. 0 without calls.
pub(super) fn percentile(stats: &FunctionStats, share: f64) -> u64 {
    let counted: u64 = stats.histogram.iter().sum();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a number of calls")]
    let wanted = ((counted as f64 * share).ceil() as u64).max(1);
    let mut seen = 0;
    for (bucket, &calls) in (0u32..).zip(&stats.histogram) {
        seen += calls;
        if seen >= wanted {
            let low = histogram::lower_bound(bucket);
            let middle = histogram::upper_bound(bucket).map_or(low, |high| low + (high - 1 - low) / 2);
            return middle.clamp(stats.min_ns().unwrap_or(0).min(stats.max_ns), stats.max_ns);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(durations: impl IntoIterator<Item = u64>) -> FunctionStats {
        let mut stats = FunctionStats::ZERO;
        for ns in durations {
            stats.calls += 1;
            stats.time_ns += ns;
            stats.max_ns = stats.max_ns.max(ns);
            stats.min_complement = stats.min_complement.max(u64::MAX - ns);
            stats.histogram[histogram::bucket_of(ns) as usize] += 1;
        }
        stats
    }

    #[test]
    fn a_single_call_is_every_percentile_of_itself() {
        let stats = of([1000]);
        assert_eq!((percentile(&stats, 0.5), percentile(&stats, 0.99)), (1000, 1000));
    }

    #[test]
    fn percentiles_are_right_to_within_an_eighth() {
        let stats = of((1..=10_000).map(|n| n * 100));
        for (share, exact) in [(0.5, 500_000.0), (0.99, 990_000.0)] {
            let found = percentile(&stats, share) as f64;
            assert!((found - exact).abs() <= exact / 8.0, "{share}: {found}");
        }
    }

    #[test]
    fn no_calls_no_percentile() {
        assert_eq!(percentile(&FunctionStats::ZERO, 0.5), 0);
    }
}
