// The communication matrix: who sent how much to whom, by communicator; wheel, buttons and keys zoom.

import { scaleLinear } from "d3-scale";
import { axisLeft, axisTop } from "d3-axis";
import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import * as colours from "./colours.js";
import { choice, element, showTip, toggle } from "./dom.js";
import * as format from "./format.js";

const MARGIN = { left: 52, right: 8, top: 44, bottom: 8 };
const LARGEST = 620;

const MEASURES = [
  ["sent_bytes", "bytes sent", format.bytes],
  ["received_bytes", "bytes received", format.bytes],
  ["calls", "calls", format.count],
  ["time_ns", "time in calls", format.duration],
];

export class Matrix {
  /** `matrix` as in the data: `{ ranks, block, communicators, communicator, rank, peer, calls, … }`. */
  constructor(matrix) {
    this.matrix = matrix;
    this.size = Math.max(1, Math.ceil(matrix.ranks / matrix.block));
    this.measure = MEASURES[0];
    this.communicator = null;
    this.log = true;
    this.transform = zoomIdentity;
    this.build();
    this.add();
    new ResizeObserver(() => this.resize()).observe(this.plot);
  }

  build() {
    const names = [["all", "all"], ...this.matrix.communicators.map((name, at) => [String(at), name])];
    const [communicator] = choice("Communicator", names, (value) => this.set({ communicator: value === "all" ? null : Number(value) }), "matrix-communicator");
    const [measure] = choice("Shown", MEASURES.map(([name, shown]) => [name, shown]), (value) => this.set({ measure: MEASURES.find(([name]) => name === value) }), "matrix-measure");
    const log = toggle("Logarithmic", true, (on) => this.set({ log: on }));
    const step = (factor) => () => this.zoomed.call(this.zoom.scaleBy, factor);
    const button = (label, title, onclick) => element("button", { type: "button", "aria-label": title, title, onclick }, label);
    this.canvas = element("canvas", { "aria-hidden": "true" });
    this.svg = select(document.createElementNS("http://www.w3.org/2000/svg", "svg"))
      .attr("tabindex", 0)
      .attr("role", "img")
      .attr("aria-label", "Communication matrix; the table of pairs says the same in figures. Plus and minus zoom, arrows move.");
    this.plot = element("div", { class: "plot matrix" }, this.canvas, this.svg.node());
    this.legend = element("div", { class: "legend" });
    this.status = element("output", { class: "span", id: "matrix-zoom" });
    this.element = element(
      "div",
      { class: "matrix-holder" },
      element("div", { class: "controls" }, communicator, measure, log,
        element("span", { class: "buttons" }, button("+", "Zoom in", step(2)), button("−", "Zoom out", step(0.5)), button("Whole", "Whole matrix", () => this.zoomed.call(this.zoom.transform, zoomIdentity))),
        this.status),
      this.legend,
      this.plot,
    );
    this.svg.on("keydown", (event) => this.key(event));
  }

  set(change) {
    Object.assign(this, change);
    this.add();
    this.draw();
  }

  /** Cells of the chosen communicator and measure, summed. */
  add() {
    const { communicator, rank, peer } = this.matrix;
    const values = this.matrix[this.measure[0]];
    this.cells = new Map();
    this.most = 0;
    for (let at = 0; at < rank.length; at += 1) {
      if (this.communicator !== null && communicator[at] !== this.communicator) continue;
      if (!values[at]) continue;
      const cell = rank[at] * this.size + peer[at];
      const sum = (this.cells.get(cell) ?? 0) + values[at];
      this.cells.set(cell, sum);
      this.most = Math.max(this.most, sum);
    }
    this.least = Math.min(this.most, ...[...this.cells.values()].slice(0, 50_000));
    this.legend.replaceChildren(colours.key(this.log ? this.measure[2](this.least || 0) : "0", this.measure[2](this.most), this.measure[1]));
    if (this.matrix.block > 1) this.legend.append(element("span", { class: "legend-title" }, `each square is a block of ${this.matrix.block} × ${this.matrix.block} ranks`));
  }

  share(value) {
    if (!this.log) return value / this.most;
    const [low, high] = [Math.log(this.least), Math.log(this.most)];
    return high > low ? 0.08 + (0.92 * (Math.log(value) - low)) / (high - low) : 1;
  }

  resize() {
    const side = Math.max(160, Math.min(LARGEST, this.plot.clientWidth - MARGIN.left - MARGIN.right));
    if (side === this.side) return;
    this.side = side;
    const [width, height] = [side + MARGIN.left + MARGIN.right, side + MARGIN.top + MARGIN.bottom];
    this.svg.attr("width", width).attr("height", height).attr("viewBox", `0 0 ${width} ${height}`);
    this.zoom = zoom()
      .scaleExtent([1, Math.max(1, this.size / 2)])
      .extent([[MARGIN.left, MARGIN.top], [MARGIN.left + side, MARGIN.top + side]])
      .translateExtent([[MARGIN.left, MARGIN.top], [MARGIN.left + side, MARGIN.top + side]])
      // The page is scrolled as ever unless somebody means the matrix.
      .filter((event) => (event.type === "wheel" ? event.ctrlKey || document.activeElement === this.svg.node() : !event.button))
      .on("zoom", (event) => {
        this.transform = event.transform;
        this.draw();
      });
    this.zoomed = this.svg.call(this.zoom);
    this.svg.on("pointermove", (event) => this.point(event)).on("pointerleave", (event) => showTip(event, null));
    this.draw();
  }

  draw() {
    if (!this.side) return;
    const { side, size } = this;
    this.x = this.transform.rescaleX(scaleLinear([0, size], [MARGIN.left, MARGIN.left + side]));
    this.y = this.transform.rescaleY(scaleLinear([0, size], [MARGIN.top, MARGIN.top + side]));
    const scale = window.devicePixelRatio || 1;
    Object.assign(this.canvas.style, { left: `${MARGIN.left}px`, top: `${MARGIN.top}px`, width: `${side}px`, height: `${side}px` });
    [this.canvas.width, this.canvas.height] = [side * scale, side * scale];
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    const step = (side / size) * this.transform.k;
    const inset = step > 6 ? 0.5 : 0;
    for (const [cell, value] of this.cells) {
      const [left, top] = [this.x(cell % size) - MARGIN.left, this.y(Math.floor(cell / size)) - MARGIN.top];
      if (left > side || top > side || left + step < 0 || top + step < 0) continue;
      context.fillStyle = colours.ofAmount(this.share(value));
      context.fillRect(left + inset, top + inset, Math.max(1, step - 2 * inset), Math.max(1, step - 2 * inset));
    }
    this.drawAxes();
    const [first, last] = this.x.domain();
    this.status.textContent = this.transform.k > 1 ? `receivers ${this.name(Math.floor(first))} to ${this.name(Math.min(size, Math.ceil(last)) - 1)}` : "whole matrix";
    this.svg.attr("data-zoom", this.transform.k.toFixed(3));
  }

  name(at) {
    const { block } = this.matrix;
    return block === 1 ? String(at) : `${at * block}–${Math.min(this.matrix.ranks, (at + 1) * block) - 1}`;
  }

  drawAxes() {
    this.svg.selectAll("*").remove();
    const middle = (axis, scale) => {
      const [first, last] = scale.domain();
      const ticks = scale.ticks(8).filter((tick) => Number.isInteger(tick) && tick + 0.5 <= last && tick + 0.5 >= first);
      return axis(scale.copy().domain([first - 0.5, last - 0.5])).tickSizeOuter(0).tickValues(ticks).tickFormat((at) => String(at * this.matrix.block));
    };
    this.svg.append("rect").attr("class", "frame").attr("x", MARGIN.left).attr("y", MARGIN.top).attr("width", this.side).attr("height", this.side);
    this.svg.append("g").attr("transform", `translate(0,${MARGIN.top})`).call(middle(axisTop, this.x));
    this.svg.append("g").attr("transform", `translate(${MARGIN.left},0)`).call(middle(axisLeft, this.y));
    this.svg.append("text").attr("class", "title").attr("x", MARGIN.left + this.side / 2).attr("y", 12).attr("text-anchor", "middle").text("partner");
    this.svg.append("text").attr("class", "title").attr("transform", `translate(11,${MARGIN.top + this.side / 2}) rotate(-90)`).attr("text-anchor", "middle").text("rank");
  }

  cellAt(event) {
    const box = this.svg.node().getBoundingClientRect();
    const place = [Math.floor(this.y.invert(event.clientY - box.top)), Math.floor(this.x.invert(event.clientX - box.left))];
    return place.every((at) => at >= 0 && at < this.size) ? place : null;
  }

  point(event) {
    const place = this.cellAt(event);
    if (!place) return showTip(event, null);
    const [rank, peer] = place;
    const value = this.cells.get(rank * this.size + peer);
    return showTip(event, [`${this.name(rank)} → ${this.name(peer)}`, value ? `${this.measure[2](value)} ${this.measure[0].endsWith("bytes") ? this.measure[1].replace("bytes ", "") : this.measure[1]}` : "nothing"]);
  }

  key(event) {
    const steps = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const part = this.side / 4 / this.transform.k;
    if (event.key === "+" || event.key === "=") this.zoomed.call(this.zoom.scaleBy, 2);
    else if (event.key === "-") this.zoomed.call(this.zoom.scaleBy, 0.5);
    else if (event.key === "0") this.zoomed.call(this.zoom.transform, zoomIdentity);
    else if (steps[event.key]) this.zoomed.call(this.zoom.translateBy, steps[event.key][0] * part, steps[event.key][1] * part);
    else return;
    event.preventDefault();
  }
}
