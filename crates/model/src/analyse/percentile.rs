//! Percentiles and powers of two from the in-kernel histogram.

use mpiprobe_common::{FunctionStats, histogram};

use crate::SaturatingSum as _;

/// The duration (ns) that a share of the calls did not exceed, known to within a bucket: an eighth of its value.
///
/// The middle of the bucket, kept within what was really measured. 0 without calls.
pub(super) fn percentile(stats: &FunctionStats, share: f64) -> u64 {
    let counted: u64 = stats.histogram.iter().copied().saturating_sum();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a number of calls")]
    let wanted = ((counted as f64 * share).ceil() as u64).max(1);
    let mut seen = 0_u64;
    for (bucket, &calls) in (0u32..).zip(&stats.histogram) {
        seen = seen.saturating_add(calls);
        if seen >= wanted {
            let low = histogram::lower_bound(bucket);
            let middle = histogram::upper_bound(bucket).map_or(low, |high| low + (high - 1 - low) / 2);
            return middle.clamp(stats.min_ns().unwrap_or(0).min(stats.max_ns), stats.max_ns);
        }
    }
    0
}

/// What is really known of a percentile: the shortest and the longest duration (ns) that it can be, by its bucket and by the
/// extremes of the calls.
pub fn percentile_bounds(ns: u64, min_ns: u64, max_ns: u64) -> (u64, u64) {
    let bucket = histogram::bucket_of(ns);
    let highest = histogram::upper_bound(bucket).map_or(max_ns, |end| (end - 1).min(max_ns));
    (histogram::lower_bound(bucket).max(min_ns).min(highest), highest)
}

/// Calls by the number of significant bits of their duration in ns, up to the last that is not 0.
pub(super) fn octaves(stats: &FunctionStats) -> Vec<u64> {
    let mut octaves: Vec<u64> = Vec::new();
    for (bucket, &calls) in (0u32..).zip(&stats.histogram).filter(|(_, calls)| **calls > 0) {
        let bits = (u64::BITS - histogram::lower_bound(bucket).leading_zeros()) as usize;
        octaves.resize(octaves.len().max(bits + 1), 0);
        if let Some(sum) = octaves.get_mut(bits) {
            *sum = sum.saturating_add(calls);
        }
    }
    octaves
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
    fn the_bounds_of_a_percentile_contain_the_exact_one() {
        let durations: Vec<u64> = (1..=1000).map(|n| n * n + 17).collect();
        let stats = of(durations.iter().copied());
        let (min, max) = (18, 1_000_017);
        for (share, exact) in [(0.5, durations[499]), (0.9, durations[899]), (0.99, durations[989]), (1.0, max)] {
            let (low, high) = percentile_bounds(percentile(&stats, share), min, max);
            assert!((low..=high).contains(&exact), "{share}: {exact} is not within {low} to {high}");
            assert!(high - low <= exact / 8, "{share}: {low} to {high}");
        }
        assert_eq!(percentile_bounds(1000, 1000, 1000), (1000, 1000));
        assert_eq!(percentile_bounds(1 << 50, 5, (1 << 50) + 1), (15 << 38, (1 << 50) + 1), "the last one is open");
    }

    #[test]
    fn octaves_have_all_calls() {
        assert_eq!(octaves(&of([0, 1, 2, 3, 4, 1023, 1024, 2047])), [1, 1, 2, 1, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(octaves(&of([u64::MAX - 1])).len(), 43);
        assert!(octaves(&FunctionStats::ZERO).is_empty());
    }

    #[test]
    fn no_calls_no_percentile() {
        assert_eq!(percentile(&FunctionStats::ZERO, 0.5), 0);
    }
}
