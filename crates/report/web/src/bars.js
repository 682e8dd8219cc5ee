// Bars: histograms of durations and sizes, and one figure over ranks.

import { axisBottom, axisLeft } from "d3-axis";
import { format as numbers } from "d3-format";
import { scaleBand, scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { element, showTip } from "./dom.js";

const MARGIN = { left: 56, right: 10, top: 10, bottom: 46 };
const HEIGHT = 210;
const short = numbers("~s");

/** Bars with a label each, redrawn at every width. `bars` are `{ label, value, tip }`. */
export class Bars {
  constructor({ title, xTitle, yTitle, valueFormat }) {
    Object.assign(this, { title, xTitle, yTitle, valueFormat: valueFormat ?? short, bars: [] });
    this.svg = select(document.createElementNS("http://www.w3.org/2000/svg", "svg")).attr("role", "img");
    this.plot = element("div", { class: "plot" }, this.svg.node());
    this.heading = element("h3", {}, title);
    this.element = element("figure", {}, this.heading, this.plot);
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  set(bars, title) {
    this.bars = bars;
    this.heading.textContent = title ?? this.title;
    this.draw();
  }

  draw() {
    const width = this.plot.clientWidth;
    if (!width) return;
    const { svg, bars } = this;
    svg.attr("width", width).attr("height", HEIGHT).attr("viewBox", `0 0 ${width} ${HEIGHT}`);
    svg.attr("aria-label", `${this.heading.textContent}: ${bars.length} bars`);
    svg.selectAll("*").remove();
    if (!bars.length) {
      svg.append("text").attr("class", "title").attr("x", width / 2).attr("y", HEIGHT / 2).attr("text-anchor", "middle").text("nothing");
      return;
    }
    const x = scaleBand(bars.map((_, at) => at), [MARGIN.left, width - MARGIN.right]).paddingInner(bars.length > 100 ? 0 : 0.12);
    const y = scaleLinear([0, Math.max(...bars.map((bar) => bar.value), 1e-9)], [HEIGHT - MARGIN.bottom, MARGIN.top]).nice();
    const every = Math.max(1, Math.ceil(bars.length / ((width - MARGIN.left) / 62)));
    const grid = axisLeft(y).ticks(4).tickSize(-(width - MARGIN.left - MARGIN.right)).tickFormat(this.valueFormat);
    svg.append("g").attr("class", "grid").attr("transform", `translate(${MARGIN.left},0)`).call(grid);
    svg.append("g").selectAll("rect").data(bars).join("rect")
      .attr("class", "bar")
      .attr("data-value", (bar) => bar.value)
      .attr("x", (_, at) => x(at))
      .attr("width", Math.max(0.5, x.bandwidth()))
      .attr("y", (bar) => y(bar.value))
      .attr("height", (bar) => y(0) - y(bar.value))
      .on("pointermove", (event, bar) => showTip(event, bar.tip))
      .on("pointerleave", (event) => showTip(event, null))
      .append("title").text((bar) => bar.tip.join(": "));
    const axis = axisBottom(x).tickSizeOuter(0).tickValues(bars.map((_, at) => at).filter((at) => at % every === 0)).tickFormat((at) => bars[at].label);
    svg.append("g").attr("transform", `translate(0,${HEIGHT - MARGIN.bottom})`).call(axis);
    svg.append("text").attr("class", "title").attr("x", width - MARGIN.right).attr("y", HEIGHT - 8).attr("text-anchor", "end").text(this.xTitle);
    svg.append("text").attr("class", "title").attr("x", 4).attr("y", HEIGHT - 8).text(this.yTitle);
  }
}

/** Bars of buckets by powers of two, from the first that is not empty: bucket n has what is from 2ⁿ⁻¹ up. */
export function ofBuckets(buckets, unit, noun) {
  const first = buckets.findIndex((number) => number > 0);
  if (first < 0) return [];
  return buckets.slice(first).map((number, at) => {
    const bucket = first + at;
    const low = bucket === 0 ? 0 : 2 ** (bucket - 1);
    const label = unit(low);
    const range = bucket === 0 ? label : `from ${label} to ${unit(2 ** bucket)}`;
    return { label, value: number, tip: [range, `${number} ${noun}`] };
  });
}
