//! The whole profile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Budget, Efficiency, Estimate, FunctionLayers, FunctionProfile, FunctionRow, FunctionTraffic, GroupProfile,
    InnerCalls, Losses, OwnCost, PhaseProfile, RankProfile, Rows, SaturatingSum as _, Spread, Standstill, TableRoom,
    ToolInfo, TrafficProfile, UnmatchedRow, WaitStates, Window,
    names::{self, Name},
};

/// Everything that was found out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    #[serde(deserialize_with = "names::schema")]
    pub schema: Name,
    #[serde(deserialize_with = "names::name")]
    pub mpiprobe_version: Name,
    pub host: String,
    /// Beginning of observation, UTC, RFC 3339.
    pub began: String,
    /// Time since then, ns.
    pub observed_ns: u64,
    /// `null` in an interval of a run that goes on.
    pub end: Option<EndReason>,
    /// Nothing was lost and nobody missed.
    pub complete: bool,
    /// Otherwise, what was.
    pub incomplete_because: Vec<String>,
    pub engine: EngineInfo,
    pub jobs: Vec<JobInfo>,
    pub totals: Totals,
    /// `null` in a profile that stands alone.
    #[serde(default)]
    pub interval: Option<Window>,
    pub groups: Vec<GroupProfile>,
    pub functions: Vec<FunctionProfile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner_calls: Option<Vec<InnerCalls>>,
    /// `null` without `--traffic`.
    pub traffic: Option<TrafficProfile>,
    /// Marked by `MPI_Pcontrol`; most time in MPI first.
    pub phases: Vec<PhaseProfile>,
    /// Functions that tools stand before; most time first.
    #[serde(default)]
    pub layers: Vec<FunctionLayers>,
    pub ranks: Rows<RankProfile>,
    /// Sends and receives under way without their other end, by rank; empty in a profile that stands alone.
    #[serde(default)]
    pub unmatched: Vec<UnmatchedRow>,
    /// Why ranks do not go on, as the stacks of their threads have told; empty: they do, or nobody has looked, or it is not known.
    #[serde(default)]
    pub standstill: Vec<Standstill>,
    /// Who has waited for whom since the beginning of observation, and why; `null` without `--waits`.
    #[serde(default)]
    pub wait_states: Option<WaitStates>,
    pub losses: Losses,
    pub own_cost: OwnCost,
    /// What mpiprobe may cost each rank, and what is counted with less care for that; `null` where processes count themselves.
    #[serde(default)]
    pub budget: Option<Budget>,
}

/// Why observation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// All targets have ended.
    TargetsEnded,
    /// `--duration` is over.
    Duration,
    /// The user, or the system, asked for it (SIGINT, SIGTERM, SIGHUP).
    Interrupted,
}

/// How the numbers were obtained.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EngineInfo {
    /// `ebpf` or `wrapper`.
    #[serde(deserialize_with = "names::name")]
    pub engine: Name,
    /// How the probes are attached.
    pub attached_by: String,
    /// Whether mpiprobe has started the job itself (`mpiprobe run`).
    #[serde(default)]
    pub launched: bool,
    /// Time that attaching took, ns.
    pub attach_ns: u64,
    pub libraries: Vec<LibraryInfo>,
    /// Tools on MPI's profiling interface that were probed besides.
    #[serde(default)]
    pub tools: Vec<ToolInfo>,
}

impl EngineInfo {
    /// What decides how much there is room for in its tables.
    pub fn table_room(&self) -> TableRoom {
        match self.engine {
            "ebpf" if self.launched => TableRoom::Fixed,
            "ebpf" => TableRoom::Options,
            _ => TableRoom::Files,
        }
    }
}

/// A file that was probed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LibraryInfo {
    pub path: String,
    pub implementation: String,
    pub build_id: Option<String>,
    /// Functions probed.
    pub functions: usize,
    /// Functions whose probe is single-stepped by the kernel: their calls cost several times more.
    pub slow: Vec<SlowSite>,
    /// Functions wanted that this library has but that cannot be probed.
    pub not_probed: Vec<String>,
}

/// A function whose probe is dear.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlowSite {
    #[serde(deserialize_with = "names::name")]
    pub function: Name,
    pub reason: String,
}

/// A job that is observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobInfo {
    pub id: String,
    /// Ranks of it on this node that are observed.
    pub ranks: usize,
    /// Size of its `MPI_COMM_WORLD`; `null`: unknown.
    pub size: Option<u32>,
}

/// Sums over everything.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    pub calls: u64,
    /// Per rank, ns.
    pub wall_ns: Spread,
    /// Per rank, ns.
    pub mpi_ns: Spread,
    /// Per rank of which it is known, per cent; its `sum` means nothing and is the sum all the same.
    pub mpi_percent: Spread,
    /// Time in MPI of all ranks over wall time of all ranks, per cent; `null`: not known, as of a rank.
    pub mpi_percent_of_all: Option<f64>,
    /// Without what starts and ends MPI. `null` where nobody was seen to do anything but MPI, or where it is not known of one rank.
    pub efficiency: Option<Efficiency>,
}

/// Why requests may be complete that nobody has seen to be.
pub(crate) const COMPLETED_UNSEEN: &str = "requests were made and not seen to be complete, which MPI_Test or the like may have completed: such functions were not chosen (--functions)";

impl Profile {
    /// Functions that complete requests were not looked at: those that are left may be complete, and what they have received is not known.
    pub fn leave_requests_open(&mut self) {
        let is_left = |rank: &RankProfile| {
            rank.losses.requests_not_followed > 0
                || rank.traffic.as_ref().is_some_and(|traffic| !traffic.pending.is_empty())
        };
        if self.ranks.iter().any(is_left) {
            self.incomplete_because.push(COMPLETED_UNSEEN.to_owned());
            self.complete = false;
        }
    }

    /// Takes in what the observer may cost, and estimates by process and function of calls that were not all counted.
    pub fn limit(&mut self, budget: Budget, estimates: &[(u32, Name, Estimate)]) {
        for &(pid, function, estimate) in estimates {
            // Of several images of a process the last one is the one that calls.
            let Some(rank) = self.ranks.iter_mut().rev().find(|rank| rank.pid == pid) else { continue };
            let calls = estimate.calls;
            let counted = if let Some(row) = rank.functions.iter_mut().find(|row| row.name == function) {
                row.estimated = Some(Estimate { calls: calls.max(row.calls), ..estimate });
                row.calls
            } else if let Some(of_others) = self.functions.iter().find(|other| other.all.name == function) {
                // It may have been called all the same.
                let FunctionRow { group, traffic, .. } = &of_others.all;
                let traffic = traffic.as_ref().map(|_| FunctionTraffic::default());
                let none = FunctionRow::of_no_calls(function, group);
                rank.functions.push(FunctionRow { estimated: Some(estimate), traffic, ..none });
                0
            } else {
                continue;
            };
            rank.untimed_calls = rank.untimed_calls.saturating_add(calls.saturating_sub(counted));
        }
        for function in &mut self.functions {
            let name = function.all.name;
            let rows = self.ranks.iter().flat_map(|rank| &rank.functions).filter(|row| row.name == name);
            function.all.estimated = Estimate::of_all(rows.map(|row| (row.calls, row.estimated)));
        }
        let uncounted = self.functions.iter().filter_map(|function| {
            function.all.estimated.map(|estimate| estimate.calls.saturating_sub(function.all.calls))
        });
        if self.functions.iter().any(|function| function.all.estimated.is_some()) {
            let uncounted = uncounted.saturating_sum();
            self.incomplete_because
                .push(format!("at least about {uncounted} calls were not counted, to keep --max-overhead"));
        }
        if budget.traffic_until_ns.is_some() {
            let when = if budget.traffic_is_back { "for some time" } else { "from some time on" };
            self.incomplete_because
                .push(format!("{when} it was not found out what calls move, to keep --max-overhead"));
        }
        self.complete = self.incomplete_because.is_empty();
        self.budget = Some(budget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn estimates_are_marked_in_the_profile() {
        let mut profile = sample::profile(sample::ranks(2));
        for rank in &mut profile.ranks {
            rank.functions = vec![sample::function("MPI_Iprobe", 10, 5).all].into();
        }
        profile.functions = vec![sample::function("MPI_Iprobe", 20, 5), sample::function("MPI_Send", 3, 5)];
        let pid = profile.ranks.iter().next().unwrap().pid;
        let estimate = Estimate { calls: 1000, calls_low: 900, calls_high: Some(1100), windows: 4 };
        profile.limit(Budget::default(), &[(pid, "MPI_Iprobe", estimate)]);
        assert_eq!(profile.functions[0].all.estimated.unwrap().calls, 1010);
        assert_eq!(profile.functions[1].all.estimated, None);
        // A rank that was not seen to call what others call may have done so.
        let unseen = Estimate { calls: 0, calls_low: 0, calls_high: None, windows: 3 };
        profile.limit(Budget::default(), &[(pid, "MPI_Send", unseen), (pid, "MPI_Recv", unseen)]);
        let functions = &profile.ranks.iter().next().unwrap().functions;
        assert_eq!(
            functions.iter().map(|row| (row.name, row.calls)).collect::<Vec<_>>(),
            [("MPI_Iprobe", 10), ("MPI_Send", 0)]
        );
        assert_eq!(profile.functions[1].all.estimated.unwrap().calls_high, None);
        assert!(
            !profile.complete
                && profile.incomplete_because.iter().any(|why| why.contains("about 990 calls were not counted"))
        );
    }
}
