// SPDX-License-Identifier: Apache-2.0
// Which way is worse. No label says whether an objective is a ceiling or a floor; the verdicts do: what is kept and above its
// objective has a floor. Before there are verdicts, class and unit are the guess.

import { selector } from "./names.js";

const floorClasses = ["availability", "throughput", "quality"];
const learned = new Map(); // slo_id → whether its objective is a floor, as its verdicts say

/** A share of good events is promised, of whatever class; that of a quantile (…:p95) is another thing that is measured as ratio. */
const isShareId = (id) => /[:-][\d.]+$/.test(id ?? "");

const guess = (metric) => floorClasses.includes(metric.slo_class) || (metric.unit === "ratio" && isShareId(metric.slo_id));

/** Whether lower is worse. */
export const isFloor = (metric) => learned.get(metric.slo_id) ?? guess(metric);

/** Whether the objective is a share of events that may fail, so that failures can be counted against those that are allowed. */
export function isShare(metric) {
  const target = Number(metric.target);
  return metric.unit === "ratio" && target > 0 && target < 1 && isFloor(metric) && !/[:-]p[\d.]+$/.test(metric.slo_id ?? "");
}

/**
 * What a deviation is multiplied by so that more is worse, whatever the objective's direction. Of a share of good events, such
 * as 0.9995 of requests, worse is by how much more failed than may: 0.998 is three times over.
 */
export function worseBy(metric) {
  if (!isFloor(metric)) return 1;
  const target = Number(metric.target);
  return isShare(metric) ? -target / (1 - target) : -1;
}

/** Asks the verdicts at a time. */
export async function learn(client, names, at) {
  if (!names.state || !names.value || !names.objective) return;
  const q = (key, matchers) => selector(names, key, matchers);
  const broken = `(${q("state", { state: "violated" })} - ignoring(state) ${q("state", { state: "ok" })})`;
  hear(await client.instant(`sum by (slo_id) (sgn(${q("value")} - ${q("objective")}) * ${broken})`, at));
}

/** Takes what each promise's groups say: above zero where those above their objective are violated. */
export function hear(votes) {
  for (const { metric, value } of votes) if (value !== 0) learned.set(metric.slo_id, value < 0);
}

/** The slo_ids of a metric of which lower is worse. */
export async function floorIds(client, names, key, range) {
  const [classes, ratios] = await Promise.all([{ slo_class: floorClasses }, { unit: "ratio" }].map((m) => client.values("slo_id", selector(names, key, m), range)));
  const ids = new Set([...classes, ...ratios.filter(isShareId)]);
  for (const [id, floor] of learned) floor ? ids.add(id) : ids.delete(id);
  return [...ids].sort();
}
