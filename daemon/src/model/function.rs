//! Functions and groups of functions.

use serde::Serialize;

use super::{FunctionTraffic, Spread};

/// One function in one rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionRow {
    pub name: &'static str,
    pub group: &'static str,
    /// Completed calls.
    pub calls: u64,
    /// Time in them, ns, summed over threads.
    pub time_ns: u64,
    pub mean_ns: f64,
    pub min_ns: u64,
    pub max_ns: u64,
    /// Median and 99th percentile, known to within an eighth.
    pub p50_ns: u64,
    pub p99_ns: u64,
    /// What the calls have moved; `null` without `--traffic`.
    pub traffic: Option<FunctionTraffic>,
    /// Calls that had not returned at the end.
    pub open_calls: u64,
    /// Time in those so far, ns: not in `time_ns`.
    pub open_ns: u64,
    /// Of the wall time of the rank's threads in MPI, per cent; open calls included.
    pub wall_percent: f64,
    /// Of the rank's time in MPI, per cent; open calls included.
    pub mpi_percent: f64,
}

/// One function over ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FunctionProfile {
    /// Sums over ranks; extremes and percentiles of all calls.
    #[serde(flatten)]
    pub all: FunctionRow,
    /// Calls per rank.
    pub calls_over_ranks: Spread,
    /// Time per rank, ns, open calls included.
    pub time_over_ranks_ns: Spread,
}

/// One group in one rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupRow {
    pub group: &'static str,
    pub calls: u64,
    /// Time, ns, open calls included.
    pub time_ns: u64,
    pub wall_percent: f64,
    pub mpi_percent: f64,
}

/// One group over ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupProfile {
    #[serde(flatten)]
    pub all: GroupRow,
    /// Time per rank, ns.
    pub time_over_ranks_ns: Spread,
}

/// Calls of one function that MPI made inside another (`--nested`), over ranks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InnerCalls {
    pub outer: &'static str,
    pub inner: &'static str,
    pub calls: u64,
    pub time_ns: u64,
}
