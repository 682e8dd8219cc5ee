// The page of a comparison: its figures are those of the JSON, it can be sorted and searched, and nothing in it is markup.
//
// Invariant TEXT-IS-TEXT.

import assert from "node:assert/strict";
import { becomes, holdsOnlyText, look, same, showAll, table } from "./page.mjs";

const VERDICTS = { same: "same", slower: "longer", faster: "shorter", chance: "may be chance", unknown: "?", negligible: "takes next to no time" };
const WORDS = { elapsed: "elapsed time", mpi: "time in MPI", computing: "time outside MPI" };
const SCALING = ["ranks", "runs", "elapsed_ns", "speedup", "global", "parallel", "load_balance", "communication", "computation"];

await look(async ({ page, profile: comparison }) => {
  await holdsOnlyText(page);
  await showAll(page);
  const sections = [...new Set(comparison.rows.map((row) => row.section))];
  for (const section of sections) {
    const rows = comparison.rows.filter((row) => row.section === section).map((row) => ({
      before: row.before, after: row.after, change_percent: row.change_percent,
      low: row.change_interval_percent?.[0] ?? null, high: row.change_interval_percent?.[1] ?? null,
      calls_before: row.calls_before, calls_after: row.calls_after, probability: row.probability, verdict: VERDICTS[row.verdict],
    }));
    await same(page, section, rows, comparison.basis === "time" ? ["before", "after"] : []);
  }
  if (comparison.scaling) {
    await same(page, "scaling", comparison.scaling.rows.map((row) => Object.fromEntries(SCALING.map((name) => [name, row[name]]))), SCALING.slice(4));
  }

  assert.equal(await page.$eval("#tile-findings", (found) => Number(found.dataset.value)), comparison.findings.length);
  const sentences = await page.$$eval("#findings .found", (all) => all.map((one) => one.textContent));
  assert.equal(sentences.length, comparison.findings.length);
  sentences.forEach((sentence, at) => {
    const { section, name } = comparison.findings[at];
    const words = ["whole", "ranks"].includes(section) ? WORDS[name] : name;
    assert.ok(sentence.includes(words), `${sentence} is of ${words}`);
  });
  const told = await page.textContent("header");
  for (const text of [...comparison.before, ...comparison.after, ...comparison.notes, ...comparison.programs]) {
    assert.ok(told.includes(text), `the page says ${text}`);
  }

  // The picture has what was found, and the changes as they are.
  const lines = await page.$$eval("#changes .change", (all) => all.map((one) => ({ verdict: one.classList[1], change: Number(one.dataset.value) })));
  const found = comparison.findings.filter((row) => row.change_percent !== null).map((row) => row.change_percent);
  assert.deepEqual(lines.filter(({ verdict }) => ["slower", "faster"].includes(verdict)).map(({ change }) => change), found.slice(0, 40));

  // Down, up, and all words of a search, wherever they are.
  const header = page.locator('table[data-table="function"] th[data-column="change_percent"] button');
  // Without what was not there before, which comes last.
  const changes = async () => (await table(page, "function")).map((row) => row.change_percent.value).filter((change) => change !== null);
  await header.click();
  assert.deepEqual(await changes(), [...(await changes())].sort((a, b) => b - a));
  await header.focus();
  await page.keyboard.press("Enter");
  assert.deepEqual(await changes(), [...(await changes())].sort((a, b) => a - b));
  const { name } = comparison.rows.find((row) => row.section === "function");
  await page.getByRole("searchbox", { name: "Search in Functions, all ranks" }).fill(name.toUpperCase());
  const matching = comparison.rows.filter((row) => row.section === "function" && row.name.includes(name)).map((row) => row.name);
  assert.deepEqual((await table(page, "function")).map((row) => row.name).sort(), matching.sort());

  const theme = () => page.getAttribute("html", "data-theme");
  await becomes(theme, "light");
  await page.click("#theme");
  await becomes(theme, "dark");
  await page.setViewportSize({ width: 380, height: 800 });
  await becomes(() => page.evaluate(() => [window.innerWidth, document.documentElement.scrollWidth <= window.innerWidth]), [380, true], "it scrolls sideways");
});
