// What the report knows, as it is in the page: JSON, deflated, in base64.

/** The data of the page. */
export async function load() {
  const held = document.getElementById("data");
  const text = atob(held.textContent.trim());
  const packed = Uint8Array.from(text, (character) => character.charCodeAt(0));
  held.remove();
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

/** Rows of columns of equal length. */
export function rows(columns) {
  const names = Object.keys(columns);
  const length = names.length ? columns[names[0]].length : 0;
  return Array.from({ length }, (_, at) => Object.fromEntries(names.map((name) => [name, columns[name][at]])));
}

/** The sum of a row of increments from one moment to another, both included. */
export function sum(increments, from, to) {
  let total = 0;
  for (let at = from; at <= to; at += 1) total += increments[at];
  return total;
}
