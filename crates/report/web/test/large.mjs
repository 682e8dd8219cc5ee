// A thousand ranks and six hundred moments: everything is there, at first only the beginning of long tables.

import assert from "node:assert/strict";
import { becomes, look, showAll, table } from "./page.mjs";

await look(async ({ page, profile }) => {
  assert.equal((await table(page, "ranks")).length, 50);
  await showAll(page);
  const ranks = await table(page, "ranks");
  assert.equal(ranks.length, profile.ranks.length);
  assert.deepEqual(ranks.map((row) => row.calls.value), profile.ranks.map((row) => row.calls));
  assert.equal(await page.getAttribute("#timeline-until", "max"), "599");
  const search = page.getByRole("searchbox", { name: "Search in Ranks" });
  await search.fill("1023");
  assert.deepEqual((await table(page, "ranks")).map((row) => row.rank.value), [1023]);
  await page.getByRole("button", { name: "Zoom in" }).click();
  await becomes(() => page.getAttribute(".matrix svg", "data-zoom"), "2.000");
});
