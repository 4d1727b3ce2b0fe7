// SPDX-License-Identifier: Apache-2.0
// Time ranges: relative ("now-6h") or absolute (ISO 8601, or Unix seconds or milliseconds, as other tools' links have them).

export const presets = [["15m", "15 minutes"], ["1h", "hour"], ["3h", "3 hours"], ["6h", "6 hours"], ["12h", "12 hours"], ["24h", "24 hours"], ["2d", "2 days"], ["7d", "7 days"], ["28d", "28 days"]];
export const refreshes = [["0", "off"], ["10s", "10 s"], ["30s", "30 s"], ["1m", "1 min"], ["5m", "5 min"]];

const units = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 };

/** Seconds of 30s, 5m, 6h, 7d; NaN for anything else. */
export function span(text) {
  const m = /^(\d+)([smhdw])$/.exec(text ?? "");
  return m ? Number(m[1]) * units[m[2]] : NaN;
}

/** A point in time, in Unix seconds; NaN for what is none. */
export function instant(text, now) {
  if (text === "now") return now;
  if (text?.startsWith("now-")) return now - span(text.slice(4));
  if (/^\d{9,}$/.test(text)) return Number(text) / (text.length > 11 ? 1000 : 1);
  return Date.parse(text) / 1000;
}

/** The range of from and to, the last six hours for what is none. */
export function resolve(from, to, now = Date.now() / 1000) {
  let a = instant(from, now), b = instant(to, now);
  if (!(b > 0)) b = now;
  if (!(a < b)) a = b - 6 * 3600;
  return { from: Math.round(a), to: Math.round(b), live: to === "now" };
}

const steps = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** A range on a grid of at most so many columns, with a step that people think in, aligned so that a refresh asks the same. */
export function grid({ from, to }, columns, smallest = 15) {
  const step = steps.find((x) => x >= smallest && (to - from) / x <= columns) ?? Math.ceil((to - from) / columns / 86400) * 86400;
  const last = Math.floor(to / step) * step;
  return { from: Math.max(0, last - Math.floor((last - from) / step) * step), to: last, step };
}

/** The same, but its last step is the one that is not over yet; each column then stands for the step that ends at its time. */
export function stepsUntil(range, columns, smallest) {
  const g = grid(range, columns - 1, smallest);
  return { ...g, from: g.from + g.step, to: g.to < range.to ? g.to + g.step : g.to };
}

/** The first of so many columns in which anything is known; their number when nothing is. */
export function firstKnown(columns, lists) {
  let first = columns;
  for (const values of lists) {
    for (let i = 0; i < first; i++) if (!Number.isNaN(values[i])) first = i;
  }
  return first;
}

/** How many columns are left out before the first that is known, so that what is young is not squeezed into a corner. */
export const lead = (columns, first) => (first === columns ? 0 : Math.min(Math.max(0, first - 1), Math.floor(columns * 0.75)));

export const iso = (t) => new Date(t * 1000).toISOString().replace(".000Z", "Z");
