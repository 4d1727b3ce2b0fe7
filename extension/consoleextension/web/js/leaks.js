// SPDX-License-Identifier: Apache-2.0
// What the gpu_leak connector says of processes and devices: as of now, and which promises that will break.

import { h } from "./dom.js";
import { gpuOf, label, named, pidOf, who } from "./gpu.js";
import * as format from "./format.js";
import { badge } from "./parts.js";
import { stateOf } from "./palette.js";
import { select } from "./prom.js";
import { write } from "./state.js";

export const metrics = Object.fromEntries(Object.entries({
  state: "gpu.leak.state", rate: "gpu.leak.rate", end: "gpu.leak.time_to_exhaustion", cause: "gpu.leak.cause", breaks: "gpu.leak.slo.breaks_in",
  perRequest: "gpu.memory.per_request", unjudged: "gpu.leak.unjudged", first: "gpu.memory.per_request.first_hour",
}).map(([key, name]) => [key, named(name)]));

export const find = (names, re) => names.all.find((n) => re.test(n));

/** Which process on which device, whoever tells of it. There is one device of an id; where none is known, the host tells processes apart. */
export const placeOf = (m) => JSON.stringify([gpuOf(m) || (label(m, "host_name") ?? label(m, "k8s_node_name")), pidOf(m)]);

/** What there is to say of each place: [{metric, state, rate, end, perRequest, first, causes, breaks}], the worst and soonest first. */
export async function leaks(app, client) {
  const places = new Map(), ask = async (key, set, query = (metric) => metric) => {
    const name = find(app.names, metrics[key]);
    if (!name) return;
    for (const { metric, value } of await client.instant(query(select(name)), app.evaluated)) {
      const id = placeOf(metric);
      if (!places.has(id)) places.set(id, { id, metric, causes: [], breaks: [] });
      set(places.get(id), value, metric);
    }
  };
  await Promise.all([
    // After a restart under another name two tell of the same: who was heard last is right.
    ask("state", (p, heard, m) => { if (!(p.heard >= heard)) Object.assign(p, { heard, state: m.state, metric: m }); }, (m) => `timestamp(${m}) and ${m} == 1`),
    ...["rate", "end", "perRequest", "first"].map((key) => ask(key, (p, v) => { p[key] = v; })),
    ask("cause", (p, _, m) => p.causes.includes(m.cause) || p.causes.push(m.cause), (m) => `${m} == 1`),
    ask("breaks", (p, v, m) => p.breaks.push({ id: m.slo_id, within: v })),
  ]);
  const soonest = (p) => p.end ?? Infinity;
  for (const p of places.values()) p.breaks.sort((a, b) => a.within - b.within || (a.id < b.id ? -1 : 1));
  return [...places.values()].filter((p) => p.state).sort((a, b) => stateOf(b.state).rank - stateOf(a.state).rank || soonest(a) - soonest(b));
}

/** Of how many places nothing is said, by why: {young: 3}. What is told elsewhere is judged there. */
export async function unjudged(app, client) {
  const name = find(app.names, metrics.unjudged);
  if (!name) return {};
  const found = await client.instant(`count by (reason) (${select(name)} == 1)`, app.evaluated);
  return Object.fromEntries(found.filter(({ metric }) => metric.reason !== "told_elsewhere").map(({ metric, value }) => [metric.reason, value]));
}

/** Those that leak now, or may. */
export const leaking = (all) => all.filter((p) => ["leaking", "suspect"].includes(p.state));

/** What threatens a promise: slo_id → the leak that breaks it first, and when. Only a leak that is proved does, and not one that is broken already. */
export function threats(all) {
  const by = new Map();
  for (const p of all.filter((p) => p.state === "leaking")) {
    for (const { id, within } of p.breaks) if (within > 0 && !(by.get(id)?.within <= within)) by.set(id, { leak: p, within });
  }
  return by;
}

/** Where a leak is told in full. */
export const leakLink = (state, { metric }) => write({ ...state, view: "memory", slo_id: "", d: { gpu: gpuOf(metric) }, at: "", q: "" });

export const perHour = (rate) => `${format.bytes(rate * 3600)} an hour`;

/** A leak in a line, with a link to all of it. */
export function leakLine(app, p) {
  return h("section", { class: "note leak" }, h("p", { class: "lead" }, badge(p.state), " ", h("a", { href: leakLink(app.state, p), data: { key: `leak ${p.id}` } }, h("b", null, who(p.metric))),
    p.rate > 0 && ` grows by ${perHour(p.rate)}`, Number.isFinite(p.end) && [p.rate > 0 ? "; " : " ", h("span", { class: "over" }, `nothing is left in ${format.duration(p.end)}`)]));
}
