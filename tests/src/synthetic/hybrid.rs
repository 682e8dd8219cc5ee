//! Ranks with several threads, and with tools before MPI.

use mpiprobe_common::{EndedThread, ProcessCounters, ToolCallKey, ToolCallStats, ToolKey, ToolStats, thread::OpenCall};
use mpiprobe_model::ToolInfo;
use mpiprobe_observe::{ProcessSnapshot, ToolsSnapshot};

use super::SECOND;

/// Threads that have ended and are not remembered one by one.
const OTHERS: u64 = 12;

/// By their numbers: what the program calls first comes last.
pub(super) fn tools() -> Vec<ToolInfo> {
    let tool = |name: &str| ToolInfo {
        name: name.into(),
        path: format!("/opt/tools/lib/{name}"),
        functions: 40,
        not_probed: Vec::new(),
    };
    vec![tool("libchecks.so"), tool("libtimes.so")]
}

/// The same rank if its one thread had done a quarter of what it has, another living one, two that have ended, and twelve more such
/// the other quarters.
pub(super) fn of(mut process: ProcessSnapshot, now_ns: u64) -> ProcessSnapshot {
    process.tools = before_mpi(&process);
    let Some(first) = process.threads.first_mut() else { return process };
    let quarter = (first.state.calls / 4, first.state.time_ns / 4);
    let left = (first.state.calls - 3 * quarter.0, first.state.time_ns - 3 * quarter.1);
    (first.state.calls, first.state.time_ns) = quarter;
    let tid = first.tid * 10;
    let mut second = *first;
    (second.tid, second.state.open) = (tid, OpenCall::default());
    process.threads.push(second);

    let lived = |number: u32, (calls, time_ns): (u64, u64)| EndedThread {
        ended_ns: now_ns - 2 * SECOND,
        tid: tid + number,
        calls,
        time_ns,
        first_entry_ns: 2 * SECOND,
        ..EndedThread::default()
    };
    let (one, other) = (lived(1, (quarter.0 / 3, quarter.1 / 3)), lived(2, (quarter.0 / 2, quarter.1 / 2)));
    process.ended_threads = vec![one, other];
    process.counters = ProcessCounters {
        ended_threads: OTHERS + 2,
        ended_threads_calls: quarter.0 + left.0,
        ended_threads_time_ns: quarter.1 + left.1,
        ended_threads_span_ns: (OTHERS + 2) * one.span_ns(),
        ..process.counters
    };
    process
}

/// The second tool passes on to the first one, which asks for the size of the communicator each time.
fn before_mpi(process: &ProcessSnapshot) -> ToolsSnapshot {
    let number = |name: &str| mpiprobe_functions::by_name(name).map_or(0, mpiprobe_functions::FunctionId::number);
    let function = number("MPI_Allreduce");
    let Some((_, stats)) = process.functions.iter().find(|(id, _)| *id == u32::from(function)) else {
        return ToolsSnapshot::default();
    };
    let (calls, library_ns) = (stats.calls, stats.time_ns);
    let (own_ns, work_ns) = (calls * 120, calls * 400);
    let inner_ns = library_ns + own_ns + work_ns;
    let inner = ToolStats {
        calls,
        time_ns: inner_ns,
        passed_on: calls,
        passed_on_ns: library_ns,
        to_library: calls,
        to_library_ns: library_ns,
        own_calls: calls,
        own_calls_ns: own_ns,
        ..ToolStats::default()
    };
    let outer = ToolStats {
        calls,
        time_ns: inner_ns + work_ns,
        passed_on: calls,
        passed_on_ns: inner_ns,
        ..ToolStats::default()
    };
    let key = |tool| ToolKey { process: process.process, tool, function };
    let own = ToolCallKey {
        process: process.process,
        tool: 0,
        inside: function,
        function: number("MPI_Comm_size"),
        reserved: 0,
    };
    ToolsSnapshot {
        calls: vec![(key(0), inner), (key(1), outer)],
        own: vec![(own, ToolCallStats { calls, time_ns: own_ns })],
    }
}
