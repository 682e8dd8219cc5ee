//! Ranks.

use std::sync::Arc;

use mpiprobe_discover::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    CallArguments, FunctionLayers, FunctionRow, GroupRow, Losses, RankPhase, RankTraffic, RecentCalls, Rows,
    names::{self, Name},
};

/// What has become of a rank's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RankState {
    /// Still there.
    Running,
    /// It has ended.
    Ended,
    /// It has exec'ed another program: what it did before is this row.
    Execed,
}

/// One rank: one process image.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RankProfile {
    /// Rank in `MPI_COMM_WORLD`; `null`: unknown.
    pub rank: Option<u32>,
    /// Size of `MPI_COMM_WORLD`; `null`: unknown.
    pub size: Option<u32>,
    pub job: Option<String>,
    /// Name of the node.
    pub host: String,
    pub pid: u32,
    pub executable: String,
    pub state: RankState,
    /// Running, but stopped by a signal or a debugger.
    pub stopped: bool,
    /// How long before this was taken it ended, ns; `null`: it goes on.
    #[serde(default)]
    pub ended_ago_ns: Option<u64>,
    /// With what it has ended: `exit_status`, or the number of the `signal`; `null`: it was successful, it goes on, or nobody knows.
    #[serde(default)]
    pub failure: Option<Failure>,
    /// Wall time observed, ns.
    pub wall_ns: u64,
    /// Time in MPI, ns: completed calls of all threads, without mpiprobe's own cost, and open ones up to now.
    pub mpi_ns: u64,
    /// What was taken off for that, ns.
    #[serde(default)]
    pub self_cost_ns: u64,
    /// Wall time of the threads that use MPI, ns: `wall_ns`, or, if that is more, the sum of their lives since their first call.
    pub thread_wall_ns: u64,
    /// `mpi_ns` of `thread_wall_ns`, per cent; `null`: not known, because `unseen_ns` is more than a tenth of `wall_ns`.
    pub mpi_percent: Option<f64>,
    /// Of `wall_ns`, what may have been spent in a call that began before attach, ns: when nobody knows whether it was.
    #[serde(default)]
    pub unseen_ns: u64,
    /// Completed calls.
    pub calls: u64,
    /// Calls that took time which is not in `mpi_ns`: those counted at their entry alone, and those that were not counted, as estimated.
    #[serde(default)]
    pub untimed_calls: u64,
    /// Threads that have entered MPI.
    pub threads_in_mpi: u64,
    /// Calls that MPI made inside those calls: not in `calls` or `mpi_ns`.
    pub inner_calls: u64,
    /// Calls seen inside a call that had begun before attach.
    pub inner_calls_of_unseen: u64,
    /// From the beginning of observation to the first MPI call seen, ns: it may contain a call that began before attach.
    /// `null`: no call seen at all.
    pub before_first_call_ns: Option<u64>,
    pub functions: Rows<FunctionRow>,
    pub groups: Vec<GroupRow>,
    /// What the calls have moved; `null` without `--traffic`.
    pub traffic: Option<RankTraffic>,
    /// Calls that had not returned when this was taken, or when the process ended.
    pub open_calls: Vec<OpenCallInfo>,
    /// What the rank asks MPI again and again, and calls nothing else, while its job does not go on; `null`: nothing.
    #[serde(default, deserialize_with = "names::optional")]
    pub asks: Option<Name>,
    /// Calls that had begun before attach, as looks at the stacks of threads have found them; most time first.
    #[serde(default)]
    pub began_before: Vec<BeganBeforeRow>,
    /// Threads that have entered MPI: those that live, and then, in the order of their ends, those that have ended.
    pub threads: Vec<ThreadProfile>,
    /// What further ones have done that have ended; `null`: there are none.
    #[serde(default)]
    pub other_threads: Option<OtherThreads>,
    /// Marked by `MPI_Pcontrol`, in the order of their first opening.
    pub phases: Vec<RankPhase>,
    /// Functions that tools stand before; most time first.
    #[serde(default)]
    pub layers: Vec<FunctionLayers>,
    /// Calls entered while the program had switched counting off, those made by MPI itself included; they are nowhere else.
    pub calls_while_off: u64,
    /// How long it was off, ns: not in `wall_ns`.
    pub off_ns: u64,
    pub losses: Losses,
    /// The last calls; `None`: nobody wants to see them.
    #[serde(skip)]
    pub recent: Option<Arc<RecentCalls>>,
}

impl RankProfile {
    /// Bytes that its calls have sent and received; `None`: not known.
    pub fn moved_bytes(&self) -> Option<(u64, u64)> {
        self.traffic.as_ref()?;
        let groups = self.groups.iter().filter_map(|group| group.traffic.as_ref());
        Some(groups.fold((0, 0), |(sent, received), traffic| {
            (sent.saturating_add(traffic.sent_bytes), received.saturating_add(traffic.received_bytes))
        }))
    }
}

/// A call that has not returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is something that was seen of the call, or not")]
pub struct OpenCallInfo {
    #[serde(deserialize_with = "names::name")]
    pub function: Name,
    pub tid: u32,
    /// How long it has been open, ns.
    pub open_ns: u64,
    /// Return address in the process; `null`: not known.
    pub call_site: Option<u64>,
    /// The same as a place in the source, or as near to that as the program's files allow; `null`: not known.
    pub site: Option<String>,
    /// `null`: not known.
    pub arguments: Option<CallArguments>,
    /// The thread was ended inside the call.
    pub ended_inside: bool,
    /// It had begun before attach: `open_ns` counts from there.
    #[serde(default)]
    pub began_before: bool,
    /// The program makes it again and again, in a loop that nothing but MPI's answer ends, and has done so for `open_ns`: only stacks
    /// tell that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polls: bool,
    /// It is one on a file, and waits for messages of others and not for the file: only stacks tell that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exchanges: bool,
}

/// A call that had begun before attach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BeganBeforeRow {
    #[serde(deserialize_with = "names::name")]
    pub function: Name,
    pub tid: u32,
    /// Time in it since attach, as far as that is certain, ns.
    pub time_ns: u64,
    /// It has not returned.
    pub is_open: bool,
    /// Return address in the process; `null`: not known.
    pub call_site: Option<u64>,
    /// The same as a place in the source; `null`: not known.
    pub site: Option<String>,
}

/// What has become of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadLife {
    /// Still there; earlier versions of mpiprobe knew of no others.
    #[default]
    Running,
    Ended,
}

/// A thread that has entered MPI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadProfile {
    pub tid: u32,
    #[serde(default)]
    pub state: ThreadLife,
    /// Completed calls.
    pub calls: u64,
    /// Time in MPI, ns, without mpiprobe's own cost; a call that is open, or was at the thread's end, included.
    pub mpi_ns: u64,
    /// Wall time from its first call to now, or to its end, ns.
    #[serde(default)]
    pub wall_ns: u64,
}

/// Threads that have ended and were not remembered one by one, because there are too many. Sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherThreads {
    /// Their number.
    pub threads: u64,
    pub calls: u64,
    /// ns.
    pub mpi_ns: u64,
    /// ns.
    pub wall_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_earlier_recordings_are_alive() {
        let thread: ThreadProfile = serde_json::from_str(r#"{"tid": 7, "calls": 2, "mpi_ns": 3}"#).unwrap();
        assert_eq!(thread, ThreadProfile { tid: 7, state: ThreadLife::Running, calls: 2, mpi_ns: 3, wall_ns: 0 });
    }
}
