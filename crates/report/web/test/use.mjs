// What can be done with the page: sort, search, choose a span, zoom, go dark, all of it by keys as well.

import assert from "node:assert/strict";
import { becomes, look, table } from "./page.mjs";

const sum = (rows, name) => rows.reduce((all, row) => all + row[name].value, 0);

await look(async ({ page, profile }) => {
  // Sorting: down, up, and as it came.
  const header = page.locator('table[data-table="functions"] th[data-column="calls"] button');
  await header.click();
  let calls = (await table(page, "functions")).map((row) => row.calls.value);
  assert.deepEqual(calls, [...calls].sort((a, b) => b - a));
  assert.equal(await page.getAttribute('table[data-table="functions"] th[data-column="calls"]', "aria-sort"), "descending");
  await header.focus();
  await page.keyboard.press("Enter");
  calls = (await table(page, "functions")).map((row) => row.calls.value);
  assert.deepEqual(calls, [...calls].sort((a, b) => a - b));
  assert.equal(await page.getAttribute('table[data-table="functions"] th[data-column="calls"]', "aria-sort"), "ascending");

  // Searching: all words, anywhere, whatever their case.
  const search = page.getByRole("searchbox", { name: "Search in Functions over all ranks" });
  await search.fill("all COLLECTIVE");
  assert.deepEqual((await table(page, "functions")).map((row) => row.name), ["MPI_Allreduce"]);
  await search.fill("nothing that is there");
  assert.deepEqual(await table(page, "functions"), []);
  await search.fill("");
  assert.equal((await table(page, "functions")).length, profile.functions.length);

  // A span: tables follow, and the spans before, in and after it add up to the whole run.
  const whole = { functions: sum(await table(page, "functions"), "calls"), ranks: sum(await table(page, "ranks"), "mpi_ns") };
  const parts = { functions: 0, ranks: 0 };
  const last = Number(await page.getAttribute("#timeline-until", "max"));
  for (const [from, until] of [[0, 6], [7, 16], [17, last]]) {
    await page.locator("#timeline-from").fill(String(from));
    await page.locator("#timeline-until").fill(String(until));
    await page.locator("#timeline-from").fill(String(from));
    assert.ok(await page.isVisible("#functions-span"));
    parts.functions += sum(await table(page, "functions"), "calls");
    parts.ranks += sum(await table(page, "ranks"), "mpi_ns");
  }
  assert.deepEqual(parts, whole);
  await page.click("#whole");
  assert.ok(await page.isHidden("#functions-span"));
  assert.equal(sum(await table(page, "functions"), "calls"), whole.functions);

  // The brush.
  await page.locator("#timeline").scrollIntoViewIfNeeded();
  const box = await page.locator("#timeline .brush .overlay").boundingBox();
  await page.mouse.move(box.x + box.width * 0.25, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 40, { steps: 5 });
  await page.mouse.up();
  const span = async () => /^whole run|^[\d.]+ s to [\d.]+ s/.exec(await page.textContent("#span"))[0];
  await becomes(span, "6.0 s to 12.0 s", `of ${(profile.observed_ns / 1e9).toFixed(0)} s`);
  const some = sum(await table(page, "functions"), "calls");
  assert.ok(some > 0 && some < whole.functions, `${some} of ${whole.functions}`);
  await page.mouse.click(box.x + box.width * 0.9, box.y + 30);
  await becomes(span, "whole run");
  await page.selectOption("#timeline-order", "mpi");

  // The matrix: by buttons and by keys.
  const zoom = async () => Number(await page.getAttribute(".matrix svg", "data-zoom"));
  await page.getByRole("button", { name: "Zoom in" }).click();
  await becomes(zoom, 2);
  await page.locator(".matrix svg").focus();
  await page.keyboard.press("-");
  await becomes(zoom, 1);
  for (const measure of ["received_bytes", "calls", "time_ns"]) await page.selectOption("#matrix-measure", measure);
  await page.selectOption("#matrix-communicator", "0");

  // A function, chosen in the table, is shown in the histograms.
  await page.locator('table[data-table="functions"]').getByRole("button", { name: "MPI_Allreduce" }).click();
  assert.equal(await page.inputValue("#histogram-function"), "MPI_Allreduce");

  // Dark and light.
  const theme = () => page.getAttribute("html", "data-theme");
  await becomes(theme, "light");
  await page.click("#theme");
  await becomes(theme, "dark");
  await page.emulateMedia({ media: "print" });
  await becomes(theme, "light", "paper is white");
  await page.emulateMedia({ media: "screen", colorScheme: "dark" });
  await becomes(theme, "dark");

  // Whoever cannot see finds names for everything that can be pressed or typed into.
  const nameless = await page.$$eval("button, input, select, a, svg[role=img]", (all) => all.filter((one) => !(one.textContent.trim() || one.getAttribute("aria-label") || one.closest("label"))).map((one) => one.outerHTML.slice(0, 80)));
  assert.deepEqual(nameless, []);
  for (const heading of await page.$$eval("section", (all) => all.map((one) => document.getElementById(one.getAttribute("aria-labelledby"))?.textContent))) assert.ok(heading);

  // No part of the page is wider than a narrow screen.
  await page.setViewportSize({ width: 380, height: 800 });
  await becomes(() => page.evaluate(() => [window.innerWidth, document.documentElement.scrollWidth <= window.innerWidth]), [380, true], "it scrolls sideways");
});
