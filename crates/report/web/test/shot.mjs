// A picture of a page, for people: node test/shot.mjs PAGE JSON OUT.png [light|dark|narrow|print] [SECTION [LAST]]
//
// Of all of it, or of the part from one section (by its id, such as `matrix`; `top` is the beginning) to another.

import { argv } from "node:process";
import { look } from "./page.mjs";

const [kind = "light", first, last = first] = argv.slice(5);
const width = kind === "narrow" ? 420 : 960;
const MARGIN = 10;

await look(async ({ page, opened }) => {
  if (kind === "print") await page.emulateMedia({ media: "print" });
  console.log(`opened in ${opened.toFixed(0)} ms`);
  let clip;
  if (first) {
    const of = (id) => page.$eval(`#${id}`, (part) => ({ top: part.getBoundingClientRect().top + window.scrollY, bottom: part.getBoundingClientRect().bottom + window.scrollY }));
    const [begin, end] = [await of(first), await of(last)];
    const top = first === "top" ? 0 : begin.top - MARGIN;
    clip = { x: 0, y: top, width, height: end.bottom + MARGIN - top };
  }
  await page.screenshot({ path: argv[4], fullPage: true, clip });
}, { viewport: { width, height: 900 }, colorScheme: kind === "dark" ? "dark" : "light" });
