//! Statistics per process and function.

use bytemuck::{Pod, Zeroable};

use crate::histogram::{BUCKETS, floor_log2};

/// What all completed outermost calls of one function in one process image cost.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct FunctionStats {
    /// Completed calls, and those counted at their entry alone. No engine counts them, because each word that is counted costs: they are
    /// what `histogram` and `untimed` add up to, see [`Self::with_numbers`].
    pub calls: u64,
    /// Sum of durations, ns.
    pub time_ns: u64,
    /// `u64::MAX` minus the shortest duration, so that a zeroed entry means "none yet" and both extremes are maxima.
    pub min_complement: u64,
    /// Longest duration, ns.
    pub max_ns: u64,
    /// Completed calls by duration, see [`crate::histogram`].
    pub histogram: [u64; BUCKETS],
    /// What the calls have sent.
    pub sent: Volume,
    /// What has arrived by them.
    pub received: Volume,
    /// Of the bytes received, what is known as an upper bound only, because the program ignores the status.
    pub received_at_most: u64,
    /// Calls of which it is not known what they moved.
    pub unknown: u64,
    /// Of the calls, those counted at their entry alone: how long they took is not known.
    pub untimed: u64,
}

/// Amounts of data, one for each call that moved some in this direction.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Volume {
    /// Amounts of more than zero bytes, and messages of none. As [`FunctionStats::calls`] no engine counts them: they are what `sizes` adds
    /// up to.
    pub messages: u64,
    /// Bytes.
    pub bytes: u64,
    /// `u64::MAX` minus the smallest amount (bytes); 0: none yet.
    pub min_complement: u64,
    /// Largest amount, bytes.
    pub max: u64,
    /// Amounts by size: `[0]` none, `[n]` from 2ⁿ⁻¹ to 2ⁿ − 1 bytes, the last one whatever is more.
    pub sizes: [u64; SIZES],
}

/// Buckets of [`Volume::sizes`].
pub const SIZES: usize = LAST_SIZE as usize + 1;
const LAST_SIZE: u32 = 39;

/// Bucket of an amount of bytes: the number of its significant bits, at most the last one.
#[inline]
pub const fn size_bucket(bytes: u64) -> u32 {
    if bytes == 0 {
        return 0;
    }
    let bits = floor_log2(bytes) + 1;
    if bits < LAST_SIZE { bits } else { LAST_SIZE }
}

impl Volume {
    pub const ZERO: Self = Self { messages: 0, bytes: 0, min_complement: 0, max: 0, sizes: [0; SIZES] };

    /// Adds another one's amounts.
    pub fn merge(&mut self, other: &Self) {
        self.messages = self.messages.saturating_add(other.messages);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.min_complement = self.min_complement.max(other.min_complement);
        self.max = self.max.max(other.max);
        add_each(&mut self.sizes, &other.sizes);
    }

    /// Smallest amount, bytes; `None` before the first.
    pub const fn min(&self) -> Option<u64> {
        if self.min_complement == 0 { None } else { Some(u64::MAX - self.min_complement) }
    }
}

impl FunctionStats {
    pub const ZERO: Self = Self {
        calls: 0,
        time_ns: 0,
        min_complement: 0,
        max_ns: 0,
        histogram: [0; BUCKETS],
        sent: Volume::ZERO,
        received: Volume::ZERO,
        received_at_most: 0,
        unknown: 0,
        untimed: 0,
    };

    /// What an engine has counted, with the numbers of calls and messages that follow from it.
    #[must_use]
    pub fn with_numbers(mut self) -> Self {
        self.calls = sum_on(self.untimed, &self.histogram);
        self.sent.messages = sum_on(0, &self.sent.sizes);
        self.received.messages = sum_on(0, &self.received.sizes);
        self
    }

    /// Adds another one's calls.
    pub fn merge(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
        self.min_complement = self.min_complement.max(other.min_complement);
        self.max_ns = self.max_ns.max(other.max_ns);
        add_each(&mut self.histogram, &other.histogram);
        self.sent.merge(&other.sent);
        self.received.merge(&other.received);
        self.received_at_most = self.received_at_most.saturating_add(other.received_at_most);
        self.unknown = self.unknown.saturating_add(other.unknown);
        self.untimed = self.untimed.saturating_add(other.untimed);
    }

    /// Whether nothing has been counted yet. What arrives for an operation may be counted elsewhere than the call that began it.
    pub const fn is_empty(&self) -> bool {
        self.calls == 0 && self.sent.messages == 0 && self.received.messages == 0 && self.unknown == 0
    }

    /// Shortest duration, ns; `None` before the first call.
    pub const fn min_ns(&self) -> Option<u64> {
        if self.min_complement == 0 { None } else { Some(u64::MAX - self.min_complement) }
    }
}

/// Distributions are long and nearly empty.
fn add_each(sums: &mut [u64], numbers: &[u64]) {
    /// Numbers that are looked at at once.
    const AT_ONCE: usize = 8;
    for (sums, numbers) in sums.chunks_mut(AT_ONCE).zip(numbers.chunks(AT_ONCE)) {
        if numbers.iter().fold(0, |any, number| any | number) != 0 {
            for (sum, number) in sums.iter_mut().zip(numbers) {
                *sum = sum.saturating_add(*number);
            }
        }
    }
}

fn sum_on(before: u64, numbers: &[u64]) -> u64 {
    numbers.iter().fold(before, |sum, number| sum.saturating_add(*number))
}

/// Which calls made inside MPI are counted together (`--nested`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
pub struct InnerKey {
    /// Process slot.
    pub process: u32,
    /// Function id of the outermost call.
    pub outer: u16,
    /// Function id of the call made inside it.
    pub inner: u16,
}

/// Calls of one function made inside another one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct InnerStats {
    /// Completed inner calls.
    pub calls: u64,
    /// Sum of durations, ns. Inner calls nest: times of different depths overlap.
    pub time_ns: u64,
}
