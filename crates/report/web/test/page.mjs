// Opens a report in Chromium: node SCRIPT PAGE JSON. Whatever the page says to the console, or asks of a network, is an error.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { chromium } from "playwright-core";

/** How long anything may take on a machine that has other work, in milliseconds: a limit for what hangs, not a measurement. */
const PATIENCE = 300_000;

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/** Runs `check({ page, profile, open })` with the page that the command line names. */
export async function look(check, { viewport = { width: 1360, height: 900 }, colorScheme = "light" } = {}) {
  const profile = JSON.parse(await readFile(argv[3], "utf8"));
  const directory = await mkdtemp(join(tmpdir(), "mpiprobe-page-"));
  const context = await chromium.launchPersistentContext(directory, {
    executablePath: "/usr/bin/chromium", headless: true, args: FLAGS, viewport, colorScheme, timeout: PATIENCE,
  });
  context.setDefaultTimeout(PATIENCE);
  const wrong = [];
  try {
    const page = context.pages()[0] ?? (await context.newPage());
    page.on("console", (message) => { if (["error", "warning"].includes(message.type())) wrong.push(message.text()); });
    page.on("pageerror", (error) => wrong.push(String(error)));
    page.on("request", (request) => { if (!request.url().startsWith("file:")) wrong.push(`asks for ${request.url()}`); });
    const began = performance.now();
    await page.goto(pathToFileURL(argv[2]).href);
    await page.waitForSelector("html[data-ready]");
    await check({ page, profile, opened: performance.now() - began });
    if (wrong.length) throw new Error(`the page complains:\n${wrong.join("\n")}`);
  } finally {
    await context.close();
    await rm(directory, { recursive: true, force: true });
  }
}

/** The cells of a table that are shown, by column: the raw figure, or the text. */
export async function table(page, id) {
  return page.$$eval(`table[data-table="${id}"]`, ([found]) => {
    if (!found) return null;
    const names = [...found.tHead.rows[0].cells].map((cell) => cell.dataset.column);
    const rows = [...found.tBodies[0].rows].filter((row) => row.cells.length === names.length);
    return rows.map((row) => Object.fromEntries(names.map((name, at) => {
      const cell = row.cells[at];
      const figure = cell.dataset.value;
      return [name, figure === undefined ? cell.textContent : { shown: cell.textContent, value: figure === "null" ? null : Number(figure) }];
    })));
  });
}

/** Has every table show all of its rows. */
export async function showAll(page) {
  for (const button of await page.$$("button.rest:not([hidden])")) await button.click();
}

/**
 * Waits until `read()` gives what is expected. For all that the browser tells the page when it next draws (a medium, a size, the
 * end of a gesture): whoever asked for it is answered before.
 */
export async function becomes(read, expected, what) {
  const until = performance.now() + PATIENCE;
  for (;;) {
    const found = await read();
    if (isDeepStrictEqual(found, expected)) return;
    if (performance.now() > until) assert.deepEqual(found, expected, what);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Whether strings that are markup elsewhere are text here, and the page could not run or fetch anything else if they were not. */
export async function holdsOnlyText(page) {
  assert.equal(await page.evaluate(() => window.broken), undefined);
  assert.equal(await page.$$eval("img, iframe, object, embed, form", (all) => all.length), 0);
  assert.equal(await page.$$eval("*", (all) => all.filter((one) => [...one.attributes].some(({ name }) => name.startsWith("on"))).length), 0);
  const links = await page.$$eval("a", (all) => all.map((one) => one.getAttribute("href")));
  assert.ok(links.every((link) => link.startsWith("#")), "all links stay on the page");
  const source = await readFile(argv[2], "utf8");
  const scripts = source.match(/<script\b/g).length;
  assert.equal(scripts, source.match(/<\/script>/g).length);
  assert.ok(!source.includes("<script>window.broken") && !source.includes("<img"));
  assert.ok(!/\b(src|href)="?https?:/.test(source.replace(/<!--[\s\S]*-->/, "")));
  assert.match(source, /Content-Security-Policy" content="default-src 'none'; script-src 'sha256-[^"]*'; style-src 'sha256-/);
}

const UNITS = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15, EB: 1e18, "%": 1 };

/** Whether a text says a figure, as exactly as it can. */
function says({ shown, value }, scale = 1) {
  if (value === null) return assert.equal(shown, "?");
  const [, sign, number, unit] = /^([+−]?)([\d,.]+)(?: (\S+))?$/.exec(shown) ?? assert.fail(`${shown} is no figure`);
  const said = Number(number.replaceAll(",", "")) * (UNITS[unit] ?? 1) * (sign === "−" ? -1 : 1);
  const digits = (number.split(".")[1] ?? "").length;
  const half = (0.5 * (UNITS[unit] ?? 1)) / 10 ** digits;
  assert.ok(Math.abs(said - value * scale) <= half * 1.0001, `${shown} stands for ${value}`);
}

/** Rows of a table are these, in any order; each expected row has raw figures and texts. */
export async function same(page, id, expected, percents = ["imbalance"]) {
  const shown = await table(page, id);
  if (!expected.length && shown === null) return;
  assert.ok(shown, `there is no table ${id}`);
  const plain = (row) => JSON.stringify(Object.fromEntries(Object.entries(row).sort().map(([name, cell]) => [name, cell !== null && typeof cell === "object" ? cell.value : cell])));
  const names = expected.length ? Object.keys(expected[0]) : [];
  const chosen = shown.map((row) => Object.fromEntries(names.map((name) => [name, row[name]])));
  assert.deepEqual(chosen.map(plain).sort(), expected.map(plain).sort(), `table ${id}`);
  for (const row of shown) {
    for (const [name, cell] of Object.entries(row)) if (typeof cell === "object") says(cell, percents.includes(name) ? 100 : 1);
  }
}
