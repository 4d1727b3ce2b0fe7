// SPDX-License-Identifier: Apache-2.0
// Small pieces that several views show.

import { h, s, code, emptyView } from "./dom.js";
import { stateOf } from "./palette.js";
import * as format from "./format.js";
import { inPath } from "./prom.js";
import { canonical, isDimension, selector } from "./names.js";
import { counting, sentence } from "./waiting.js";

/** A state as a symbol and a word. */
export function badge(name) {
  const { symbol, text } = stateOf(name);
  return h("span", { class: `badge ${name}` }, h("span", { class: "symbol", "aria-hidden": "true" }, symbol), text);
}

/** Dimensions as small labels. */
export const chips = (dims) => Object.entries(dims).map(([k, v]) => [h("span", { class: "chip" }, h("span", { class: "muted" }, k), " ", v || "∅"), " "]);

/** A line without axes; objective is a height in the same unit. */
export function spark(values, objective, label) {
  const w = 120, high = 26, finite = Array.from(values).filter(Number.isFinite);
  if (finite.length === 0) return h("span", { class: "muted" }, "–");
  const lo = Math.min(...finite, objective), hi = Math.max(...finite, objective), span = hi - lo || 1;
  const y = (v) => (high - 3 - ((v - lo) / span) * (high - 6)).toFixed(1);
  let d = "", pen = "M";
  values.forEach((v, i) => {
    if (!Number.isFinite(v)) return void (pen = "M");
    d += `${pen}${((i / (values.length - 1)) * w).toFixed(1)} ${y(v)}`;
    pen = "L";
  });
  return s("svg", { class: "spark", viewBox: `0 0 ${w} ${high}`, width: w, height: high, role: "img", "aria-label": label },
    s("line", { class: "objective", x1: 0, x2: w, y1: y(objective), y2: y(objective) }), s("path", { d }));
}

/** Keeps an element while what it was made of is the same, so that a refresh does not close a list that somebody has open. */
export function keep() {
  let made, element;
  return (of, make) => {
    const now = JSON.stringify(of);
    if (now !== made) [made, element] = [now, make()];
    return element;
  };
}

const kept = keep();

/**
 * Selects for the labels of a metric that have more than one value, and a text field.
 * app.set({f}) is told of what was chosen. except are labels that are not offered.
 */
export async function filterBar(app, client, key, except = []) {
  const match = selector(app.names, key), all = await client.labels(match, app.range);
  const offered = ["service", "slo_class", "tenant", ...all.filter((l) => isDimension(l) && l !== "tenant")].filter((l, i, a) => all.includes(l) && a.indexOf(l) === i && !except.includes(l));
  const lists = await Promise.all(offered.slice(0, 12).map(async (l) => [l, (await client.values(inPath(l), match, app.range)).sort()]));
  const bar = kept([lists, app.state.f, app.state.view], () => makeBar(app, lists)), find = bar.querySelector("#find");
  if (find !== document.activeElement) find.value = app.state.q;
  return bar;
}

function makeBar(app, lists) {
  const f = app.state.f;
  const selects = lists
    .filter(([l, values]) => values.length > 1 || f[l])
    .map(([l, values]) => field(l, h("select", { data: { key: `f.${l}` }, on: { change: (e) => app.set({ f: { ...without(app.state.f, l), ...(e.target.value && { [l]: e.target.value }) } }) } },
      h("option", { value: "" }, "all"),
      [...new Set([...values.slice(0, 500), ...(f[l] ? [f[l]] : [])])].map((v) => { const o = h("option", { value: v }, v); o.selected = f[l] === v; return o; }))));
  const others = Object.keys(f).filter((l) => !lists.some(([x]) => x === l));
  return h("div", { class: "filters", role: "search", "aria-label": "Filters" },
    field("find", h("input", { type: "search", placeholder: "any label  ( / )", value: app.state.q, data: { key: "q" }, id: "find",
      on: { input: (e) => app.find(e.target.value) } })),
    selects,
    others.map((l) => h("button", { class: "chip", type: "button", title: "Remove this filter", on: { click: () => app.set({ f: without(app.state.f, l) }) } }, `${l}=${f[l]} ✕`)),
    Object.keys(f).length > 0 && h("button", { type: "button", class: "quiet", on: { click: () => app.set({ f: {}, q: "" }) } }, "clear"));
}

export const field = (name, control) => h("label", { class: "field" }, h("span", null, name), control);

const without = (object, key) => Object.fromEntries(Object.entries(object).filter(([k]) => k !== key));

/** Whether labels have a text in them, and the chosen values. */
export function matches(metric, state) {
  for (const [l, v] of Object.entries(state.f)) if ((metric[l] ?? "") !== v) return false;
  if (!state.q) return true;
  const text = Object.entries(metric).filter(([k]) => canonical.has(k) || isDimension(k)).map(([k, v]) => `${k}=${v}`).join(" ").toLowerCase();
  return state.q.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** What to do when there are no results at all, or none but that there are promises or somebody who judges. */
export async function nothingYet(app, client) {
  if (app.names.state) {
    const since = Math.min(...(await counting(app, client)).values());
    return emptyView("No window has closed yet", Number.isFinite(since) ? sentence(since, app.evaluated) : "There are promises, but no values in this time range. The first comes when the first window has closed: after five minutes, unless a ViolationPolicy has shorter ones. Or choose a longer time range.");
  }
  if (app.names.lag) {
    return emptyView("Nothing to judge yet", "The slo connector reports, but no data has come that a promise of its SLO files is made of. Does the engine answer where it is scraped? With builtin:all-in-one that is LLM_METRICS_TARGETS, localhost:8000 unless told otherwise. Are the SLO files, SLO_CATALOG, about the metrics that come?");
  }
  return h("section", { class: "empty" },
    h("h1", null, "No slo_* metrics yet"),
    h("p", null, "Nothing at ", code(app.config.query_url), " tells of a promise in this time range. What it takes:"),
    h("ol", null,
      h("li", null, "SLO files in the catalog: ", code("extensions: {slo_catalog: {paths: [builtin:vllm]}}")),
      h("li", null, "the ", code("slo"), " connector behind the pipeline that has the engine's metrics"),
      h("li", null, "its results on their way to this backend, by ", code("tsdb"), ", ", code("otlp_http"), " or a scrape"),
      h("li", null, "and for Mimir or Thanos with tenants, the header: ", code("console: {query: {headers: {X-Scope-OrgID: …}}}"))),
    h("p", null, "If the Collector runs with ", code("builtin:all-in-one"), ", wait for the first window of five minutes to close, or choose a longer time range."));
}

/** A link to a trace, or its id when no trace_url is configured. */
export function trace(app, id) {
  if (!id) return h("span", { class: "muted" }, "–");
  if (!app.config.trace_url) return code(id);
  return h("a", { href: app.config.trace_url.replaceAll("{trace_id}", encodeURIComponent(id)), target: "_blank", rel: "noopener noreferrer" }, `${id.slice(0, 12)}…`);
}

/** A table that becomes cards on a phone. columns: [{name, class, cell(row)}] */
export function table(caption, columns, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, h("table", { class: "cards" },
    h("caption", { class: "hidden" }, caption),
    h("thead", null, h("tr", null, columns.map((c) => h("th", { scope: "col", class: c.class }, c.name)))),
    h("tbody", null, rows.map((row) => h("tr", null, columns.map((c) => h("td", { class: c.class, data: { name: c.name } }, c.cell(row))))))));
}

/** States over time as blocks, in rows: [{name, series: [{name, values of 0 and 1}]}] on times. */
export function stateStrips(title, times, rows) {
  if (rows.length === 0) return null;
  const n = times.length, seen = new Set(), clock = (i) => format.time(times[Math.min(n - 1, i)], n > 1 ? times[1] - times[0] : 60);
  const strip = ({ name, series }) => {
    const at = (i) => series.filter((x) => x.values[i] === 1).sort((a, b) => stateOf(b.name).rank - stateOf(a.name).rank)[0]?.name, runs = [];
    times.forEach((_, i) => {
      const state = at(i), last = runs.at(-1);
      if (last && last.state === state) last.to = i + 1;
      else runs.push({ state, from: i, to: i + 1 });
    });
    const told = runs.filter((r) => r.state);
    told.forEach((r) => seen.add(r.state));
    return [name && h("div", { class: "muted small" }, name),
      s("svg", { class: "strip", viewBox: `0 0 ${n} 1`, preserveAspectRatio: "none", role: "img", "aria-label": `${name ?? title}: ${told.map((r) => `${stateOf(r.state).text} from ${clock(r.from)}`).join(", ") || "unknown"}` },
        told.map((r) => s("rect", { class: r.state, x: r.from, width: r.to - r.from, y: 0, height: 1 },
          s("title", null, `${stateOf(r.state).text}, ${clock(r.from)} to ${clock(r.to)}`))))];
  };
  return h("figure", { class: "chart strips" }, h("figcaption", null, title), rows.map(strip),
    h("div", { class: "ends muted small", "aria-hidden": "true" }, h("span", null, clock(0)), h("span", null, clock(n - 1))),
    h("div", { class: "legend" }, [...seen].sort((a, b) => stateOf(a).rank - stateOf(b).rank).map(badge)));
}
