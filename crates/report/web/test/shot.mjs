// A picture of a report, for people: node test/shot.mjs PAGE JSON OUT.png [light|dark|narrow|print] [TOP HEIGHT]

import { argv } from "node:process";
import { look } from "./page.mjs";
const [kind = "light", top = "0", height = "1300"] = argv.slice(5);
const width = kind === "narrow" ? 420 : 1360;
await look(async ({ page, opened }) => {
  if (kind === "print") await page.emulateMedia({ media: "print" });
  await page.waitForTimeout(300);
  console.log(`opened in ${opened.toFixed(0)} ms`);
  await page.screenshot({ path: argv[4], fullPage: true, clip: { x: 0, y: Number(top), width, height: Number(height) } });
}, { viewport: { width, height: 900 }, colorScheme: kind === "dark" ? "dark" : "light" });
