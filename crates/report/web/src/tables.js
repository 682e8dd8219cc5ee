// What each table of the page shows: its columns, and where their values come from.

import { rows, sum } from "./data.js";

const field = (name) => (row) => row[name];
const text = (id, title, value = field(id), more = {}) => ({ id, title, kind: "text", value, ...more });
const figure = (kind) => (id, title, value = field(id), more = {}) => ({ id, title, kind, value, ...more });
const [count, duration, bytes, percent, imbalance] = ["count", "duration", "bytes", "percent", "imbalance"].map(figure);
const rank = (id, title) => ({ id, title, kind: "rank", value: field(id) });

const descending = (id) => [{ id, desc: true }];

/** Functions of the whole run. */
export function functions(data) {
  return data.functions.map((row) => ({
    ...row,
    imbalance: row.time_over_ranks_ns.imbalance,
    sent_bytes: row.traffic?.sent.bytes ?? null,
    received_bytes: row.traffic?.received.bytes ?? null,
  }));
}

/** The same of a span of moments: of extremes and percentiles it is not known what they were in it. */
export function functionsOf(data, from, to) {
  const { names, calls, time_ns, sent_bytes, received_bytes } = data.moments.functions;
  const wall = data.moments.ranks.wall_ns.reduce((all, row) => all + sum(row, from, to), 0);
  const groups = new Map(data.functions.map((row) => [row.name, row.group]));
  const found = names.map((name, at) => ({
    name,
    group: groups.get(name) ?? "?",
    calls: sum(calls[at], from, to),
    time_ns: sum(time_ns[at], from, to),
    sent_bytes: sent_bytes ? sum(sent_bytes[at], from, to) : null,
    received_bytes: received_bytes ? sum(received_bytes[at], from, to) : null,
  }));
  const mpi = data.moments.ranks.mpi_ns.reduce((all, row) => all + sum(row, from, to), 0);
  return found
    .filter((row) => row.calls > 0 || row.time_ns > 0)
    .map((row) => ({
      ...row,
      mean_ns: row.calls ? row.time_ns / row.calls : null,
      wall_percent: wall > 0 ? (100 * row.time_ns) / wall : null,
      mpi_percent: mpi > 0 ? (100 * row.time_ns) / mpi : null,
    }));
}

/** Ranks of the whole run. */
export function ranks(data) {
  return rows(data.ranks);
}

/** The same of a span of moments. */
export function ranksOf(data, from, to) {
  const series = data.moments.ranks;
  return ranks(data).map((row, at) => {
    const [wall_ns, mpi_ns] = [sum(series.wall_ns[at], from, to), sum(series.mpi_ns[at], from, to)];
    return {
      ...row,
      thread_wall_ns: wall_ns,
      mpi_ns,
      mpi_percent: row.mpi_percent === null || wall_ns <= 0 ? null : Math.min(100, (100 * mpi_ns) / wall_ns),
      calls: sum(series.calls[at], from, to),
      sent_bytes: series.sent_bytes ? sum(series.sent_bytes[at], from, to) : null,
      received_bytes: series.received_bytes ? sum(series.received_bytes[at], from, to) : null,
    };
  });
}

const share = (name, of = 100) => ({ bar: (row) => (row[name] ?? 0) / of });

export const FUNCTIONS = {
  id: "functions",
  caption: "Functions over all ranks",
  sort: descending("time_ns"),
  columns: [
    text("name", "Function"),
    text("group", "Group"),
    count("calls", "Calls"),
    duration("time_ns", "Time", undefined, { hint: "Time in completed calls, over all ranks, without mpiprobe's own cost" }),
    percent("wall_percent", "Wall %", undefined, share("wall_percent")),
    percent("mpi_percent", "MPI %", undefined, share("mpi_percent")),
    imbalance("imbalance", "Imbalance", undefined, { hint: "By how much the slowest rank exceeds the average" }),
    duration("mean_ns", "Mean"),
    duration("min_ns", "Min"),
    duration("p50_ns", "Median"),
    duration("p90_ns", "90 %"),
    duration("p99_ns", "99 %"),
    duration("max_ns", "Max"),
    bytes("sent_bytes", "Sent"),
    bytes("received_bytes", "Received"),
  ],
};

export const GROUPS = {
  id: "groups",
  caption: "Groups of functions over all ranks",
  sort: descending("time_ns"),
  columns: [
    text("group", "Group"),
    count("calls", "Calls"),
    duration("time_ns", "Time"),
    percent("wall_percent", "Wall %", undefined, share("wall_percent")),
    percent("mpi_percent", "MPI %", undefined, share("mpi_percent")),
    imbalance("imbalance", "Imbalance", (row) => row.time_over_ranks_ns.imbalance),
    bytes("sent_bytes", "Sent", (row) => row.traffic?.sent_bytes),
    bytes("received_bytes", "Received", (row) => row.traffic?.received_bytes),
  ],
};

export const RANKS = {
  id: "ranks",
  caption: "Ranks",
  sort: [{ id: "rank", desc: false }],
  columns: [
    rank("rank", "Rank"),
    text("host", "Node"),
    rank("pid", "PID"),
    text("state", "State"),
    duration("thread_wall_ns", "Wall", undefined, { hint: "Wall time of the threads that use MPI" }),
    duration("mpi_ns", "In MPI"),
    percent("mpi_percent", "MPI %", undefined, share("mpi_percent")),
    count("calls", "Calls"),
    bytes("sent_bytes", "Sent"),
    bytes("received_bytes", "Received"),
    count("threads", "Threads", undefined, { hint: "Threads that have entered MPI" }),
    text("executable", "Program", undefined, { long: true }),
    text("job", "Job"),
  ],
};

export const SITES = {
  id: "sites",
  caption: "Call sites over all ranks",
  sort: descending("time_ns"),
  columns: [
    text("site", "Called at", undefined, { opens: true, long: true }),
    text("function", "Function", (row) => (row.started_by ? `${row.started_by} (${row.function})` : row.function)),
    count("calls", "Calls"),
    duration("time_ns", "Time"),
    duration("mean_ns", "Mean", (row) => (row.calls ? row.time_ns / row.calls : null)),
    imbalance("imbalance", "Imbalance"),
    rank("slowest", "Slowest rank"),
    duration("slowest_ns", "Time there"),
    count("ranks", "Ranks"),
    bytes("sent_bytes", "Sent"),
    bytes("received_bytes", "Received"),
    duration("waited_ns", "Waited for", undefined, { hint: "Time that calls completing these operations took for them" }),
  ],
};

export const COMMUNICATORS = {
  id: "communicators",
  caption: "Communicators",
  sort: descending("time_ns"),
  columns: [
    text("name", "Communicator", undefined, { long: true }),
    count("size", "Size"),
    text("made_by", "Made by", (row) => row.made_by ?? ""),
    count("ranks", "Ranks seen"),
    count("calls", "Calls"),
    duration("time_ns", "Time"),
    bytes("sent_bytes", "Sent"),
    bytes("received_bytes", "Received"),
    text("freed", "Freed", (row) => (row.freed ? "yes" : "")),
    text("job", "Job"),
  ],
};

export const PAIRS = {
  id: "pairs",
  caption: "Pairs of ranks",
  sort: descending("sent_bytes"),
  columns: [
    rank("rank", "Rank"),
    rank("peer", "Partner"),
    text("communicator", "Communicator", undefined, { long: true }),
    count("calls", "Calls"),
    duration("time_ns", "Time"),
    bytes("sent_bytes", "Sent"),
    bytes("received_bytes", "Received"),
  ],
};

export const REQUESTS = {
  id: "requests",
  caption: "Requests under way at the end",
  sort: descending("age_ns"),
  columns: [
    rank("rank", "Rank"),
    text("function", "Function"),
    text("communicator", "Communicator", undefined, { long: true }),
    rank("peer", "Partner"),
    rank("tag", "Tag"),
    bytes("bytes", "Bytes"),
    duration("age_ns", "Since"),
    text("site", "Called at", undefined, { long: true }),
  ],
};

export const OPEN_CALLS = {
  id: "open-calls",
  caption: "Calls that had not returned",
  sort: descending("open_ns"),
  columns: [
    rank("rank", "Rank"),
    text("function", "Function"),
    rank("tid", "Thread"),
    duration("open_ns", "Open for"),
    text("site", "Called at", undefined, { long: true }),
    text("ended", "End", (row) => (row.ended_inside ? "ended inside" : "")),
  ],
};

export const PHASES = {
  id: "phases",
  caption: "Phases",
  sort: descending("mpi_ns"),
  columns: [
    text("name", "Phase", undefined, { long: true }),
    count("level", "Level"),
    count("ranks", "Ranks"),
    count("opened", "Opened"),
    duration("wall", "Wall, mean", (row) => row.wall_over_ranks_ns.mean),
    duration("mpi_ns", "In MPI"),
    percent("share", "MPI %", (row) => (row.wall_over_ranks_ns.sum > 0 ? (100 * row.mpi_ns) / row.wall_over_ranks_ns.sum : null)),
    imbalance("imbalance", "Imbalance", (row) => row.mpi_over_ranks_ns.imbalance),
    count("calls", "Calls"),
  ],
};

export const THREADS = {
  id: "threads",
  caption: "Threads that have entered MPI",
  sort: descending("mpi_ns"),
  columns: [
    rank("rank", "Rank"),
    rank("tid", "Thread"),
    text("state", "State"),
    count("calls", "Calls"),
    duration("mpi_ns", "In MPI"),
    duration("wall_ns", "Lived"),
    percent("share", "MPI %", (row) => (row.wall_ns > 0 ? (100 * row.mpi_ns) / row.wall_ns : null)),
  ],
};

export const LAYERS = {
  id: "layers",
  caption: "Tools between program and library",
  sort: descending("cost_ns"),
  columns: [
    text("tool", "Tool"),
    text("function", "Function"),
    count("calls", "Calls"),
    duration("time_ns", "Time"),
    duration("cost_ns", "Cost"),
    percent("cost_percent", "Cost %"),
    count("own_calls", "Own calls"),
  ],
};

export const LOSSES = {
  id: "losses",
  caption: "What was not counted",
  sort: descending("count"),
  columns: [count("count", "Number"), text("what", "What", undefined, { long: true })],
};
