// Excerpts of the source at call sites, opened by keys; text of any kind stays text.

import assert from "node:assert/strict";
import { look } from "./page.mjs";

await look(async ({ page }) => {
  const place = page.locator('table[data-table="sites"]').getByRole("button", { name: /^solve\.c:/ }).first();
  const line = /:(\d+)/.exec(await place.textContent())[1];
  assert.equal(await page.$$eval(".source", (all) => all.length), 0);
  await place.focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.textContent(".source figcaption"), `solve.c:${line}`);
  assert.equal(await page.textContent(".source .here .line-number"), line);
  assert.match(await page.textContent(".source .here code"), new RegExp(`^    step\\(${line}\\); /\\* </script>`));
  assert.equal(await page.$$eval(".source .line", (all) => all.length), 13);
  assert.equal(await page.evaluate(() => window.broken), undefined);
});
