//! What observing costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// mpiprobe's own cost to the targets, from the calibration on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnCost {
    /// Calibrated cost of a probed call, ns.
    pub per_call_ns: f64,
    /// The part of it that is contained in each measured duration, ns; `null`: not known.
    pub inside_ns: Option<f64>,
    /// What of that was subtracted from times, over all ranks, ns.
    #[serde(default)]
    pub subtracted_ns: u64,
    /// Calls that were probed, inner ones included.
    pub calls: u64,
    /// `per_call_ns` × `calls`.
    pub total_ns: f64,
    /// `total_ns` of the wall time observed, summed over ranks, per cent.
    pub percent_of_wall: f64,
}

impl OwnCost {
    pub fn new(per_call_ns: f64, inside_ns: Option<f64>, calls: u64, wall_ns: u64) -> Self {
        let total_ns = per_call_ns * calls as f64;
        let percent_of_wall = if wall_ns == 0 { 0.0 } else { 100.0 * total_ns / wall_ns as f64 };
        Self { per_call_ns, inside_ns, subtracted_ns: 0, calls, total_ns, percent_of_wall }
    }

    /// The same, with what was subtracted from times (ns).
    #[must_use]
    pub fn subtracted(self, subtracted_ns: u64) -> Self {
        Self { subtracted_ns, ..self }
    }
}
