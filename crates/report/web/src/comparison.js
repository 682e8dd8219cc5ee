// The page of a comparison.

import { Changes, ofRow } from "./changes.js";
import { element, section } from "./dom.js";
import * as format from "./format.js";
import { put } from "./frame.js";
import { Table } from "./table.js";

/** Lines of the picture: all findings up to so many; if there are fewer than a few, what else differs most. */
const [MOST_LINES, FEW_LINES] = [40, 12];

const VERDICTS = {
  same: "same", slower: "longer", faster: "shorter", chance: "may be chance", unknown: "?", negligible: "takes next to no time",
};

/** Columns of rows whose times are durations, or shares of the wall time. */
function columns(isShare) {
  const time = isShare ? "share" : "duration";
  const field = (id, title, kind, value, more = {}) => ({ id, title, kind, value: value ?? ((row) => row[id]), ...more });
  return [
    field("name", "What", "text", (row) => row.said, { long: true }),
    field("before", "Before", time),
    field("after", "After", time),
    field("change_percent", "Change", "change"),
    field("low", "From", "change", (row) => row.change_interval_percent?.[0] ?? null, { hint: "The interval from here on holds the true change with 95 %" }),
    field("high", "To", "change", (row) => row.change_interval_percent?.[1] ?? null, { hint: "The interval up to here holds the true change with 95 %" }),
    field("calls_before", "Calls before", "meanCount", null, { hint: "Of a run, in the mean" }),
    field("calls_after", "Calls after", "meanCount", null, { hint: "Of a run, in the mean" }),
    field("probability", "p", "probability", null, { hint: "Chance of any difference as large if nothing had changed, in all subjects together" }),
    field("verdict", "Verdict", "text", (row) => VERDICTS[row.verdict] ?? row.verdict),
  ];
}

const SCALING = {
  id: "scaling",
  caption: "Scaling",
  columns: [
    { id: "ranks", title: "Ranks", kind: "count" },
    { id: "runs", title: "Runs", kind: "count" },
    { id: "elapsed_ns", title: "Elapsed", kind: "duration" },
    { id: "speedup", title: "Speedup", kind: "percent", hint: "By how much faster than with the fewest ranks" },
    { id: "global", title: "Global efficiency", kind: "share", hint: "Parallel efficiency × computation scaling" },
    { id: "parallel", title: "Parallel efficiency", kind: "share", hint: "Load balance × communication efficiency" },
    { id: "load_balance", title: "Load balance", kind: "share" },
    { id: "communication", title: "Communication efficiency", kind: "share" },
    { id: "computation", title: "Computation scaling", kind: "share" },
  ].map((column) => ({ ...column, value: (row) => row[column.id] })),
};

function runs(side, names) {
  const list = names.length > 1 ? ` (${names.length} runs)` : "";
  return [element("dt", {}, `${side}${list}`), element("dd", {}, names.join(", "))];
}

function header(data) {
  const { comparison } = data;
  const tile = (id, title, shown, value, hint) =>
    element("div", { class: "tile", title: hint }, element("dt", {}, title), element("dd", { id: `tile-${id}`, "data-value": String(value) }, shown));
  const whole = (name, title) => {
    const row = comparison.rows.find((found) => found.section === "whole" && found.name === name);
    return row ? tile(name, title, format.change(row.change_percent), row.change_percent, VERDICTS[row.verdict]) : null;
  };
  return element(
    "header",
    { id: "top" },
    element("h1", {}, data.title),
    element("dl", { class: "list" }, ...runs("Before", comparison.before), ...runs("After", comparison.after), element("dt", {}, "Compared"), element("dd", {}, data.compared)),
    ...comparison.notes.map((note) => element("p", { class: "note" }, note)),
    element(
      "dl",
      { class: "tiles" },
      tile("findings", "Differences that are no chance", format.count(comparison.findings.length), comparison.findings.length),
      whole("elapsed", "Elapsed time"),
      whole("mpi", "Time in MPI"),
      whole("computing", "Time outside MPI"),
    ),
  );
}

function findings(data) {
  const { comparison, summary, sentences } = data;
  const list = sentences.map((sentence, at) =>
    element("li", { class: `finding ${comparison.findings[at].verdict}` }, element("p", { class: "found" }, sentence)));
  const said = element("p", { class: list.length ? null : "badge good", id: "summary" }, summary);
  return section("findings", "Findings", null, said, list.length ? element("ol", { class: "findings" }, ...list) : null);
}

/** What is found, or else what differs most; nothing of what was not there before, or is the same. */
function changes(data) {
  const worth = data.rows.filter((row) => row.change_percent !== null && !["same", "negligible"].includes(row.verdict));
  const found = worth.filter((row) => ["slower", "faster"].includes(row.verdict)).slice(0, MOST_LINES);
  const others = worth.filter((row) => !["slower", "faster"].includes(row.verdict)).slice(0, Math.max(0, FEW_LINES - found.length));
  const lines = [...found, ...others].map((row) => ofRow(row, row.said));
  if (!lines.length) return [];
  return [section("changes", "Changes", "What makes the largest difference in all comes first.", new Changes(lines).element)];
}

/** Puts it together. */
export function comparison(data, button) {
  const { comparison } = data;
  // In the order of what they make out in all, each as it is called.
  data.rows = data.order.map((at) => ({ ...comparison.rows[at], said: data.names[at] }));
  const isShare = comparison.basis === "time";
  const tables = data.sections.flatMap(({ id, title }) => {
    const rows = data.rows.filter((row) => row.section === id);
    if (!rows.length) return [];
    return [section(id, title, null, new Table({ id, caption: title, columns: columns(isShare), rows }).element)];
  });
  const scaling = comparison.scaling;
  const of = scaling?.is_weak ? "As much to do for each rank (weak scaling)." : "As much to do in all (strong scaling).";
  const parts = [
    findings(data),
    ...changes(data),
    ...(scaling ? [section("scaling", "Scaling", of, new Table({ ...SCALING, rows: scaling.rows }).element)] : []),
    ...tables,
  ];
  put({ title: data.title, version: data.mpiprobe_version, button, header: header(data), parts });
}
