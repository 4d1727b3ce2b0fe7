// SPDX-License-Identifier: Apache-2.0
// Every promise, the worst first: its state, value against the objective, budget, burn rate and violations.

import { h, replace, empty } from "./dom.js";
import { stateOf } from "./palette.js";
import * as format from "./format.js";
import * as time from "./time.js";
import { floorIds, isFloor, isShare, worseBy } from "./direction.js";
import { current, hold, stride } from "./heard.js";
import { leakLink, leaks, threats } from "./leaks.js";
import { cellKey, dimensions, promise, selector } from "./names.js";
import { opened } from "./opened.js";
import { badge, chips, filterBar, matches, nothingYet, spark } from "./parts.js";
import { cellLink, write } from "./state.js";
import { counting, sentence } from "./waiting.js";

const shownGroups = 50;

export function mount(root) {
  const open = new Set(); // slo_ids whose groups are shown
  let last; // what was loaded
  return {
    async update(app, client) {
      if (!app.names.state && !app.names.value) return replace(root, await nothingYet(app, client));
      const [bar, { groups, waiting }, sparks, lost] = await Promise.all([filterBar(app, client, app.names.state ? "state" : "value"), load(app, client), history(app, client), leaks(app, client)]);
      last = { bar, groups, waiting, sparks, threatened: threats(lost) };
      show(root, app, last, open);
    },
    find(app) {
      if (last) show(root, app, last, open);
    },
  };
}

/** Each group of each promise as it is at the end of the range. */
async function load(app, client) {
  const { names } = app, t = app.evaluated, groups = new Map();
  const ask = async (key, matchers, set, compared) => {
    if (!names[key]) return;
    for (const { metric, value } of await current(client, selector(names, key, matchers), t, compared)) {
      const id = cellKey(metric);
      if (!groups.has(id)) groups.set(id, { metric, dims: dimensions(metric) });
      set(groups.get(id), value, metric);
    }
  };
  await Promise.all([
    ask("state", {}, (g, _, m) => (g.state = worst(g.state, m.state)), " == 1"),
    ask("value", {}, (g, v) => (g.value = v)),
    ask("bound", {}, (g, v, m) => (g[m.bound] = v)),
    ask("objective", {}, (g, v) => (g.objective = v)),
    ask("remaining", {}, (g, v) => (g.remaining = v)),
    ask("coverage", {}, (g, v) => (g.coverage = v)),
    ask("incomplete", {}, (g) => (g.incomplete = true), " == 1"),
    ask("burn", { window: "1h" }, (g, v) => (g.burn = v)),
    ask("violations", {}, (g) => (g.violations = 0)),
  ]);
  if (names.violations) for (const { metric } of await opened(app, client)) { const g = groups.get(cellKey(metric)); if (g) g.violations = (g.violations ?? 0) + 1; }
  const all = [...groups.values()], open = (g) => g.value === undefined && (g.state ?? "no_data") === "no_data";
  const waiting = all.some(open) ? await counting(app, client) : new Map();
  for (const g of all) {
    g.objective ??= Number(g.metric.target);
    if (g.state === "no_data") g.value = g.lower = g.upper = undefined; // what was seen before is not seen now
    if (open(g) && waiting.has(g.metric.slo_id)) g.state = "waiting";
  }
  return { groups: all, waiting };
}

const worst = (a, b) => (a === undefined || stateOf(b).rank > stateOf(a).rank ? b : a);

/** The worst value of each promise over the range, for the small lines: slo_id → values. */
async function history(app, client) {
  if (!app.names.value) return new Map();
  const g = time.grid(app.range, 60), floors = await floorIds(client, app.names, "value", app.range), of = (slo_id) => `last_over_time(${selector(app.names, "value", { slo_id })}[${g.step}s])`;
  const { series } = await client.range(`max by (slo_id) (${of({ not: floors })}) or min by (slo_id) (${of(floors)})`, g);
  return new Map(series.map(({ metric, values }) => [metric.slo_id, hold(values, stride([values], g.step))]));
}

function show(root, app, { bar, groups, waiting, sparks, threatened }, open) {
  const promises = new Map();
  for (const g of groups) {
    if (!matches(g.metric, app.state)) continue;
    const id = g.metric.slo_id;
    if (!promises.has(id)) promises.set(id, []);
    promises.get(id).push(g);
  }
  const rows = [...promises.values()].map((gs) => gs.sort((a, b) => judged(b) - judged(a) || byBadness(a, b))).sort(([a], [b]) => byBadness(a, b));
  replace(root, bar, summary(rows, waiting, app),
    rows.length === 0
      ? empty("No promise matches", "Take a filter away, or choose a longer time range.")
      : h("div", { class: "scroll" }, h("table", { class: "promises cards" },
          h("caption", { class: "hidden" }, "Promises"),
          h("thead", null, h("tr", null, ["State", "Promise", "Value against objective", "In this range", "Budget left", "Burn (1 h)", "Violations"].map((n) => h("th", { scope: "col" }, n)))),
          rows.map((gs) => body(gs, app, sparks.get(gs[0].metric.slo_id), threatened.get(gs[0].metric.slo_id), open)))));
}

/** Whether there is a verdict: a group that is idle says nothing of a promise of which another has one. */
const judged = (g) => Number(["ok", "at_risk", "violated"].includes(g.state));
const badness = (g) => (g.value === undefined ? -1 : (worseBy(g.metric) * (g.value - g.objective)) / Math.abs(g.objective || 1));
const byBadness = (a, b) => stateOf(b.state).rank - stateOf(a.state).rank || badness(b) - badness(a) || (a.metric.slo_id < b.metric.slo_id ? -1 : 1);

function summary(rows, waiting, app) {
  const count = (...names) => rows.filter(([g]) => names.includes(g.state)).length;
  const said = [["violated", count("violated")], ["at_risk", count("at_risk")], ["waiting", count("waiting")], ["no_data", count("no_data", undefined)], ["ok", count("ok")]].filter(([, n]) => n > 0);
  const broken = count("violated"), kept = count("ok"), silent = rows.length - rows.filter(([g]) => judged(g)).length, overspent = rows.filter((gs) => whole(gs).remaining < 0).length, since = Math.min(...rows.filter(([g]) => g.state === "waiting").map(([g]) => waiting.get(g.metric.slo_id)));
  const title = rows.length === 0 ? "Promises" : broken > 0 ? `${format.plural(broken, "promise")} of ${rows.length} violated`
    : count("at_risk") > 0 ? "No promise violated" : kept === rows.length ? "All promises kept" : kept > 0 ? `${format.plural(kept, "promise")} of ${rows.length} kept`
    : count("waiting") > 0 ? "The first window is still open" : "Nothing judged";
  const more = kept > 0 && broken === 0 ? [silent > 0 && `${silent} without a verdict`, overspent > 0 && `${format.plural(overspent, "error budget")} overspent`].filter(Boolean) : [];
  return h("section", { class: "summary" },
    h("h1", null, [title, ...more].join(", ")),
    Number.isFinite(since) && h("p", { class: "lead" }, count("waiting") < rows.length && `Of ${format.plural(count("waiting"), "promise")} the first window is open. `, sentence(since, app.evaluated)),
    title === "Nothing judged" && h("p", { class: "lead" }, "No event of a promise has come: look whether the metrics arrive that the SLO files are about, or choose a time when they did."),
    h("p", { class: "counts" }, said.map(([name, n]) => h("span", { class: `count ${name}` }, badge(name), ` ${n}`)), h("span", { class: "muted" }, `as of ${format.fullTime(app.evaluated)}`)));
}

/** What is told of a promise with groups: the worst of each. */
function whole(gs) {
  const known = (key) => gs.filter((g) => Number.isFinite(g[key]));
  const least = known("remaining").sort((a, b) => a.remaining - b.remaining)[0], hottest = known("burn").sort((a, b) => b.burn - a.burn)[0];
  const violations = known("violations").reduce((sum, g) => sum + g.violations, 0);
  return { ...gs[0], incomplete: gs.some((g) => g.incomplete), remaining: least?.remaining, coverage: least?.coverage, burn: hottest?.burn, violations: known("violations").length ? violations : undefined };
}

function body(gs, app, values, threat, open) {
  const [g] = gs, id = g.metric.slo_id, many = gs.length > 1, { service, name } = promise(g.metric);
  const bad = gs.filter((x) => stateOf(x.state).rank >= 2).length, idle = judged(g) ? gs.filter((x) => !judged(x)).length : 0;
  const tbody = h("tbody", null);
  const toggle = many && h("button", { type: "button", class: "quiet", data: { key: `open ${id}` }, "aria-expanded": String(open.has(id)), on: { click: () => {
    if (!open.delete(id)) open.add(id);
    fill();
    tbody.querySelector("button")?.focus();
  } } });
  const fill = () => {
    if (toggle) {
      toggle.textContent = `${open.has(id) ? "▾" : "▸"} ${bad > 0 ? `${bad} of ${gs.length}` : gs.length} groups${idle > 0 ? `, ${idle} without data` : ""}`;
      toggle.setAttribute("aria-expanded", String(open.has(id)));
    }
    const where = many ? write({ ...app.state, view: "heatmap", f: { ...app.state.f, slo_id: id } }) : cellLink(app.state, g.metric, g.dims);
    replace(tbody,
      row("promise", whole(gs), [h("a", { href: where, data: { key: id } }, h("strong", null, service), " ", name), h("span", { class: "muted class" }, g.metric.slo_class), toggle, threat && threatens(app, id, threat)], values, app),
      open.has(id) && gs.slice(0, shownGroups).map((x) => row("group", x, h("a", { href: cellLink(app.state, x.metric, x.dims) }, Object.keys(x.dims).length ? chips(x.dims) : "all"), undefined, app)),
      open.has(id) && gs.length > shownGroups && h("tr", { class: "group" }, h("td", null), h("td", { colspan: 6, class: "muted" }, `and ${gs.length - shownGroups} more: filter, or open the heatmap`)));
  };
  fill();
  return tbody;
}

/** That a leak will break it, with a link to the leak. */
const threatens = (app, id, { leak, within }) => h("div", { class: "small" }, h("a", { class: "over", href: leakLink(app.state, leak), data: { key: `threat ${id}` } }, `a leak of GPU memory breaks it in ${format.duration(within)}`));

/** That the window was judged without what a part has heard that is known. */
const incomplete = () => h("div", { class: "small hot", title: "Somebody whose share is known had not told it when the window was judged: what is missing could have been good or bad." }, h("span", { "aria-hidden": "true" }, "◐ "), "incomplete: a part is away");

function row(kind, g, title, values, app) {
  const unit = g.metric.unit, over = g.value === undefined ? undefined : (g.value - g.objective) / g.objective;
  const cell = (name, cls, ...content) => h("td", { class: cls, data: { name } }, content);
  const bounded = g.lower !== undefined && g.upper !== undefined && g.lower !== g.upper;
  return h("tr", { class: kind },
    cell("", "state", badge(g.state ?? "no_data"), g.incomplete && incomplete()),
    h(kind === "promise" ? "th" : "td", { scope: kind === "promise" ? "row" : undefined, class: "name" }, title),
    cell("Value", "value", h("div", null, h("span", { class: "big" }, format.value(g.value, unit)),
      over !== undefined && worseBy(g.metric) * over > 0 && h("span", { class: "over" }, ` ${isShare(g.metric) ? format.failures(worseBy(g.metric) * over) : `${format.percent(Math.abs(over))} ${isFloor(g.metric) ? "below" : "over"}`}`)),
      kind === "promise" && h("div", { class: "muted small" }, `objective ${isFloor(g.metric) ? "≥" : "≤"} ${format.value(g.objective, unit)}`),
      bounded && h("div", { class: "muted small" }, `proven: ${format.value(g.lower, unit)} to ${format.value(g.upper, unit)}`)),
    cell("In this range", "trend", values ? spark(values, g.objective, `${promise(g.metric).name} over the last ${format.duration(app.range.to - app.range.from)}`) : ""),
    cell("Budget left", "budget", budget(g)),
    cell("Burn (1 h)", "number", g.burn === undefined || Number.isNaN(g.burn) ? h("span", { class: "muted" }, "–") : h("span", { class: g.burn > 1 ? "hot" : "" }, `${g.burn.toFixed(g.burn < 10 ? 1 : 0)} ×`)),
    cell("Violations", "number", g.violations ? h("a", { href: write({ ...app.state, view: "violations", f: { ...app.state.f, slo_id: g.metric.slo_id } }) }, String(g.violations)) : h("span", { class: "muted" }, g.violations === undefined ? "–" : "0")));
}

function budget(g) {
  if (g.remaining === undefined || Number.isNaN(g.remaining)) return h("span", { class: "muted" }, "–");
  const left = Math.max(0, Math.min(1, g.remaining));
  return [
    h("meter", { min: 0, max: 1, low: 0.25, high: 0.5, optimum: 1, value: left, class: g.remaining < 0 ? "spent" : undefined, "aria-label": "error budget left" }),
    h("span", { class: g.remaining < 0 ? "hot" : "" }, g.remaining < 0 ? `overspent by ${format.percent(-g.remaining)}` : format.percent(g.remaining)),
    g.coverage !== undefined && g.coverage < 0.99 && h("div", { class: "muted small" }, `of the ${format.percent(g.coverage)} that was observed`)];
}
