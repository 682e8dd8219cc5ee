// Invariant TEXT-IS-TEXT.
// Strings that are markup elsewhere are text here, and the page could not run or fetch anything else if they were not.

import assert from "node:assert/strict";
import { holdsOnlyText, look, showAll } from "./page.mjs";

await look(async ({ page, profile }) => {
  await showAll(page);
  await holdsOnlyText(page);
  assert.ok((await page.textContent("header")).includes(profile.host), "the text is there as it is");
  assert.ok((await page.title()).includes("window.broken"));
});
