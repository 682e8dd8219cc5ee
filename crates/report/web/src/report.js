// The page of one run.

import { Bars, ofBuckets } from "./bars.js";
import { rows } from "./data.js";
import { choice, element, section } from "./dom.js";
import * as format from "./format.js";
import { drawn, put } from "./frame.js";
import { Matrix } from "./matrix.js";
import { Table } from "./table.js";
import * as tables from "./tables.js";
import { Timeline } from "./timeline.js";

function tiles(data) {
  const { totals } = data;
  const efficiency = totals.efficiency;
  const sent = data.groups.some((group) => group.traffic) ? data.groups.reduce((all, group) => all + (group.traffic?.sent_bytes ?? 0), 0) : null;
  const tile = (id, title, shown, value, hint) =>
    element("div", { class: "tile", title: hint }, element("dt", {}, title), element("dd", { id: `tile-${id}`, "data-value": String(value) }, shown));
  return element(
    "dl",
    { class: "tiles" },
    tile("ranks", "Ranks", format.count(data.ranks.rank.length), data.ranks.rank.length),
    tile("observed", "Observed", format.duration(data.observed_ns), data.observed_ns),
    tile("mpi", "Time in MPI", withPercent(totals.mpi_percent_of_all), totals.mpi_percent_of_all, "Time in MPI of all ranks, of their wall time"),
    efficiency && tile("parallel", "Parallel efficiency", withPercent(100 * efficiency.parallel), efficiency.parallel, "Load balance × communication efficiency (POP)"),
    tile("calls", "MPI calls", format.count(totals.calls), totals.calls),
    sent !== null ? tile("sent", "Sent", format.bytes(sent), sent) : null,
  );
}

const withPercent = (value) => (value === null || value === undefined ? "?" : `${value.toFixed(1)} %`);

function header(data) {
  const state = data.complete
    ? element("p", { class: "badge good" }, "complete: nothing was lost")
    : element("div", { class: "badge bad" }, element("strong", {}, "incomplete"), element("ul", {}, ...data.incomplete_because.map((why) => element("li", {}, why))));
  const program = [...new Set(data.ranks.executable)].slice(0, 3).join(", ");
  const jobs = data.jobs.map((job) => `${job.id} (${job.ranks} of ${job.size ?? "?"} ranks)`).join(", ");
  const notes = data.notes.map((note) => element("p", { class: "note" }, note));
  return element(
    "header",
    { id: "top" },
    element("h1", {}, data.title),
    element("p", { class: "subtitle" }, [program, jobs, `on ${data.host}`, `from ${data.began}`].filter(Boolean).join(" · ")),
    state,
    ...notes,
    tiles(data),
  );
}

function findings(data) {
  const cards = data.findings.map((finding) =>
    element(
      "li",
      { class: "finding" },
      element("h3", {}, finding.name),
      element("p", { class: "found" }, finding.found),
      finding.evidence?.length ? element("ul", { class: "evidence" }, ...finding.evidence.map((line) => element("li", {}, line))) : null,
      finding.meaning ? element("p", {}, finding.meaning) : null,
      finding.advice ? element("p", { class: "advice" }, element("strong", {}, "Try: "), finding.advice) : null,
    ),
  );
  const body = cards.length
    ? element("ol", { class: "findings" }, ...cards)
    : element("p", { class: "badge good" }, "Nothing conspicuous was found in this run.");
  return section("findings", "Findings", null, body);
}

function efficiencies(data) {
  const { efficiency } = data.totals;
  if (!efficiency) {
    return section("pop", "Efficiency", null, element("p", { class: "note" }, "Not known: nobody was seen to do anything but MPI, or of some rank it is not known what it did."));
  }
  const row = (id, name, value, words, deep) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", class: deep ? "deep" : null }, name),
      element("td", { class: "number", "data-value": String(value), id: `pop-${id}` }, withPercent(100 * value)),
      element("td", { class: "meter-cell" }, element("meter", { min: 0, max: 1, low: 0.6, high: 0.8, optimum: 1, value, "aria-label": name })),
      element("td", { class: "long" }, words),
    );
  const table = element(
    "table",
    { class: "pop" },
    element("caption", { class: "hidden" }, "Efficiencies"),
    element(
      "tbody",
      {},
      row("parallel", "Parallel efficiency", efficiency.parallel, "How much of the ranks' time is useful computation: load balance × communication efficiency"),
      row("balance", "Load balance", efficiency.load_balance, "Average computation over that of the rank with most: what is missing, others wait for it", true),
      row("communication", "Communication efficiency", efficiency.communication, "Computation of the rank with most over the run time: what is missing is spent in MPI even by that rank", true),
    ),
  );
  return section("pop", "Efficiency", "As the POP Centre of Excellence defines them; starting and ending MPI left out.", element("div", { class: "scroll" }, table));
}

function overTime(data, follow) {
  if (!data.moments) {
    return section("timeline", "Over time", null, element("p", { class: "note" }, "This report is of one moment. A recording (--record) has many, and shows here how it went."));
  }
  const { taken, of } = data.moments;
  const some = taken < of ? ` ${taken} of ${of} moments are shown, evenly chosen.` : "";
  const timeline = new Timeline(data.moments, rows({ rank: data.ranks.rank }), follow);
  drawn.push(() => timeline.draw());
  return section("timeline", "Over time", `Drag over the picture to choose a span: functions and ranks below follow.${some}`, timeline.element);
}

/** The histograms of one function, and its time on each rank. */
function functionDetail(data) {
  const all = [...data.functions].sort((a, b) => b.time_ns - a.time_ns);
  const latency = new Bars({ title: "Durations of calls", xTitle: "duration", yTitle: "calls" });
  const sizes = new Bars({ title: "Sizes of messages", xTitle: "bytes", yTitle: "messages" });
  const spread = new Bars({ title: "Time on each rank", xTitle: "rank", yTitle: "time", valueFormat: (ns) => format.duration(ns) });
  let name = all[0]?.name;
  let direction = "sent";
  const show = () => {
    const row = data.functions.find((candidate) => candidate.name === name);
    if (!row) return;
    latency.set(ofBuckets(row.durations, format.duration, "calls"), `Durations of calls of ${name}`);
    const volume = row.traffic?.[direction];
    sizes.set(volume ? ofBuckets(volume.sizes, format.binary, "messages") : [], `Sizes of what ${name} has ${direction}`);
    const at = data.by_rank.functions.indexOf(name);
    const times = at < 0 ? [] : data.by_rank.time_ns[at];
    const calls = at < 0 ? [] : data.by_rank.calls[at];
    spread.set(times.map((ns, rank) => ({
      label: format.text(data.ranks.rank[rank]), value: ns,
      tip: [`Rank ${format.text(data.ranks.rank[rank])}`, format.duration(ns), `${format.count(calls[rank])} calls`],
    })), `Time of ${name} on each rank`);
  };
  const [functions, select] = choice("Function", all.map((row) => [row.name, row.name]), (value) => { name = value; show(); }, "histogram-function");
  const [way] = choice("Messages", [["sent", "sent"], ["received", "received"]], (value) => { direction = value; show(); }, "histogram-direction");
  show();
  const found = section(
    "histograms", "Histograms", "Of the whole run. Buckets are powers of two.",
    element("div", { class: "controls" }, functions, way),
    element("div", { class: "figures" }, latency.element, sizes.element),
    spread.element,
  );
  return [found, (row) => { select.value = row.name; name = row.name; show(); found.scrollIntoView({ behavior: "smooth" }); }];
}

function excerpt(source) {
  const lines = source.lines.map((line, at) => {
    const number = source.first + at;
    return element("div", { class: number === source.line ? "line here" : "line" }, element("span", { class: "line-number" }, String(number)), element("code", {}, line));
  });
  return element("figure", { class: "source" }, element("figcaption", {}, `${source.file}:${source.line}`), ...lines);
}

function traffic(data) {
  if (!data.matrix) {
    return [section("matrix", "Who sends to whom", null, element("p", { class: "note" }, "Not known: mpiprobe was not asked to find out what calls move (--traffic)."))];
  }
  const matrix = new Matrix(data.matrix);
  drawn.push(() => matrix.set({}));
  const { block, communicators } = data.matrix;
  const name = (at) => (block === 1 ? at : at * block);
  const pairs = rows({ ...pick(data.matrix, ["communicator", "rank", "peer", "calls", "time_ns", "sent_bytes", "received_bytes"]) })
    .map((row) => ({ ...row, communicator: communicators[row.communicator], rank: name(row.rank), peer: name(row.peer) }));
  const note = block === 1 ? null : `Too many pairs for a page: ranks are put together in blocks of ${block}, named by their first rank.`;
  return [section("matrix", "Who sends to whom", note, matrix.element, new Table({ ...tables.PAIRS, rows: pairs }).element)];
}

const pick = (from, names) => Object.fromEntries(names.map((name) => [name, from[name]]));

function cost(data) {
  const { own_cost } = data;
  const entry = (id, title, shown, value) => [element("dt", {}, title), element("dd", { id: `cost-${id}`, "data-value": String(value) }, shown)];
  const list = element(
    "dl",
    { class: "list" },
    ...entry("per-call", "A call takes longer by", format.duration(own_cost.per_call_ns), own_cost.per_call_ns),
    ...entry("calls", "Calls probed", format.count(own_cost.calls), own_cost.calls),
    ...entry("total", "Altogether", format.duration(own_cost.total_ns), own_cost.total_ns),
    ...entry("percent", "Of the wall time", `${own_cost.percent_of_wall.toFixed(2)} %`, own_cost.percent_of_wall),
    ...entry("subtracted", "Subtracted from times", format.duration(own_cost.subtracted_ns), own_cost.subtracted_ns),
  );
  const { engine } = data;
  const how = element(
    "dl",
    { class: "list" },
    element("dt", {}, "Engine"), element("dd", {}, `${engine.engine}, ${engine.attached_by}`),
    ...engine.libraries.flatMap((library) => [element("dt", {}, library.implementation), element("dd", {}, `${library.path}, ${library.functions} functions`)]),
    element("dt", {}, "mpiprobe"), element("dd", {}, data.mpiprobe_version),
  );
  const losses = data.losses.length
    ? new Table({ ...tables.LOSSES, rows: data.losses }).element
    : element("p", { class: "badge good" }, "Nothing was lost.");
  return section("cost", "Cost and losses", "What observing cost the job, and what was not counted.", element("div", { class: "figures" }, list, how), losses);
}

/** A table in a section of its own; nothing if there are no rows. */
function listed(id, title, note, definition, found) {
  return found.length ? [section(id, title, note, new Table({ ...definition, rows: found }).element)] : [];
}

/** Puts it together. */
export function report(data, button) {
  const [histograms, showFunction] = functionDetail(data);
  const functions = new Table({ ...tables.FUNCTIONS, rows: tables.functions(data), select: showFunction });
  const ranks = new Table({ ...tables.RANKS, rows: tables.ranks(data) });
  const spans = ["functions", "ranks"].map((id) => element("p", { class: "note", id: `${id}-span`, hidden: true }));
  const follow = (from, to) => {
    const isWhole = from === 0 && to === data.moments.at_ns.length - 1;
    functions.setRows(isWhole ? tables.functions(data) : tables.functionsOf(data, from, to));
    ranks.setRows(isWhole ? tables.ranks(data) : tables.ranksOf(data, from, to));
    const words = document.getElementById("span").textContent;
    for (const note of spans) note.hidden = isWhole;
    spans[0].textContent = `Of the span ${words}. Imbalance, extremes and percentiles are known of the whole run only.`;
    spans[1].textContent = `Of the span ${words}.`;
  };
  const sites = data.sites ? rows(data.sites) : [];
  const source = (row) => (row.source === null ? null : excerpt(data.sources[row.source]));
  const communicators = data.communicators.map((row) => ({ ...row }));
  if (data.other_communicators) {
    communicators.push({ ...data.other_communicators, name: `${data.other_communicators.communicators} others`, size: null, ranks: null, freed: false });
  }
  const layers = data.layers.flatMap((layer) => layer.tools.map((tool) => ({ ...tool, function: layer.function })));
  const parts = [
    findings(data),
    overTime(data, follow),
    efficiencies(data),
    section("groups", "Groups", null, new Table({ ...tables.GROUPS, rows: data.groups }).element),
    section("functions", "Functions", null, spans[0], functions.element),
    section("ranks", "Ranks", null, spans[1], ranks.element),
    ...listed("sites", "Call sites", data.sources.length ? "Places with source open at a click." : null, { ...tables.SITES, more: source }, sites),
    histograms,
    ...traffic(data),
    ...listed("communicators", "Communicators", null, tables.COMMUNICATORS, communicators),
    ...listed("phases", "Phases", "Marked by MPI_Pcontrol.", tables.PHASES, data.phases),
    ...listed("open-calls", "Open calls", "What had not returned at the end.", tables.OPEN_CALLS, rows(data.open_calls)),
    ...listed("requests", "Requests", "Operations under way at the end, or never completed.", tables.REQUESTS, rows(data.requests)),
    ...listed("threads", "Threads", null, tables.THREADS, rows(data.threads)),
    ...listed("layers", "Tools", null, tables.LAYERS, layers),
    cost(data),
  ];
  put({ title: data.title, version: data.mpiprobe_version, button, header: header(data), parts });
}
