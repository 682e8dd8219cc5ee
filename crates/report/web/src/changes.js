// By how much what takes time has changed: a line each, with the interval that holds the true change.

import { axisBottom } from "d3-axis";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { element, showTip } from "./dom.js";
import * as format from "./format.js";

const MARGIN = { right: 30, top: 6, bottom: 44 };
const LINE = 24;
/** Of the width, for names. */
const NAMES = 0.4;
/** Of a letter, about. */
const LETTER = 6.6;

/** `rows` are `{ name, change, interval, verdict, tip }`, redrawn at every width. */
export class Changes {
  constructor(rows) {
    this.rows = rows;
    this.svg = select(document.createElementNS("http://www.w3.org/2000/svg", "svg"))
      .attr("role", "img")
      .attr("aria-label", `Changes of ${rows.length} subjects with their intervals; the tables say the same in figures`);
    this.plot = element("div", { class: "plot" }, this.svg.node());
    const entry = (verdict, words) => element("span", { class: "legend-entry" }, element("span", { class: `swatch ${verdict}` }), words);
    const kinds = [["slower", "longer"], ["faster", "shorter"], ["chance", "may be chance"], ["unknown", "whether it is chance is not known"]];
    const legend = kinds.filter(([verdict]) => rows.some((row) => row.verdict === verdict)).map(([verdict, words]) => entry(verdict, words));
    this.element = element("figure", {}, element("div", { class: "legend" }, ...legend), this.plot);
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  /** From the least to the most that is shown: changes whole, intervals as far as they help. */
  domain() {
    const changes = this.rows.map((row) => row.change);
    const most = Math.max(5, ...changes.map(Math.abs));
    const ends = this.rows.flatMap((row) => row.interval ?? []).filter((end) => Math.abs(end) <= 2 * most);
    return [Math.min(0, ...changes, ...ends), Math.max(0, ...changes, ...ends)];
  }

  draw() {
    const width = this.plot.clientWidth;
    if (!width) return;
    const { svg, rows } = this;
    const height = MARGIN.top + LINE * rows.length + MARGIN.bottom;
    const left = Math.min(NAMES * width, LETTER * Math.max(...rows.map((row) => row.name.length)) + 12);
    svg.attr("width", width).attr("height", height).attr("viewBox", `0 0 ${width} ${height}`);
    svg.selectAll("*").remove();
    const x = scaleLinear(this.domain(), [left + 8, width - MARGIN.right]).nice();
    const inside = (percent) => Math.max(x.range()[0], Math.min(x.range()[1], x(percent)));
    const axis = axisBottom(x).ticks(Math.max(2, (width - left) / 80)).tickSize(-LINE * rows.length).tickFormat((percent) => `${percent > 0 ? "+" : ""}${percent} %`);
    svg.append("g").attr("class", "grid").attr("transform", `translate(0,${height - MARGIN.bottom})`).call(axis);
    svg.append("line").attr("class", "zero").attr("x1", x(0)).attr("x2", x(0)).attr("y1", MARGIN.top).attr("y2", height - MARGIN.bottom);
    const most = Math.floor((left - 8) / LETTER);
    const line = svg.append("g").selectAll("g").data(rows).join("g")
      .attr("class", (row) => `change ${row.verdict}`)
      .attr("data-value", (row) => row.change)
      .attr("transform", (_, at) => `translate(0,${MARGIN.top + LINE * (at + 0.5)})`)
      .on("pointermove", (event, row) => showTip(event, row.tip))
      .on("pointerleave", (event) => showTip(event, null));
    line.append("rect").attr("class", "reach").attr("y", -LINE / 2).attr("width", width).attr("height", LINE);
    line.append("text").attr("x", left).attr("dy", "0.32em").attr("text-anchor", "end")
      .text((row) => (row.name.length > most ? `${row.name.slice(0, Math.max(1, most - 1))}…` : row.name));
    line.filter((row) => row.interval).append("line").attr("class", "interval")
      .attr("x1", (row) => inside(row.interval[0])).attr("x2", (row) => inside(row.interval[1]));
    line.append("circle").attr("r", 5).attr("cx", (row) => x(row.change));
    line.append("title").text((row) => row.tip.join(": "));
    svg.append("text").attr("class", "title").attr("x", width - MARGIN.right).attr("y", height - 8).attr("text-anchor", "end")
      .text("change, and the interval that holds it with 95 %");
  }
}

/** The line of a row of a comparison. */
export function ofRow(row, name) {
  const interval = row.change_interval_percent;
  const between = interval ? [`${format.change(interval[0])} to ${format.change(interval[1])}`] : [];
  return { name, change: row.change_percent, interval, verdict: row.verdict, tip: [name, format.change(row.change_percent), ...between] };
}
