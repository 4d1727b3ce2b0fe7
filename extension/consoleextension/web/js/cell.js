// SPDX-License-Identifier: Apache-2.0
// One cell: what is observed, against which baselines, how it is distributed, what explains it, and which traces to look at.

import { h, replace, empty, s } from "./dom.js";
import { chart } from "./chart.js";
import * as format from "./format.js";
import * as time from "./time.js";
import { joined } from "./cells.js";
import { cellKey, dimensions, isFloor, promise, selector, worseBy } from "./names.js";
import { badge, chips, nothingYet, stateStrip, table, trace } from "./parts.js";
import { write } from "./state.js";

const baselines = {
  static: { color: "--series-static", dash: [8, 4] },
  dynamic: { color: "--series-dynamic", dash: [] },
  frozen: { color: "--series-frozen", dash: [2, 4] },
};

export function mount(root) {
  return {
    async update(app, client) {
      if (!app.names.value && !app.names.observed) return replace(root, nothingYet(app));
      const cell = await load(app, client);
      replace(root, ...show(app, cell));
    },
  };
}

async function load(app, client) {
  const { names, state } = app, matchers = { slo_id: state.slo_id, ...state.d }, key = JSON.stringify([state.slo_id, sorted(state.d)]);
  const grid = time.grid(app.range, 240), at = state.at ? Number(state.at) : app.evaluated, then = Math.max(app.range.from + 600, at - 3 * 3600);
  const exactly = (list) => list.filter((x) => cellKey(x.metric) === key);
  const q = (k, m) => selector(names, k, { ...matchers, ...m });
  // Over the range, and at the time that is asked for, which is not on the grid.
  const range = async (k, label) => {
    if (!names[k]) return [];
    const [{ series }, now] = await Promise.all([client.range(q(k), grid), client.instant(q(k), at)]);
    const then = new Map(now.map((x) => [JSON.stringify(x.metric), x.value]));
    return joined(exactly(series).map((x) => ({ ...x, now: then.get(JSON.stringify(x.metric)) })), label);
  };
  const [observed, objective, base, drift, judged, explained, spread, before, events, violations] = await Promise.all([
    range(names.observed ? "observed" : "value"),
    range("objective"),
    range("baseline", "baseline"),
    range("drift", "state"),
    range("state", "state"),
    names.explanation ? client.instant(selector(names, "explanation", { slo_id: state.slo_id }), at) : [],
    distribution(app, client, q("distribution"), at),
    then < at - 600 ? distribution(app, client, q("distribution"), then) : [],
    names.events ? client.exemplars(q("events", { outcome: "bad" }), app.range) : [],
    names.violations ? client.exemplars(selector(names, "violations", { slo_id: state.slo_id }), app.range) : [],
  ]);
  const times = Array.from({ length: Math.floor((grid.to - grid.from) / grid.step + 1e-6) + 1 }, (_, i) => grid.from + i * grid.step);
  const metric = observed[0]?.metric ?? objective[0]?.metric ?? { slo_id: state.slo_id };
  return {
    metric, at, then, times, observed, objective, base, drift, judged, spread, before,
    explained: explained.filter((e) => agrees(e.metric, state.d)).sort((a, b) => b.value - a.value),
    exemplars: [...events, ...violations.filter((e) => agrees(e.series, state.d))].filter((e, i, all) => e.trace && all.findIndex((x) => x.trace === e.trace) === i).sort((a, b) => b.time - a.time),
  };
}

const sorted = (dims) => Object.fromEntries(Object.entries(dims).sort(([a], [b]) => (a < b ? -1 : 1)));

/** Whether what a series says of the cell's dimensions is the cell's. */
const agrees = (metric, d) => Object.entries(d).every(([k, v]) => metric[k] === undefined || metric[k] === v);

/** The distribution in the window that ends at a time: [{from, to, count}], whether buckets or a native histogram. */
async function distribution(app, client, selected, at) {
  const name = app.names.distribution;
  if (!name) return [];
  const window = "10m";
  if (!name.endsWith("_bucket")) {
    const [sum] = await client.instant(`sum(increase(${selected}[${window}]))`, at);
    return (sum?.histogram?.buckets ?? []).map(([, from, to, count]) => ({ from: Number(from), to: Number(to), count: Number(count) })).filter((b) => b.count > 0);
  }
  const series = await client.instant(`sum by (le) (increase(${selected}[${window}]))`, at);
  const bounds = series.map((x) => ({ le: Number(x.metric.le.replace("+Inf", "Infinity")), n: x.value })).sort((a, b) => a.le - b.le);
  return bounds.map(({ le, n }, i) => ({ from: i ? bounds[i - 1].le : 0, to: le, count: n - (i ? bounds[i - 1].n : 0) })).filter((b) => b.count > 0);
}

const last = (values) => { for (let i = values.length - 1; i >= 0; i--) if (Number.isFinite(values[i])) return values[i]; };

function show(app, c) {
  const { service, name } = promise(c.metric), unit = c.metric.unit, floor = isFloor(c.metric);
  const back = write({ ...app.state, view: "heatmap", slo_id: "", d: {}, at: "" });
  const head = h("section", { class: "summary" },
    h("p", null, h("a", { href: back }, "← heatmap")),
    h("h1", null, h("strong", null, service), ` ${name}`),
    h("p", null, chips(Object.keys(app.state.d).length ? app.state.d : { group: "all" })));
  if (c.observed.length === 0) return [head, empty("Nothing is known of this cell in this time range", "Choose a longer time range above: the cell may have come later, or gone.")];
  const index = Math.max(0, Math.min(c.times.length - 1, Math.round((c.at - c.times[0]) / (c.times[1] - c.times[0]))));
  const near = ({ now, values }) => now ?? (Number.isFinite(values[index]) ? values[index] : last(values));
  const observed = near(c.observed[0]), objective = c.objective[0] ? near(c.objective[0]) : Number(c.metric.target);
  const by = Object.fromEntries(c.base.map((b) => [b.metric.baseline, b]));
  const state = [...c.drift, ...c.judged].find((x) => near(x) === 1 && x.metric.state !== "ok")?.metric.state ?? [...c.drift, ...c.judged].find((x) => near(x) === 1)?.metric.state;
  const facts = [
    ["observed", format.value(observed, unit), state && badge(state)],
    ["objective", `${floor ? "≥" : "≤"} ${format.value(objective, unit)}`, against(c.metric, observed, objective)],
    ...Object.keys(baselines).filter((k) => by[k]).map((k) => [`${k} baseline`, format.value(near(by[k]), unit), k === "static" ? undefined : compare(near(by[k]), by.static && near(by.static), "static")]),
  ];
  const zoom = (from, to) => app.set({ from: time.iso(Math.round(from)), to: time.iso(Math.round(to)), at: "" });
  const lines = [
    ...c.base.map((b) => ({ label: `${b.metric.baseline} baseline`, values: b.values, ...(baselines[b.metric.baseline] ?? { color: "--muted", dash: [4, 4] }) })),
    { label: "objective", values: c.objective[0]?.values ?? c.times.map(() => objective), color: "--series-objective", dash: [12, 4] },
    { label: "observed", values: c.observed[0].values, color: "--series-observed", width: 2.5 },
  ];
  return [
    head,
    h("dl", { class: "facts" }, facts.map(([term, big, small]) => h("div", null, h("dt", null, term), h("dd", null, h("span", { class: "big" }, big), small && h("div", { class: "small" }, small))))),
    h("p", { class: "muted" }, `at ${format.fullTime(c.at)}`),
    chart({ title: "Observed against objective and baselines", times: c.times, lines, unit, height: 260, onZoom: zoom, at: c.at }),
    c.drift.length > 0 && stateStrip("Drift", c.times, c.drift.map((x) => ({ name: x.metric.state, values: x.values }))),
    c.judged.length > 0 && stateStrip("Promise", c.times, c.judged.map((x) => ({ name: x.metric.state, values: x.values }))),
    h("div", { class: "columns" }, explanation(app, c), spreadFigure(c, unit, objective)),
    exemplars(app, c, unit),
    h("p", { class: "muted small" }, c.metric.slo_id),
  ];
}

function against(metric, observed, objective) {
  if (observed === undefined) return undefined;
  const over = (observed - objective) / objective, bad = worseBy(metric) * over;
  if (metric.unit === "ratio" && isFloor(metric)) return bad > 0 ? h("span", { class: "over" }, format.failures(bad)) : "kept";
  return h("span", { class: bad > 0 ? "over" : "" }, `${format.percent(Math.abs(over))} ${over > 0 ? "above" : "below"}`);
}

const compare = (a, b, name) => (a === undefined || b === undefined ? undefined : `${format.signed((a - b) / b)} against ${name}`);

function explanation(app, c) {
  if (c.explained.length === 0) return null;
  const name = (m) => (m.dimension ? `${m.dimension}=${m.value ?? ""}` : format.labels(Object.fromEntries(Object.entries(dimensions(m)).filter(([k]) => app.state.d[k] === undefined))) || "this cell");
  return h("section", null, h("h2", null, "What explains it"),
    h("ul", { class: "bars" }, c.explained.slice(0, 8).map((e) => h("li", null, h("span", null, name(e.metric)), h("meter", { min: 0, max: 1, value: Math.max(0, Math.min(1, e.value)), "aria-label": `${name(e.metric)} explains ${format.share(e.value)}` }), h("span", { class: "number" }, format.share(e.value))))));
}

/** Two distributions over each other: at the chosen time as bars, up to three hours before as dashes. */
function spreadFigure({ spread, before, at, then: earlier }, unit, objective) {
  if (spread.length === 0) return null;
  const finite = [...spread, ...before].filter((b) => Number.isFinite(b.to) && b.to > 0);
  if (finite.length === 0) return null;
  const lo = Math.min(...finite.map((b) => (b.from > 0 ? b.from : b.to / 2)), objective), hi = Math.max(...finite.map((b) => b.to), objective);
  const w = 480, high = 150, log = lo > 0 && hi / lo > 10;
  const x = (v) => (log ? (Math.log(Math.max(v, lo) / lo) / Math.log(hi / lo)) * w : ((v - lo) / (hi - lo)) * w);
  const shares = (bs) => { const n = bs.reduce((a, b) => a + b.count, 0); return bs.filter((b) => Number.isFinite(b.to)).map((b) => ({ ...b, share: b.count / n })); };
  const now = shares(spread), then = shares(before), top = Math.max(...now.map((b) => b.share), ...then.map((b) => b.share));
  const y = (v) => high - (v / top) * (high - 8);
  const outline = then.map((b) => `M${x(b.from)} ${y(b.share)}H${x(b.to)}`).join("");
  const beyond = spread.filter((b) => b.from >= objective).reduce((a, b) => a + b.count, 0) / spread.reduce((a, b) => a + b.count, 0);
  return h("section", null, h("h2", null, "Distribution"),
    s("svg", { class: "spread", viewBox: `0 0 ${w} ${high + 18}`, role: "img", "aria-label": `${format.share(beyond)} of the values lie beyond the objective` },
      now.map((b) => s("rect", { class: b.from >= objective ? "beyond" : "within", x: x(b.from), width: Math.max(1, x(b.to) - x(b.from) - 0.5), y: y(b.share), height: high - y(b.share) }, s("title", null, `${format.value(b.from, unit)} to ${format.value(b.to, unit)}: ${format.share(b.share)}`))),
      s("path", { class: "before", d: outline }),
      s("line", { class: "objective", x1: x(objective), x2: x(objective), y1: 0, y2: high }),
      s("text", { x: 0, y: high + 14 }, format.value(lo, unit)), s("text", { x: w, y: high + 14, "text-anchor": "end" }, format.value(hi, unit)),
      x(objective) > 70 && x(objective) < w - 70 && s("text", { x: x(objective), y: high + 14, "text-anchor": "middle" }, format.value(objective, unit))),
    h("p", { class: "muted small" }, `Bars: the ten minutes before ${format.time(at)}, ${format.share(beyond)} of them beyond the objective.${then.length ? ` Dashes: before ${format.time(earlier)}.` : ""}${log ? " Logarithmic." : ""}`));
}

function exemplars(app, c, unit) {
  if (c.exemplars.length === 0) return null;
  return h("section", null, h("h2", null, "Traces of bad events"),
    !app.config.trace_url && h("p", { class: "muted" }, "To have links, set trace_url, e.g. http://localhost:16686/trace/{trace_id}"),
    table("Traces of bad events", [
      { name: "Time", cell: (e) => format.fullTime(e.time) },
      { name: "Value", class: "number", cell: (e) => (unit === "ratio" ? "–" : format.value(e.value, unit)) },
      { name: "Trace", cell: (e) => trace(app, e.trace) },
    ], c.exemplars.slice(0, 10)));
}
