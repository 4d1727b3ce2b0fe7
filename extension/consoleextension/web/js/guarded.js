// SPDX-License-Identifier: Apache-2.0
// What the gpu_guard extension did, read off its own counters where a backend has them.

import { h } from "./dom.js";
import * as format from "./format.js";
import { rises } from "./opened.js";
import { chips, table } from "./parts.js";
import { select } from "./prom.js";

const actions = /^otelcol_gpu_guard_actions(_total)?$/;
const who = /^(__name__|extension|job|instance|exported_job|exported_instance|service[._]|otel|server[._]|url[._]|net[._]|http[._])/;

/** The actions in a range, as a table; null where nobody guards, or nothing was done. */
export async function guarded(app, client, grid) {
  const names = app.names.all.filter((n) => actions.test(n));
  const all = await Promise.all(names.map((n) => client.range(select(n), grid, 500)));
  const rows = all.flatMap(({ times, series }) => series.map(({ metric, values }) => ({ metric, risen: rises(values), times })))
    .filter((x) => x.risen.length > 0)
    .map(({ metric, risen, times }) => ({ metric, n: risen.reduce((sum, r) => sum + r.by, 0), time: times[risen.at(-1).index] }))
    .sort((a, b) => b.time - a.time);
  return rows.length === 0 ? null : table("Actions of gpu_guard", [
    { name: "Times", class: "number", cell: (r) => r.n.toLocaleString("en") },
    { name: "Last", cell: (r) => format.time(r.time) },
    { name: "What", cell: (r) => [h("b", null, (r.metric.outcome ?? "acted").replaceAll("_", " ")), " ", chips(Object.fromEntries(Object.entries(r.metric).filter(([k]) => k !== "outcome" && !who.test(k))))] },
  ], rows.slice(0, 50));
}
