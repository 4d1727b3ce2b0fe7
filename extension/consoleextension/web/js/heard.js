// SPDX-License-Identifier: Apache-2.0
// Until when what a collector said is true. A backend repeats a result for minutes after the collector that told it has gone;
// when another tells of the same, as after a restart under another name, what the old one said last is over.

import { cellKey } from "./names.js";

const quiet = 90; // seconds of silence after which a collector is gone, if another speaks: results are repeated each minute

export const held = 360; // seconds after which what was said last is over even if nobody else speaks: the usual window, and one more minute

/** Of a selector only what was heard lately at a time: a backend may repeat it for longer. */
export const fresh = (selector, at) => `(${selector} and timestamp(${selector}) >= ${at - held})`;

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

/** A range of values of which nothing is left after the end of what was true. */
export const cut = (values, times, end) => (end === Infinity ? values : values.map((v, i) => (times[i] > end ? NaN : v)));
