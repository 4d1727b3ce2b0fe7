// SPDX-License-Identifier: Apache-2.0
// Violations that opened in the time range, newest first, with traces.

import { h, replace, empty } from "./dom.js";
import * as format from "./format.js";
import * as time from "./time.js";
import { cellKey, dimensions, promise, selector } from "./names.js";
import { badge, chips, filterBar, matches, nothingYet, table, trace } from "./parts.js";
import { cellLink } from "./state.js";

export function mount(root) {
  let last;
  const show = (app) => {
    const found = last.opened.filter((v) => matches(v.metric, app.state));
    replace(root, last.bar,
      h("section", { class: "summary" }, h("h1", null, found.length === 0 ? "No violation" : format.plural(found.length, "violation")),
        h("p", { class: "muted" }, `opened from ${format.fullTime(app.range.from)} to ${format.fullTime(app.range.to)}`)),
      found.length === 0
        ? empty("No policy counted a violation in this time range", "A ViolationPolicy opens one when its promise is missed in as many windows in a row as it says. Choose a longer time range, or look where promises bend in the heatmap.")
        : table("Violations", columns(app), found.slice(0, 500)));
  };
  return {
    async update(app, client) {
      if (!app.names.violations) {
        return replace(root, app.names.state ? empty("No violation has ever been counted here", "Violations are opened by ViolationPolicy documents in the SLO files; without one, a promise has a state and a budget, but no violations.") : nothingYet(app));
      }
      const [bar, opened] = await Promise.all([filterBar(app, client, "violations"), load(app, client)]);
      last = { bar, opened };
      show(app);
    },
    find(app) { if (last) show(app); },
  };
}

const columns = (app) => [
  { name: "Opened", cell: (v) => h("time", { datetime: time.iso(v.time), title: time.iso(v.time) }, format.fullTime(v.time)) },
  { name: "Promise", cell: (v) => { const p = promise(v.metric); return h("a", { href: cellLink(app.state, v.metric, v.dims, v.time) }, h("strong", null, p.service), " ", p.name); } },
  { name: "Where", cell: (v) => (Object.keys(v.dims).length ? chips(v.dims) : h("span", { class: "muted" }, "all")) },
  { name: "Policy", cell: (v) => v.metric.slo_policy ?? v.metric["slo.policy"] ?? "–" },
  { name: "Now", cell: (v) => (v.state ? badge(v.state) : "–") },
  { name: "Trace", cell: (v) => trace(app, v.trace) },
];

/** Each step up of a counter, at the first point in time that has it. */
async function load(app, client) {
  const { names } = app, grid = time.grid(app.range, 700);
  const select = selector(names, "violations", app.state.f);
  const [{ times, series }, exemplars, states] = await Promise.all([
    client.range(select, grid),
    client.exemplars(select, app.range),
    names.state ? client.instant(`${selector(names, "state", app.state.f)} == 1`, app.evaluated) : [],
  ]);
  const stateOf = new Map(states.map((x) => [cellKey(x.metric), x.metric.state]));
  const opened = [];
  for (const { metric, values } of series) {
    const start = values.findIndex(Number.isFinite);
    // One that began in the range did so at 0 or 1; with more it is only first seen.
    let before = start > 0 && values[start] <= 1 ? 0 : values[start];
    for (let i = Math.max(1, start); i < values.length; i++) {
      if (!Number.isFinite(values[i])) continue;
      const n = values[i] < before ? values[i] : values[i] - before; // a counter that began anew
      before = values[i];
      if (n < 1) continue;
      const near = exemplars.find((e) => cellKey(e.series) === cellKey(metric) && Math.abs(e.time - times[i]) <= Math.max(600, grid.step));
      opened.push({ metric, dims: dimensions(metric), time: times[i], state: stateOf.get(cellKey(metric)), trace: near?.trace });
    }
  }
  return opened.sort((a, b) => b.time - a.time);
}
