//! Sums of figures that may be anything: who can write to tables and recordings decides what they say.

/// Sums that end at the highest number. No true figure comes near to it: in nanoseconds, that is after 584 years.
pub trait SaturatingSum: Iterator<Item = u64> + Sized {
    fn saturating_sum(self) -> u64 {
        self.fold(0, u64::saturating_add)
    }
}

impl<I: Iterator<Item = u64>> SaturatingSum for I {}
