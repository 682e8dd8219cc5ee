//! Phases that the program has marked by `MPI_Pcontrol`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FunctionRow, Spread};

/// One phase in one rank. Calls count in the innermost phase that is open; time of phases includes those opened inside.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RankPhase {
    /// As the program calls it, or `phase N` by its level.
    pub name: String,
    /// The first argument of `MPI_Pcontrol`.
    pub level: i32,
    /// How often it was opened.
    pub opened: u64,
    /// Whether it was open when this was taken, or when the process ended.
    pub is_open: bool,
    /// How long it was open, ns.
    pub wall_ns: u64,
    /// Completed calls, and the time in them, ns.
    pub calls: u64,
    pub mpi_ns: u64,
    pub functions: Vec<FunctionRow>,
}

/// One phase over ranks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseProfile {
    pub name: String,
    pub level: i32,
    /// Ranks that have opened it.
    pub ranks: usize,
    pub opened: u64,
    pub calls: u64,
    pub mpi_ns: u64,
    /// Per rank that has opened it, ns.
    pub wall_over_ranks_ns: Spread,
    pub mpi_over_ranks_ns: Spread,
    /// Sums over ranks.
    pub functions: Vec<FunctionRow>,
}
