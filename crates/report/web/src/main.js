// Shows what the page holds: one run, or a comparison of several.

import { comparison } from "./comparison.js";
import { load } from "./data.js";
import { element } from "./dom.js";
import { theme } from "./frame.js";
import { report } from "./report.js";

async function start() {
  try {
    const data = await load();
    const button = theme();
    if (data.comparison) comparison(data, button);
    else report(data, button);
  } catch (error) {
    const said = element("p", { class: "badge bad", role: "alert" }, `This page cannot show its data: ${error.message}. It needs a browser of 2023 or later; "mpiprobe report FILE" and "mpiprobe compare" show the same as text.`);
    document.body.replaceChildren(element("main", {}, said));
    throw error;
  }
}

start();
