// SPDX-License-Identifier: Apache-2.0
// Violations that opened in the time range, read off their counters.

import * as time from "./time.js";
import { joined } from "./cells.js";
import { cellKey, selector } from "./names.js";

/** Asks for them, oldest first: [{metric, time}]. */
export async function opened(app, client) {
  const { times, series } = await client.range(selector(app.names, "violations", app.state.f), time.grid(app.range, 700));
  return violations(times, series);
}

export const policyOf = (metric) => metric.slo_policy ?? metric["slo.policy"];

/**
 * A violation is told apart by policy, group and time, as its id is, and not by which collector tells of it: one that is
 * restarted under another name goes on counting, and two that judge the same data tell of the same violation.
 */
export function violations(times, series) {
  return joined(series, (m) => JSON.stringify([cellKey(m), policyOf(m)]))
    .flatMap(({ metric, values }) => rises(values).map(({ index }) => ({ metric, time: times[index] })))
    .sort((a, b) => a.time - b.time);
}

/** Where a counter rises, and by how much: [{index, by}]. */
export function rises(values) {
  const found = [], start = values.findIndex(Number.isFinite);
  // One that began in the range did so at 0 or 1; with more it is only first seen.
  let before = start > 0 && values[start] <= 1 ? 0 : values[start];
  for (let i = Math.max(1, start); i < values.length; i++) {
    if (!Number.isFinite(values[i])) continue;
    const by = values[i] < before ? values[i] : values[i] - before; // a counter that began anew
    before = values[i];
    if (by >= 1) found.push({ index: i, by });
  }
  return found;
}
