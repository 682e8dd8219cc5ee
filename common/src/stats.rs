//! Statistics per process and function.

use crate::histogram::BUCKETS;

/// What all completed outermost calls of one function in one process image cost.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FunctionStats {
    /// Completed calls.
    pub calls: u64,
    /// Sum of durations, ns.
    pub time_ns: u64,
    /// `u64::MAX` minus the shortest duration, so that a zeroed entry means "none yet" and both extremes are maxima.
    pub min_complement: u64,
    /// Longest duration, ns.
    pub max_ns: u64,
    /// Completed calls by duration, see [`crate::histogram`].
    pub histogram: [u64; BUCKETS],
}

impl FunctionStats {
    pub const ZERO: Self = Self { calls: 0, time_ns: 0, min_complement: 0, max_ns: 0, histogram: [0; BUCKETS] };

    /// Shortest duration, ns; `None` before the first call.
    pub const fn min_ns(&self) -> Option<u64> {
        if self.min_complement == 0 { None } else { Some(u64::MAX - self.min_complement) }
    }
}

/// Which calls made inside MPI are counted together (`--nested`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InnerStats {
    /// Completed inner calls.
    pub calls: u64,
    /// Sum of durations, ns. Inner calls nest: times of different depths overlap.
    pub time_ns: u64,
}
