// Every figure on the page is that of the JSON, and what is shown is the figure as it is rounded.

import assert from "node:assert/strict";
import { look, same, showAll } from "./page.mjs";

const sum = (numbers) => numbers.reduce((all, number) => all + number, 0);

await look(async ({ page, profile }) => {
  await showAll(page);
  const tile = (id) => page.$eval(`#${id}`, (found) => Number(found.dataset.value)).catch(() => null);
  assert.equal(await tile("tile-ranks"), profile.ranks.length);
  assert.equal(await tile("tile-observed"), profile.observed_ns);
  assert.equal(await tile("tile-calls"), profile.totals.calls);
  assert.equal(await page.$eval("#tile-mpi", (found) => found.dataset.value), String(profile.totals.mpi_percent_of_all));
  const { efficiency } = profile.totals;
  assert.equal(await tile("tile-parallel"), efficiency?.parallel ?? null);
  assert.equal(await tile("pop-parallel"), efficiency?.parallel ?? null);
  assert.equal(await tile("pop-balance"), efficiency?.load_balance ?? null);
  assert.equal(await tile("pop-communication"), efficiency?.communication ?? null);
  assert.equal(await tile("cost-per-call"), profile.own_cost.per_call_ns);
  assert.equal(await tile("cost-calls"), profile.own_cost.calls);
  assert.equal(await tile("cost-total"), profile.own_cost.total_ns);
  assert.equal(await tile("cost-percent"), profile.own_cost.percent_of_wall);
  assert.equal(await tile("cost-subtracted"), profile.own_cost.subtracted_ns);

  await same(page, "functions", profile.functions.map((row) => ({
    name: row.name, group: row.group, calls: row.calls, time_ns: row.time_ns, wall_percent: row.wall_percent,
    mpi_percent: row.mpi_percent, imbalance: row.time_over_ranks_ns.imbalance, mean_ns: row.mean_ns, min_ns: row.min_ns,
    p50_ns: row.p50_ns, p90_ns: row.p90_ns, p99_ns: row.p99_ns, max_ns: row.max_ns,
    sent_bytes: row.traffic?.sent.bytes ?? null, received_bytes: row.traffic?.received.bytes ?? null,
  })));
  await same(page, "groups", profile.groups.map((row) => ({
    group: row.group, calls: row.calls, time_ns: row.time_ns, wall_percent: row.wall_percent, mpi_percent: row.mpi_percent,
    imbalance: row.time_over_ranks_ns.imbalance, sent_bytes: row.traffic?.sent_bytes ?? null, received_bytes: row.traffic?.received_bytes ?? null,
  })));
  await same(page, "ranks", profile.ranks.map((row) => ({
    rank: row.rank, host: row.host, pid: row.pid, state: row.state, thread_wall_ns: row.thread_wall_ns, mpi_ns: row.mpi_ns,
    mpi_percent: row.mpi_percent, calls: row.calls, threads: row.threads_in_mpi, executable: row.executable, job: row.job,
    sent_bytes: row.traffic ? sum(row.groups.map((group) => group.traffic?.sent_bytes ?? 0)) : null,
  })));

  const sites = new Map();
  const pairs = new Map();
  for (const rank of profile.ranks) {
    const names = new Map((rank.traffic?.communicators ?? []).map((row) => [row.number, profile.traffic.communicators.find(({ id }) => id === row.id)?.name]));
    for (const flow of rank.traffic?.flows ?? []) {
      const add = (all, key, row) => {
        const known = all.get(key) ?? { ...row, calls: 0, time_ns: 0, sent_bytes: 0, received_bytes: 0 };
        for (const name of ["calls", "time_ns", "sent_bytes", "received_bytes"]) known[name] += flow[name];
        all.set(key, known);
      };
      const called = flow.started_by ? `${flow.started_by} (${flow.function})` : flow.function;
      add(sites, `${called} ${flow.site}`, { site: flow.site, function: called });
      const communicator = names.get(flow.communicator) ?? "others, or not known";
      if (flow.peer !== null) add(pairs, `${names.get(flow.communicator)} ${flow.communicator} ${rank.rank} ${flow.peer}`, { rank: rank.rank, peer: flow.peer, communicator });
    }
  }
  await same(page, "sites", [...sites.values()]);
  if (profile.traffic) await same(page, "pairs", [...pairs.values()]);
  await same(page, "communicators", (profile.traffic?.communicators ?? []).map((row) => ({
    name: row.name, size: row.size, ranks: row.ranks, calls: row.calls, time_ns: row.time_ns, sent_bytes: row.sent_bytes, received_bytes: row.received_bytes,
  })));
  await same(page, "requests", profile.ranks.flatMap((rank) => (rank.traffic?.pending ?? []).map((row) => ({
    rank: rank.rank, function: row.function, peer: row.peer, tag: row.tag, bytes: row.sent_bytes ?? row.received_bytes, age_ns: row.age_ns,
  }))));
  await same(page, "open-calls", profile.ranks.flatMap((rank) => rank.open_calls.map((row) => ({ rank: rank.rank, function: row.function, tid: row.tid, open_ns: row.open_ns }))));
  await same(page, "threads", profile.ranks.filter((rank) => rank.threads_in_mpi > 1).flatMap((rank) => rank.threads.map((row) => ({
    rank: rank.rank, tid: row.tid, state: row.state, calls: row.calls, mpi_ns: row.mpi_ns, wall_ns: row.wall_ns,
  }))));
  await same(page, "phases", profile.phases.map((row) => ({ name: row.name, level: row.level, ranks: row.ranks, opened: row.opened, calls: row.calls, mpi_ns: row.mpi_ns })));
  await same(page, "layers", profile.layers.flatMap((layer) => layer.tools.map((row) => ({
    tool: row.tool, function: layer.function, calls: row.calls, time_ns: row.time_ns, cost_ns: row.cost_ns, cost_percent: row.cost_percent, own_calls: row.own_calls,
  }))));

  for (const row of profile.functions) {
    await page.selectOption("#histogram-function", row.name);
    const bars = await page.$$eval("#histograms figure:first-child .bar", (found) => found.map((bar) => Number(bar.dataset.value)));
    const first = row.durations.findIndex((calls) => calls > 0);
    assert.deepEqual(bars, first < 0 ? [] : row.durations.slice(first), `durations of ${row.name}`);
    const times = await page.$$eval("#histograms > figure .bar", (found) => found.map((bar) => Number(bar.dataset.value)));
    assert.deepEqual(times, profile.ranks.map((rank) => rank.functions.find(({ name }) => name === row.name)?.time_ns ?? 0), `${row.name} on each rank`);
  }
});
