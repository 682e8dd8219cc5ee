//! Percentiles and powers of two from the in-kernel histogram.

use mpiprobe_common::{FunctionStats, histogram};

/// Buckets that are looked at together: most of them are empty, and whether all of a group are takes a few instructions.
const GROUP: usize = 16;

/// How long calls took, as far as the histogram tells.
#[derive(Debug, Default)]
pub(super) struct Durations {
    /// The durations (ns) that half, nine tenths and 99 hundredths of the calls did not exceed.
    pub(super) p50_ns: u64,
    pub(super) p90_ns: u64,
    pub(super) p99_ns: u64,
    /// Calls by the number of significant bits of their duration in ns, up to the last that is not 0.
    pub(super) octaves: Vec<u64>,
}

impl Durations {
    /// Histograms are long and nearly empty, and there is one for each function of each rank: each is gone through once.
    pub(super) fn of(stats: &FunctionStats) -> Self {
        // Which calls are in which bucket: buckets with the number of calls in them and all before.
        let mut counted: Vec<(u32, u64)> = Vec::new();
        let mut octaves: Vec<u64> = Vec::new();
        let mut seen = 0_u64;
        let groups = (0u32..).step_by(GROUP).zip(stats.histogram.chunks(GROUP));
        let filled = groups.filter(|(_, group)| group.iter().fold(0, |all, calls| all | calls) != 0);
        let buckets = filled.flat_map(|(first, group)| (first..).zip(group));
        for (bucket, &calls) in buckets.filter(|(_, calls)| **calls > 0) {
            seen = seen.saturating_add(calls);
            counted.push((bucket, seen));
            let bits = (u64::BITS - histogram::lower_bound(bucket).leading_zeros()) as usize;
            octaves.resize(octaves.len().max(bits + 1), 0);
            if let Some(sum) = octaves.get_mut(bits) {
                *sum = sum.saturating_add(calls);
            }
        }
        let [p50_ns, p90_ns, p99_ns] = [0.50, 0.90, 0.99].map(|share| percentile(stats, &counted, share));
        Self { p50_ns, p90_ns, p99_ns, octaves }
    }
}

/// The duration (ns) that a share of the calls did not exceed, known to within a bucket: an eighth of its value.
///
/// The middle of the bucket, kept within what was really measured. 0 without calls.
fn percentile(stats: &FunctionStats, counted: &[(u32, u64)], share: f64) -> u64 {
    let all = counted.last().map_or(0, |(_, seen)| *seen);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a number of calls")]
    let wanted = ((all as f64 * share).ceil() as u64).clamp(1, all.max(1));
    let Some(&(bucket, _)) = counted.iter().find(|(_, seen)| *seen >= wanted) else { return 0 };
    let low = histogram::lower_bound(bucket);
    let middle = histogram::upper_bound(bucket).map_or(low, |high| low + (high - 1 - low) / 2);
    middle.clamp(stats.min_ns().unwrap_or(0).min(stats.max_ns), stats.max_ns)
}

/// What is really known of a percentile: the shortest and the longest duration (ns) that it can be, by its bucket and by the
/// extremes of the calls.
pub fn percentile_bounds(ns: u64, min_ns: u64, max_ns: u64) -> (u64, u64) {
    let bucket = histogram::bucket_of(ns);
    let highest = histogram::upper_bound(bucket).map_or(max_ns, |end| (end - 1).min(max_ns));
    (histogram::lower_bound(bucket).max(min_ns).min(highest), highest)
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
        let Durations { p50_ns, p90_ns, p99_ns, .. } = Durations::of(&of([1000]));
        assert_eq!([p50_ns, p90_ns, p99_ns], [1000; 3]);
    }

    #[test]
    fn percentiles_are_right_to_within_an_eighth() {
        let stats = of((1..=10_000).map(|n| n * 100));
        let Durations { p50_ns, p90_ns, p99_ns, .. } = Durations::of(&stats);
        for (found, exact) in [(p50_ns, 500_000.0), (p90_ns, 900_000.0), (p99_ns, 990_000.0)] {
            assert!((found as f64 - exact).abs() <= exact / 8.0, "{exact}: {found}");
        }
    }

    #[test]
    fn the_bounds_of_a_percentile_contain_the_exact_one() {
        let durations: Vec<u64> = (1..=1000).map(|n| n * n + 17).collect();
        let stats = of(durations.iter().copied());
        let (min, max) = (18, 1_000_017);
        let Durations { p50_ns, p90_ns, p99_ns, .. } = Durations::of(&stats);
        for (found, exact) in [(p50_ns, durations[499]), (p90_ns, durations[899]), (p99_ns, durations[989])] {
            let (low, high) = percentile_bounds(found, min, max);
            assert!((low..=high).contains(&exact), "{exact} is not within {low} to {high}");
            assert!(high - low <= exact / 8, "{exact}: {low} to {high}");
        }
        assert_eq!(percentile_bounds(1000, 1000, 1000), (1000, 1000));
        assert_eq!(percentile_bounds(1 << 50, 5, (1 << 50) + 1), (15 << 38, (1 << 50) + 1), "the last one is open");
    }

    #[test]
    fn octaves_have_all_calls() {
        assert_eq!(Durations::of(&of([0, 1, 2, 3, 4, 1023, 1024, 2047])).octaves, [1, 1, 2, 1, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(Durations::of(&of([u64::MAX - 1])).octaves.len(), 43);
        assert!(Durations::of(&FunctionStats::ZERO).octaves.is_empty());
    }

    #[test]
    fn no_calls_no_percentile() {
        assert_eq!(Durations::of(&FunctionStats::ZERO).p50_ns, 0);
    }
}
