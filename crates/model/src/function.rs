//! Functions and groups of functions.

use std::iter::Sum;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Estimate, FunctionTraffic, Spread,
    names::{self, Name},
};

/// How much there was in a second of wall time; over ranks, the sum of what each did in a second of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    pub calls_per_s: f64,
    /// 0 without `--traffic`.
    pub sent_bytes_per_s: f64,
    pub received_bytes_per_s: f64,
}

impl Rates {
    /// Of one rank, observed for so long (ns).
    pub fn of(calls: u64, sent_bytes: u64, received_bytes: u64, wall_ns: u64) -> Self {
        let per_s = |amount: u64| if wall_ns == 0 { 0.0 } else { amount as f64 / (wall_ns as f64 / 1e9) };
        Self {
            calls_per_s: per_s(calls),
            sent_bytes_per_s: per_s(sent_bytes),
            received_bytes_per_s: per_s(received_bytes),
        }
    }
}

impl Sum for Rates {
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        rates.fold(Self::default(), |all, one| Self {
            calls_per_s: all.calls_per_s + one.calls_per_s,
            sent_bytes_per_s: all.sent_bytes_per_s + one.sent_bytes_per_s,
            received_bytes_per_s: all.received_bytes_per_s + one.received_bytes_per_s,
        })
    }
}

/// One function in one rank.
///
/// Of calls whose time is not known, nothing is in times, rates of time, percentiles or the histogram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionRow {
    #[serde(deserialize_with = "names::name")]
    pub name: Name,
    #[serde(deserialize_with = "names::name")]
    pub group: Name,
    /// Completed calls, and those counted at their entry alone.
    pub calls: u64,
    /// Of these, those counted at their entry alone: how long they took is not known, nor what they moved.
    #[serde(default)]
    pub untimed_calls: u64,
    /// How many there were together with those that were not counted, to keep `--max-overhead`; `null`: all were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated: Option<Estimate>,
    /// Time in the others, ns, summed over threads, without mpiprobe's own cost as far as that is known.
    pub time_ns: u64,
    /// What was taken off for that, ns: `time_ns` + `self_cost_ns` were measured.
    #[serde(default)]
    pub self_cost_ns: u64,
    pub mean_ns: f64,
    /// As measured, as are percentiles and the histogram.
    pub min_ns: u64,
    pub max_ns: u64,
    /// Median, 90th and 99th percentile, known to within an eighth.
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    /// Calls by duration: `[0]` of 0 ns, `[n]` of 2ⁿ⁻¹ to 2ⁿ − 1 ns, in `[42]` all that is longer; up to the last that is not 0.
    pub durations: Vec<u64>,
    #[serde(flatten)]
    pub rates: Rates,
    /// What the calls have moved; `null` without `--traffic`.
    pub traffic: Option<FunctionTraffic>,
    /// Calls that had not returned at the end.
    pub open_calls: u64,
    /// Time in those so far, ns: not in `time_ns`.
    pub open_ns: u64,
    /// Calls that had begun before attach.
    #[serde(default)]
    pub began_before: u64,
    /// Time since attach in those of them that have returned, ns: in neither `time_ns` nor `open_ns`.
    #[serde(default)]
    pub began_before_ns: u64,
    /// Of the wall time of the rank's threads in MPI, per cent; open calls included.
    pub wall_percent: f64,
    /// Of the rank's time in MPI, per cent; open calls included.
    pub mpi_percent: f64,
}

impl FunctionRow {
    /// Where no call of it was seen, nor what one moves.
    pub(super) fn of_no_calls(name: Name, group: Name) -> Self {
        Self {
            name,
            group,
            calls: 0,
            untimed_calls: 0,
            estimated: None,
            time_ns: 0,
            self_cost_ns: 0,
            mean_ns: 0.0,
            min_ns: 0,
            max_ns: 0,
            p50_ns: 0,
            p90_ns: 0,
            p99_ns: 0,
            durations: Vec::new(),
            rates: Rates::default(),
            traffic: None,
            open_calls: 0,
            open_ns: 0,
            began_before: 0,
            began_before_ns: 0,
            wall_percent: 0.0,
            mpi_percent: 0.0,
        }
    }

    /// Time in all calls: completed, open, and since attach in those that had begun before, ns.
    pub fn spent_ns(&self) -> u64 {
        self.time_ns.saturating_add(self.open_ns).saturating_add(self.began_before_ns)
    }
}

/// One function over ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupRow {
    #[serde(deserialize_with = "names::name")]
    pub group: Name,
    pub calls: u64,
    /// Of these, those of which the time is not known.
    #[serde(default)]
    pub untimed_calls: u64,
    /// Time, ns, open calls included.
    pub time_ns: u64,
    #[serde(flatten)]
    pub rates: Rates,
    /// What the calls have moved; `null` without `--traffic`.
    pub traffic: Option<GroupTraffic>,
    pub wall_percent: f64,
    pub mpi_percent: f64,
}

/// What the calls of one group have moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupTraffic {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Of those, what is known as an upper bound only.
    pub received_at_most_bytes: u64,
    /// Calls of which it is not known how much they moved.
    pub calls_of_unknown_bytes: u64,
}

/// One group over ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupProfile {
    #[serde(flatten)]
    pub all: GroupRow,
    /// Time per rank, ns.
    pub time_over_ranks_ns: Spread,
}

/// Calls of one function that MPI made inside another (`--nested`), over ranks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InnerCalls {
    #[serde(deserialize_with = "names::name")]
    pub outer: Name,
    #[serde(deserialize_with = "names::name")]
    pub inner: Name,
    pub calls: u64,
    pub time_ns: u64,
}
