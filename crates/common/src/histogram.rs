//! Log-linear histogram of durations: eight buckets per power of two, so a value is known to within 1/8.
//!
//! Values below 8 ns have a bucket each; from there on each octave `[2^e, 2^(e+1))` is cut into eight equal parts. Merging
//! two histograms is addition. The last bucket takes everything from 2^42 ns (73 minutes) on.
#![expect(clippy::cast_possible_truncation, reason = "bucket numbers are below 400; `try_from` is not const")]

/// Buckets per octave, as a power of two.
const SUB_BITS: u32 = 3;
const SUB: u32 = 1 << SUB_BITS;
/// First octave that is not resolved.
const TOP: u32 = 42;

/// Number of buckets.
pub const BUCKETS: usize = ((TOP - SUB_BITS + 1) * SUB) as usize;

/// Bucket of a duration in ns. Always below [`BUCKETS`].
#[inline]
pub const fn bucket_of(ns: u64) -> u32 {
    if ns < SUB as u64 {
        return ns as u32;
    }
    let exponent = floor_log2(ns);
    if exponent >= TOP {
        return BUCKETS as u32 - 1;
    }
    let sub = (ns >> (exponent - SUB_BITS)) as u32 & (SUB - 1);
    (exponent - SUB_BITS + 1) * SUB + sub
}

/// Smallest duration (ns) of a bucket.
pub const fn lower_bound(bucket: u32) -> u64 {
    if bucket < SUB {
        return bucket as u64;
    }
    let exponent = bucket / SUB + SUB_BITS - 1;
    let sub = (bucket % SUB) as u64;
    (SUB as u64 + sub) << (exponent - SUB_BITS)
}

/// Smallest duration (ns) that is above a bucket; `None` for the last one, which is open.
pub const fn upper_bound(bucket: u32) -> Option<u64> {
    if bucket + 1 >= BUCKETS as u32 { None } else { Some(lower_bound(bucket + 1)) }
}

/// Position of the highest set bit; 0 of 0.
#[inline]
pub(crate) const fn floor_log2(value: u64) -> u32 {
    if cfg!(target_arch = "bpf") { floor_log2_of_bits(value) } else { (value | 1).ilog2() }
}

/// BPF has no instruction for it: all bits below are set, too, and counted, without a branch, each of which would double the ways
/// that the kernel's verifier has to go.
#[inline]
const fn floor_log2_of_bits(value: u64) -> u32 {
    let mut ones = value | 1;
    ones |= ones >> 1;
    ones |= ones >> 2;
    ones |= ones >> 4;
    ones |= ones >> 8;
    ones |= ones >> 16;
    ones |= ones >> 32;
    ones.count_ones() - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floor_log2_agrees_with_the_cpu() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) | 1, u64::MAX >> shift] {
                assert_eq!(floor_log2_of_bits(value), value.ilog2(), "{value}");
            }
        }
    }

    /// Invariant TABLES-SHARED.
    #[test]
    fn buckets_are_contiguous_and_contain_their_values() {
        for bucket in 0..BUCKETS as u32 {
            let low = lower_bound(bucket);
            assert_eq!(bucket_of(low), bucket, "lower bound of {bucket}");
            if let Some(high) = upper_bound(bucket) {
                assert_eq!(bucket_of(high - 1), bucket, "upper bound of {bucket}");
                assert_eq!(bucket_of(high), bucket + 1);
                assert!(
                    low < u64::from(SUB) || high - low <= low / 8,
                    "bucket {bucket} is wider than 1/8 of its value"
                );
            }
        }
    }

    #[test]
    fn everything_long_falls_into_the_last_bucket() {
        assert_eq!(bucket_of((1 << 42) - 1), BUCKETS as u32 - 1);
        assert_eq!(bucket_of(1 << 42), BUCKETS as u32 - 1);
        assert_eq!(bucket_of(u64::MAX), BUCKETS as u32 - 1);
    }
}
