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
