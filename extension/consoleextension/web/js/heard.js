// SPDX-License-Identifier: Apache-2.0
// Until when what a collector said is true. A backend repeats a result for minutes after the collector that told it has gone;
// when another tells of the same, as after a restart under another name, what the old one said last is over.

import { cellKey } from "./names.js";

const quiet = 90; // seconds of silence after which a collector is gone, if another speaks: results are repeated each minute

const long = 360; // seconds after which what was said last is over even if nobody else speaks: the usual window, and one more minute

/** Of a selector only what was heard lately at a time: a backend may repeat it for longer. */
export const fresh = (selector, at) => `(${selector} and timestamp(${selector}) >= ${at - long})`;

/** What a series is of, whoever tells it. */
const subject = (m) => JSON.stringify([cellKey(m), m.bound, m.baseline, m.window, m.slo_policy ?? m["slo.policy"]]);

/** The series itself, by all of its labels: not the name, which a function takes away, nor the state, of which all are told at once. */
const itself = (m) => JSON.stringify(Object.entries(m).filter(([k]) => k !== "__name__" && k !== "state").sort(([a], [b]) => (a < b ? -1 : 1)));

/** Says of series of a selector until when each is true, as is known at a time: metric → Unix seconds. Asks only where several tell of the same. */
export async function lasting(client, selector, at, series) {
  if (new Set(series.map((x) => subject(x.metric))).size === series.length) return () => Infinity;
  return until(await client.instant(`timestamp(${selector})`, at));
}

/** The same, of when each series was heard last: [{metric, value}]. */
export function until(heard) {
  const newest = new Map(), last = new Map();
  for (const { metric, value } of heard) {
    last.set(itself(metric), value);
    newest.set(subject(metric), Math.max(value, newest.get(subject(metric)) ?? 0));
  }
  return (metric) => {
    const t = last.get(itself(metric));
    return t === undefined || t >= newest.get(subject(metric)) - quiet ? Infinity : t;
  };
}

/** An instant query of a selector, compared with something or not, of what is still true. */
export async function current(client, selector, at, compared = "") {
  const all = await client.instant(fresh(selector, at) + compared, at), end = await lasting(client, selector, at, all);
  return all.filter((x) => end(x.metric) === Infinity);
}

const held = 300; // seconds for which a value is taken to stand, the usual window, where values are that far apart or more

const late = 2; // columns that the newest value may be late, since a window is judged when late data has come

/** How many columns a value stands for, as far as lists of values on a grid tell: the usual distance between two. */
export function stride(lists, step) {
  const most = Math.max(1, Math.floor(held / step)), count = new Map();
  for (const values of lists) {
    for (let i = 0, last = NaN; i < values.length; i++) {
      if (Number.isNaN(values[i])) continue;
      const far = i - last;
      if (far <= most) count.set(far, (count.get(far) ?? 0) + 1);
      last = i;
    }
  }
  return [...count].sort(([a, n], [b, m]) => m - n || a - b)[0]?.[0] ?? 1;
}

/**
 * Fills the columns for which a value stands, of values that are only where a sample is: a window may be longer than a column.
 * Where the next one is a little late there is no gap, nor where it may still come; what is further apart stays unknown.
 */
export function hold(values, stride, like = values) {
  const out = values.slice();
  for (let i = 0, last = -1; i <= like.length; i++) {
    if (i < like.length && Number.isNaN(like[i])) continue;
    const reach = i - last <= 1.5 * stride + (i < like.length ? 0 : late) ? i : last + stride;
    if (last >= 0) out.fill(values[last], last + 1, Math.max(last + 1, reach));
    last = i;
  }
  return out;
}

/** A range of values of which nothing is left after the end of what was true. */
export const cut = (values, times, end) => (end === Infinity ? values : values.map((v, i) => (times[i] > end ? NaN : v)));
