// SPDX-License-Identifier: Apache-2.0
// Violations that opened in the time range, newest first, with traces.

import { h, replace, empty, emptyView } from "./dom.js";
import * as format from "./format.js";
import * as time from "./time.js";
import { current } from "./heard.js";
import { cellKey, dimensions, promise, selector } from "./names.js";
import { opened, policyOf } from "./opened.js";
import { badge, chips, filterBar, matches, nothingYet, table, trace } from "./parts.js";
import { cellLink } from "./state.js";

export function mount(root) {
  let last;
  const show = (app) => {
    const found = last.all.filter((v) => matches(v.metric, app.state));
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
        return replace(root, app.names.state ? emptyView("No violation has ever been counted here", "Violations are opened by ViolationPolicy documents in the SLO files; without one, a promise has a state and a budget, but no violations.") : await nothingYet(app, client));
      }
      const [bar, all] = await Promise.all([filterBar(app, client, "violations"), load(app, client)]);
      last = { bar, all };
      show(app);
    },
    find(app) { if (last) show(app); },
  };
}

const columns = (app) => [
  { name: "Opened", cell: (v) => h("time", { datetime: time.iso(v.time), title: time.iso(v.time) }, format.fullTime(v.time)) },
  { name: "Promise", cell: (v) => { const p = promise(v.metric); return h("a", { href: cellLink(app.state, v.metric, v.dims, v.time) }, h("strong", null, p.service), " ", p.name); } },
  { name: "Where", cell: (v) => (Object.keys(v.dims).length ? chips(v.dims) : h("span", { class: "muted" }, "all")) },
  { name: "Policy", cell: (v) => policyOf(v.metric) ?? "–" },
  { name: "Now", cell: (v) => (v.state ? badge(v.state) : "–") },
  { name: "Trace", cell: (v) => trace(app, v.trace) },
];

/** Violations, the newest first, with the state of what they are about and a trace where one is near. */
async function load(app, client) {
  const { names } = app, near = Math.max(600, time.grid(app.range, 700).step);
  const [all, exemplars, states] = await Promise.all([
    opened(app, client),
    client.exemplars(selector(names, "violations", app.state.f), app.range),
    names.state ? current(client, selector(names, "state", app.state.f), app.evaluated, " == 1") : [],
  ]);
  const stateOf = new Map(states.map((x) => [cellKey(x.metric), x.metric.state]));
  return all.reverse().map((v) => ({
    ...v, dims: dimensions(v.metric), state: stateOf.get(cellKey(v.metric)),
    trace: exemplars.find((e) => cellKey(e.series) === cellKey(v.metric) && Math.abs(e.time - v.time) <= near)?.trace,
  }));
}
