// Numbers with units, by the same rules as the text report (crates/report/src/present/units.rs), so that both show the same.

function significant(value) {
  if (value < 9.995) return value.toFixed(2);
  if (value < 99.95) return value.toFixed(1);
  return value.toFixed(0);
}

/** A duration in ns, three significant digits. */
export function duration(ns) {
  if (ns === null || ns === undefined) return "?";
  const sign = ns < 0 ? "−" : "";
  const size = Math.abs(ns);
  if (size < 999.5) return `${sign}${size.toFixed(0)} ns`;
  if (size < 999.5e3) return `${sign}${significant(size / 1e3)} µs`;
  if (size < 999.5e6) return `${sign}${significant(size / 1e6)} ms`;
  return `${sign}${significant(size / 1e9)} s`;
}

/** An amount of data, in powers of 1000. */
export function bytes(amount) {
  if (amount === null || amount === undefined) return "?";
  if (amount < 1000) return `${amount} B`;
  let value = amount;
  let unit = "B";
  for (const larger of ["kB", "MB", "GB", "TB", "PB", "EB"]) {
    if (value < 999.5) break;
    [value, unit] = [value / 1e3, larger];
  }
  return `${significant(value)} ${unit}`;
}

/** A power of two, as message sizes are counted. */
export function binary(amount) {
  let value = amount;
  let unit = "B";
  for (const larger of ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]) {
    if (value < 1024) break;
    [value, unit] = [value / 1024, larger];
  }
  return `${Number.isInteger(value) ? value : value.toFixed(1)} ${unit}`;
}

/** A count with thousands separated. */
export function count(number) {
  if (number === null || number === undefined) return "?";
  return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

export function percent(value) {
  return value === null || value === undefined ? "?" : value.toFixed(1);
}

/** A part of a whole, as a percentage. */
export function share(part) {
  return part === null || part === undefined ? "?" : `${(100 * part).toFixed(2)} %`;
}

/** By how much something has changed, in per cent. */
export function change(value) {
  if (value === null || value === undefined) return "?";
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)} %`;
}

export function probability(value) {
  return value === null || value === undefined ? "?" : value.toFixed(4);
}

/** A number of calls of a run in the mean. */
export function meanCount(number) {
  return number === null || number === undefined ? "?" : count(Number(number.toFixed(1)));
}

/** How much the slowest exceeds the average, from a ratio. */
export function imbalance(ratio) {
  return ratio === null || ratio === undefined ? "?" : `+${(100 * ratio).toFixed(0)} %`;
}

export function text(value) {
  return value === null || value === undefined ? "?" : String(value);
}
