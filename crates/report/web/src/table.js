// Sortable, searchable tables. Sorting and searching are TanStack Table's; what is on the page is a plain <table>.

import { createTable, getCoreRowModel, getFilteredRowModel, getSortedRowModel } from "@tanstack/table-core";
import { element } from "./dom.js";
import * as format from "./format.js";

/** Rows shown before somebody asks for all. */
const FIRST = 50;

const FORMATS = {
  text: format.text,
  count: format.count,
  duration: format.duration,
  bytes: format.bytes,
  percent: format.percent,
  imbalance: format.imbalance,
  share: format.share,
  change: format.change,
  probability: format.probability,
  meanCount: format.meanCount,
};

// What is unknown comes last, whatever the order.
const known = (value) => value ?? undefined;

/**
 * A table of rows.
 *
 * Columns are `{ id, title, kind, value, hint, bar }`: `kind` is one of FORMATS, `value` gets the raw value of a row, `bar` its
 * share of the longest bar (0 to 1). `more` gives an element that is shown below a row, or null.
 */
export class Table {
  constructor({ id, caption, columns, rows, sort, more, select }) {
    this.id = id;
    this.columns = columns;
    this.more = more;
    this.select = select;
    this.all = false;
    this.open = new Set();
    this.marked = null;
    this.state = {};
    this.table = createTable({
      data: rows,
      columns: columns.map((column) => ({
        id: column.id,
        accessorFn: (row) => known(column.value(row)),
        sortingFn: column.kind === "text" ? "alphanumeric" : "basic",
        sortDescFirst: column.kind !== "text" && column.kind !== "rank",
        sortUndefined: "last",
      })),
      state: {},
      onStateChange: (update) => this.change(update),
      renderFallbackValue: null,
      getCoreRowModel: getCoreRowModel(),
      getSortedRowModel: getSortedRowModel(),
      getFilteredRowModel: getFilteredRowModel(),
      enableMultiSort: true,
      getColumnCanGlobalFilter: () => true,
      globalFilterFn: (row, _column, words) => this.matches(row.original, words),
    });
    this.state = { ...this.table.initialState, sorting: sort ?? [] };
    this.table.setOptions((options) => ({ ...options, state: this.state }));
    this.build(caption);
    this.draw();
  }

  change(update) {
    this.state = typeof update === "function" ? update(this.state) : update;
    this.table.setOptions((options) => ({ ...options, state: this.state }));
    this.draw();
  }

  setRows(rows) {
    this.open.clear();
    this.table.setOptions((options) => ({ ...options, data: rows }));
    this.draw();
  }

  /** Whether every word is in some cell, as it is shown. */
  matches(row, words) {
    const shown = this.columns.map((column) => this.shown(column, row)).join("\u0000").toLowerCase();
    return words.toLowerCase().split(/\s+/).filter(Boolean).every((word) => shown.includes(word));
  }

  shown(column, row) {
    return (FORMATS[column.kind] ?? format.text)(column.value(row));
  }

  build(caption) {
    const search = element("input", {
      type: "search",
      placeholder: "Search",
      "aria-label": `Search in ${caption}`,
      spellcheck: "false",
      oninput: () => this.table.setGlobalFilter(search.value || undefined),
    });
    this.found = element("span", { class: "found", role: "status" });
    this.head = element("tr");
    for (const column of this.columns) {
      const button = element(
        "button",
        { type: "button", title: column.hint, onclick: (event) => this.sortBy(column.id, event.shiftKey) },
        column.title,
        element("span", { class: "arrow", "aria-hidden": "true" }),
      );
      const numeric = column.kind !== "text";
      this.head.append(element("th", { scope: "col", class: numeric ? "number" : null, "data-column": column.id }, button));
    }
    this.body = element("tbody");
    this.rest = element("button", { type: "button", class: "rest", onclick: () => this.showAll() });
    const table = element(
      "table",
      { "data-table": this.id },
      element("caption", { class: "hidden" }, caption),
      element("thead", {}, this.head),
      this.body,
    );
    this.element = element(
      "div",
      { class: "table" },
      element("div", { class: "tools" }, search, this.found),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table),
      this.rest,
    );
  }

  sortBy(id, several) {
    this.table.getColumn(id).toggleSorting(undefined, several);
  }

  showAll() {
    this.all = true;
    this.draw();
  }

  draw() {
    for (const cell of this.head.children) {
      const order = this.table.getColumn(cell.dataset.column).getIsSorted();
      if (order) cell.setAttribute("aria-sort", order === "asc" ? "ascending" : "descending");
      else cell.removeAttribute("aria-sort");
    }
    const rows = this.table.getRowModel().rows;
    const total = this.table.getCoreRowModel().rows.length;
    this.found.textContent = rows.length === total ? `${format.count(total)} rows` : `${format.count(rows.length)} of ${format.count(total)} rows`;
    const shown = this.all ? rows : rows.slice(0, FIRST);
    this.rest.hidden = shown.length === rows.length;
    this.rest.textContent = `Show all ${format.count(rows.length)} rows`;
    const made = document.createDocumentFragment();
    for (const row of shown) this.drawRow(row, made);
    if (!shown.length) {
      made.append(element("tr", {}, element("td", { class: "none", colspan: this.columns.length }, "Nothing matches.")));
    }
    this.body.replaceChildren(made);
  }

  drawRow(row, made) {
    const more = this.more?.(row.original);
    const line = element("tr", { class: this.marked === row.id ? "marked" : null });
    this.columns.forEach((column, at) => {
      const raw = column.value(row.original);
      const shown = this.shown(column, row.original);
      const numeric = column.kind !== "text";
      const cell = element(at === 0 ? "th" : "td", { scope: at === 0 ? "row" : null, class: numeric ? "number" : column.long ? "long" : null });
      if (numeric) cell.dataset.value = raw === null || raw === undefined ? "null" : String(raw);
      if (at === 0 && this.select) {
        cell.append(element("button", { type: "button", class: "link", onclick: () => this.mark(row) }, shown));
      } else if (column.opens && more) {
        const open = this.open.has(row.id);
        cell.append(element("button", { type: "button", class: "link", "aria-expanded": open, onclick: () => this.toggle(row.id) }, shown));
      } else {
        cell.append(shown);
      }
      const bar = column.bar?.(row.original);
      if (bar) {
        cell.classList.add("barred");
        cell.style.setProperty("--bar", `${(100 * Math.min(1, bar)).toFixed(2)}%`);
      }
      line.append(cell);
    });
    made.append(line);
    if (more && this.open.has(row.id)) {
      made.append(element("tr", { class: "more" }, element("td", { colspan: this.columns.length }, more)));
    }
  }

  mark(row) {
    this.marked = row.id;
    this.draw();
    this.select(row.original);
  }

  toggle(id) {
    if (!this.open.delete(id)) this.open.add(id);
    this.draw();
  }
}
