// Invariant TEXT-IS-TEXT.
// Strings that are markup elsewhere are text here, and the page could not run or fetch anything else if they were not.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { argv } from "node:process";
import { look, showAll } from "./page.mjs";

await look(async ({ page, profile }) => {
  await showAll(page);
  assert.equal(await page.evaluate(() => window.broken), undefined);
  assert.equal(await page.$$eval("img, iframe, object, embed, form", (all) => all.length), 0);
  assert.equal(await page.$$eval("*", (all) => all.filter((one) => [...one.attributes].some(({ name }) => name.startsWith("on"))).length), 0);
  const links = await page.$$eval("a", (all) => all.map((one) => one.getAttribute("href")));
  assert.ok(links.every((link) => link.startsWith("#")), "all links stay on the page");
  assert.ok((await page.textContent("header")).includes(profile.host), "the text is there as it is");
  assert.ok((await page.title()).includes("window.broken"));

  const source = await readFile(argv[2], "utf8");
  const scripts = source.match(/<script\b/g).length;
  assert.equal(scripts, source.match(/<\/script>/g).length);
  assert.ok(!source.includes("<script>window.broken") && !source.includes("<img"));
  assert.ok(!/\b(src|href)="?https?:/.test(source.replace(/<!--[\s\S]*-->/, "")));
  assert.match(source, /Content-Security-Policy" content="default-src 'none'; script-src 'sha256-[^"]*'; style-src 'sha256-/);

});
