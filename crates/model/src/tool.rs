//! Tools on MPI's profiling interface, and what each layer between program and library costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::{self, Name};

/// A tool that was probed: a library, or the program itself, whose `MPI_X` is called instead of the MPI library's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolInfo {
    /// What it is called in `layers`: the last part of its path.
    pub name: String,
    pub path: String,
    /// Functions probed.
    pub functions: usize,
    /// Functions wanted that it has but that cannot be probed.
    pub not_probed: Vec<String>,
}

/// One function that tools stand before, in one rank or over ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionLayers {
    #[serde(deserialize_with = "names::name")]
    pub function: Name,
    /// The program's calls that have entered a tool, and the time in them, ns: what the layers below add up to.
    pub calls: u64,
    pub time_ns: u64,
    /// From the program's side to the library's, by time.
    pub tools: Vec<ToolLayer>,
    pub library: LibraryLayer,
}

/// What one tool does with the calls of one function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolLayer {
    pub tool: String,
    /// Completed calls of the program that have come here: made by it, or passed on by the tool before.
    pub calls: u64,
    /// From their entries here to their returns, ns.
    pub time_ns: u64,
    /// Of those, calls that were passed on: to the next tool, or to the library.
    pub passed_on: u64,
    /// What the tool costs, ns: `time_ns` without the time from there to the return. Own calls are in it.
    pub cost_ns: u64,
    /// Of the function's `time_ns`, per cent.
    pub cost_percent: f64,
    /// Other calls of the library that the tool has made meanwhile, and the time in them, ns.
    pub own_calls: u64,
    pub own_calls_ns: u64,
    /// Those by function: also those in calls that have not returned, or never will.
    pub own: Vec<ToolCalls>,
    /// Calls that came here from a tool, made by itself.
    pub by_tools: u64,
    /// Calls that came here from MPI, made inside a call of its own.
    pub by_mpi: u64,
    /// Calls that were left without a return.
    pub left: u64,
}

/// Calls of one function of the library that a tool has made itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCalls {
    #[serde(deserialize_with = "names::name")]
    pub function: Name,
    pub calls: u64,
    pub time_ns: u64,
}

/// What is left for the library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LibraryLayer {
    /// Calls of the program that tools have passed on to it. It may have been called without a tool besides.
    pub calls: u64,
    /// Time in them, ns.
    pub time_ns: u64,
    /// Of the function's `time_ns`, per cent.
    pub percent: f64,
}
