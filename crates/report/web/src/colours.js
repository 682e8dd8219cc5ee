// Colours that people with any colour vision can tell apart: Okabe and Ito's for kinds of calls, ordered ones for amounts.

import { interpolateViridis, interpolateYlGnBu } from "d3-scale-chromatic";

const OKABE_ITO = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A900", "#7F7F7F"];

export const ofKind = (at) => OKABE_ITO[at % OKABE_ITO.length];

export const isDark = () => document.documentElement.dataset.theme === "dark";

/** From nothing (0) to most (1). */
export const ofAmount = (share) => (isDark() ? interpolateViridis(0.08 + 0.92 * share) : interpolateYlGnBu(0.06 + 0.94 * share));

const parsed = document.createElement("canvas").getContext("2d");

/** 256 steps of it as red, green, blue. */
export function palette() {
  const steps = new Uint8Array(256 * 3);
  for (let at = 0; at < 256; at += 1) {
    parsed.fillStyle = ofAmount(at / 255);
    const hex = Number.parseInt(parsed.fillStyle.slice(1), 16);
    steps.set([hex >> 16, (hex >> 8) & 255, hex & 255], at * 3);
  }
  return steps;
}

/** A bar that says which colour is how much. */
export function key(low, high, title) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [128, 1];
  const context = canvas.getContext("2d");
  for (let at = 0; at < 128; at += 1) {
    context.fillStyle = ofAmount(at / 127);
    context.fillRect(at, 0, 1, 1);
  }
  const holder = document.createElement("span");
  holder.className = "key";
  const [from, to, name] = [low, high, title].map((words) => Object.assign(document.createElement("span"), { textContent: words }));
  holder.append(name, from, canvas, to);
  return holder;
}
