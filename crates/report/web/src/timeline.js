// Time in MPI over the moments of the recording: by kind of call over all ranks, and rank by rank. A brush chooses a span.

import { axisBottom, axisLeft } from "d3-axis";
import { brushX } from "d3-brush";
import { scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { area, curveStepBefore, stack } from "d3-shape";
import * as colours from "./colours.js";
import { choice, element, showTip } from "./dom.js";
import * as format from "./format.js";

const MARGIN = { left: 56, right: 12, top: 8, bottom: 38 };
const KINDS_HEIGHT = 120;
const GAP = 26;

export class Timeline {
  /** `moments` and `ranks` as in the data; `onspan(from, to)` gets the numbers of the first and the last interval. */
  constructor(moments, ranks, onspan) {
    this.moments = moments;
    this.ranks = ranks;
    this.onspan = onspan;
    this.times = [0, ...moments.at_ns].map((ns) => ns / 1e9);
    this.last = moments.at_ns.length - 1;
    this.order = ranks.map((_, at) => at);
    this.span = [0, this.last];
    this.wall = moments.at_ns.map((_, at) => moments.ranks.wall_ns.reduce((all, row) => all + row[at], 0));
    this.build();
    new ResizeObserver(() => this.draw()).observe(this.plot);
  }

  build() {
    const [order] = choice("Order of ranks", [["rank", "by rank"], ["mpi", "most time in MPI first"]], (by) => this.sort(by), "timeline-order");
    this.from = this.slider("From", 0);
    this.until = this.slider("Until", this.last);
    this.whole = element("button", { type: "button", id: "whole", disabled: true, onclick: () => this.choose(0, this.last) }, "Whole run");
    this.said = element("output", { id: "span", class: "span" });
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.svg = select(document.createElementNS("http://www.w3.org/2000/svg", "svg"))
      .attr("role", "img")
      .attr("aria-label", `Time in MPI of ${this.ranks.length} ranks over ${this.times.length - 1} moments; the tables of functions and ranks say the same in figures`);
    this.plot = element("div", { class: "plot timeline" }, this.canvas, this.svg.node());
    this.legend = element("div", { class: "legend" });
    this.element = element(
      "div",
      {},
      element("div", { class: "controls" }, order, this.from.parentNode, this.until.parentNode, this.whole, this.said),
      this.legend,
      this.plot,
    );
  }

  slider(label, value) {
    const input = element("input", {
      type: "range", min: 0, max: this.last, value, id: `timeline-${label.toLowerCase()}`,
      oninput: () => {
        const [from, until] = [Number(this.from.value), Number(this.until.value)];
        this.choose(Math.min(from, until), Math.max(from, until));
      },
    });
    element("label", { class: "control" }, label, input);
    return input;
  }

  sort(by) {
    const share = this.ranks.map((_, at) => this.shareOf(at, 0, this.last));
    this.order = this.ranks.map((_, at) => at);
    if (by === "mpi") this.order.sort((a, b) => share[b] - share[a]);
    this.draw();
  }

  shareOf(rank, from, to) {
    const { wall_ns, mpi_ns } = this.moments.ranks;
    let [wall, mpi] = [0, 0];
    for (let at = from; at <= to; at += 1) {
      wall += wall_ns[rank][at];
      mpi += mpi_ns[rank][at];
    }
    return wall > 0 ? Math.min(1, mpi / wall) : 0;
  }

  /** Takes a span of intervals, tells everybody, and shows it. */
  choose(from, to, byBrush = false) {
    this.span = [from, to];
    this.whole.disabled = from === 0 && to === this.last;
    [this.from.value, this.until.value] = [from, to];
    this.say();
    if (!byBrush) this.moveBrush();
    this.onspan(from, to);
  }

  say() {
    const [from, to] = this.span;
    const [begin, end] = [this.times[from], this.times[to + 1]];
    const words = from === 0 && to === this.last ? "whole run" : `${begin.toFixed(1)} s to ${end.toFixed(1)} s`;
    this.said.textContent = `${words} (${format.duration((end - begin) * 1e9)})`;
  }

  draw() {
    const width = this.plot.clientWidth;
    if (!width) return;
    const rankHeight = Math.max(96, Math.min(320, this.ranks.length * 22));
    const top = MARGIN.top + KINDS_HEIGHT + GAP;
    const height = top + rankHeight + MARGIN.bottom;
    this.x = scaleLinear([0, this.times[this.last + 1]], [MARGIN.left, width - MARGIN.right]);
    this.svg.attr("width", width).attr("height", height).attr("viewBox", `0 0 ${width} ${height}`);
    this.svg.selectAll("*").remove();
    this.drawKinds();
    this.drawRanks(top, rankHeight);
    const axis = axisBottom(this.x).tickSizeOuter(0).ticks(Math.max(3, width / 110));
    this.svg.append("g").attr("transform", `translate(0,${top + rankHeight})`).call(axis);
    this.svg.append("text").attr("class", "title").attr("x", width - MARGIN.right).attr("y", height - 5).attr("text-anchor", "end").text("seconds since the beginning of observation");
    this.drawBrush(top + rankHeight);
    this.say();
  }

  drawKinds() {
    const { names, time_ns } = this.moments.groups;
    const shares = this.moments.at_ns.map((_, at) => time_ns.map((row) => (this.wall[at] > 0 ? (100 * row[at]) / this.wall[at] : 0)));
    const layers = stack().keys(names.map((_, at) => at)).value((row, at) => Math.max(0, row[at]))(shares);
    const most = Math.max(1, ...layers.flatMap((layer) => layer.map((part) => part[1])));
    const y = scaleLinear([0, Math.min(100, most * 1.05)], [MARGIN.top + KINDS_HEIGHT, MARGIN.top]).clamp(true);
    // The value of an interval holds until its end; a first point lets its step begin where the interval does.
    const shape = area()
      .x((_, at) => this.x(this.times[at]))
      .y0((part) => y(part[0]))
      .y1((part) => y(part[1]))
      .curve(curveStepBefore);
    layers.forEach((layer, at) => {
      this.svg.append("path").attr("d", shape([layer[0], ...layer])).attr("fill", colours.ofKind(at)).append("title").text(names[at]);
    });
    this.svg.append("g").attr("transform", `translate(${MARGIN.left},0)`).call(axisLeft(y).tickSizeOuter(0).ticks(4).tickFormat((share) => `${share} %`));
    this.legend.replaceChildren(
      element("span", { class: "legend-title" }, "Share of the ranks' wall time in"),
      ...names.map((name, at) => {
        const swatch = element("span", { class: "swatch", "aria-hidden": "true" });
        swatch.style.background = colours.ofKind(at);
        return element("span", { class: "legend-entry" }, swatch, name);
      }),
    );
  }

  drawRanks(top, height) {
    const intervals = this.last + 1;
    const lines = Math.min(this.ranks.length, Math.floor(height));
    const image = new ImageData(intervals, lines);
    const steps = colours.palette();
    const { wall_ns, mpi_ns } = this.moments.ranks;
    this.lineOf = (line) => [Math.floor((line * this.ranks.length) / lines), Math.ceil(((line + 1) * this.ranks.length) / lines)];
    for (let line = 0; line < lines; line += 1) {
      const [first, end] = this.lineOf(line);
      for (let at = 0; at < intervals; at += 1) {
        let [wall, mpi] = [0, 0];
        for (let row = first; row < end; row += 1) {
          wall += wall_ns[this.order[row]][at];
          mpi += mpi_ns[this.order[row]][at];
        }
        const pixel = 4 * (line * intervals + at);
        if (wall <= 0) continue;
        const step = 3 * Math.max(0, Math.min(255, Math.round((255 * mpi) / wall)));
        image.data.set([steps[step], steps[step + 1], steps[step + 2], 255], pixel);
      }
    }
    const small = document.createElement("canvas");
    [small.width, small.height] = [intervals, lines];
    small.getContext("2d").putImageData(image, 0, 0);
    const scale = window.devicePixelRatio || 1;
    const [left, right] = this.x.range();
    Object.assign(this.canvas.style, { left: `${left}px`, top: `${top}px`, width: `${right - left}px`, height: `${height}px` });
    [this.canvas.width, this.canvas.height] = [Math.round((right - left) * scale), Math.round(height * scale)];
    const context = this.canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    // Moments need not be equally far apart.
    for (let at = 0; at < intervals; at += 1) {
      const [begin, end] = [this.times[at], this.times[at + 1]].map((time) => Math.round((this.x(time) - left) * scale));
      context.drawImage(small, at, 0, 1, lines, begin, 0, Math.max(1, end - begin), this.canvas.height);
    }
    this.rankScale = scaleLinear([0, this.ranks.length], [top, top + height]);
    const byRank = this.order.every((at, row) => at === row);
    const ticks = this.rankScale.ticks(Math.min(8, this.ranks.length)).filter((tick) => Number.isInteger(tick) && tick < this.ranks.length);
    const axis = axisLeft(this.rankScale.copy().domain([-0.5, this.ranks.length - 0.5])).tickSizeOuter(0).tickValues(ticks).tickFormat((row) => format.text(this.ranks[this.order[row]]?.rank));
    this.svg.append("g").attr("transform", `translate(${MARGIN.left},0)`).call(axis);
    this.svg.append("text").attr("class", "title").attr("x", MARGIN.left).attr("y", top - 6).text(byRank ? "MPI % of each rank" : "MPI % of each rank, most time in MPI first");
    this.legend.append(colours.key("0 %", "100 %", "MPI % of a rank"));
  }

  drawBrush(bottom) {
    const [left, right] = this.x.range();
    this.brush = brushX()
      .extent([[left, MARGIN.top], [right, bottom]])
      .on("brush end", (event) => {
        if (!event.sourceEvent) return;
        if (!event.selection) {
          if (event.type === "end") this.choose(0, this.last, true);
          return;
        }
        const [begin, end] = event.selection.map(this.x.invert);
        const from = Math.min(this.last, this.nearest(begin));
        const to = Math.max(from, this.nearest(end) - 1);
        if (from !== this.span[0] || to !== this.span[1]) this.choose(from, to, true);
        if (event.type === "end") this.moveBrush();
      });
    this.brushed = this.svg.append("g").attr("class", "brush").call(this.brush);
    this.brushed.on("pointermove", (event) => this.point(event)).on("pointerleave", (event) => showTip(event, null));
    this.moveBrush();
  }

  moveBrush() {
    if (!this.brushed) return;
    const [from, to] = this.span;
    const isWhole = from === 0 && to === this.last;
    this.brushed.call(this.brush.move, isWhole ? null : [this.x(this.times[from]), this.x(this.times[to + 1])]);
  }

  /** Number of the moment that is nearest to a time; 0 is the beginning. */
  nearest(time) {
    const after = this.intervalAt(time) + 1;
    return time - this.times[after - 1] < this.times[after] - time ? after - 1 : after;
  }

  intervalAt(time) {
    const at = this.times.findIndex((end, index) => index > 0 && time < end);
    return at < 0 ? this.last : Math.max(0, at - 1);
  }

  point(event) {
    const box = this.svg.node().getBoundingClientRect();
    const at = this.intervalAt(this.x.invert(event.clientX - box.left));
    const when = `${this.times[at].toFixed(1)} s to ${this.times[at + 1].toFixed(1)} s`;
    const row = Math.floor(this.rankScale.invert(event.clientY - box.top));
    if (row >= 0 && row < this.ranks.length) {
      const rank = this.order[row];
      return showTip(event, [`Rank ${format.text(this.ranks[rank].rank)}`, when, `${(100 * this.shareOf(rank, at, at)).toFixed(1)} % in MPI`]);
    }
    if (row >= this.ranks.length) return showTip(event, null);
    const { names, time_ns } = this.moments.groups;
    const shares = names.map((name, kind) => [name, this.wall[at] > 0 ? (100 * time_ns[kind][at]) / this.wall[at] : 0]);
    const lines = shares.filter(([, share]) => share >= 0.05).sort((a, b) => b[1] - a[1]);
    return showTip(event, [when, ...lines.map(([name, share]) => `${name}: ${share.toFixed(1)} %`)]);
  }
}
