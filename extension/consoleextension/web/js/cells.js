// SPDX-License-Identifier: Apache-2.0
// The cells of the heatmap: rows of worse-than-promised numbers over time.

import * as time from "./time.js";
import { stateOf } from "./palette.js";
import { floorIds, worseBy } from "./direction.js";
import { cut, fresh, hold, lasting, stride } from "./heard.js";
import { cellKey, dimensions, promise, selector } from "./names.js";

export const columns = 96;
export const mostCells = 20000;

/** What there is to colour by, the first one being the usual: what is observed against what is promised or normal. */
export function measures(names) {
  const all = [];
  if (names.deviation || (names.value && names.objective)) all.push({ id: "", text: "observed against objective", than: "promised" });
  if (names.observed && names.baseline) {
    all.push({ id: "dynamic", text: "observed against normal lately", than: "normal lately" }, { id: "frozen", text: "observed against normal once", than: "normal once" });
  }
  if (names.ratio) all.push({ id: "ratio", text: "normal lately against objective", than: "promised" });
  return all;
}

/** The metric that tells which cells there are. */
export const cellMetric = (names) => (names.deviation ? "deviation" : "value");

/** Loads the grid: {times, step, rows: [Row], truncated}. A column is the step that ends at its time. */
export async function load(app, client) {
  const { names, state } = app, grid = time.stepsUntil(app.range, columns, 10);
  const floors = await floorIds(client, names, cellMetric(names), app.range);
  // Only what a sample is there for: a backend would repeat the last one for minutes.
  const within = (fn, selected) => `${fn}_over_time(${selected}[${grid.step}s])`;
  const drifting = names.drift && selector(names, "drift", { ...state.f, state: ["drifting", "degraded"] });
  const [{ times, series }, now, { series: bent }, bends] = await Promise.all([
    client.range(query(names, state, floors, within), grid, mostCells),
    client.instant(query(names, state, floors, (_, selected) => fresh(selected, app.evaluated)), app.evaluated),
    drifting ? client.range(`${within("max", drifting)} == 1`, grid, 2 * mostCells) : { series: [] },
    drifting ? client.instant(`${fresh(drifting, app.evaluated)} == 1`, app.evaluated) : [],
  ]);
  const source = selector(names, state.measure === "dynamic" || state.measure === "frozen" ? "observed" : state.measure === "ratio" ? "ratio" : cellMetric(names), state.f);
  const end = await lasting(client, source, app.evaluated, series);
  const rows = new Map(), add = (metric) => {
    const key = cellKey(metric), factor = worseBy(metric);
    if (!rows.has(key)) rows.set(key, { key, metric, dims: dimensions(metric), factor, measure: state.measure, values: new Float32Array(times.length).fill(NaN), now: NaN, state: undefined, states: undefined });
    return rows.get(key);
  };
  for (const { metric, values } of series) {
    const row = add(metric);
    cut(values, times, end(metric)).forEach((v, i) => { row.values[i] = worse(row.values[i], v * row.factor); });
  }
  for (const { metric, value } of now) {
    const row = rows.get(cellKey(metric));
    if (row && end(metric) === Infinity) row.now = worse(row.now, value * row.factor);
  }
  for (const { metric, values } of bent) {
    const row = rows.get(cellKey(metric));
    if (row) row.states = higher(row.states, Uint8Array.from(cut(values, times, end(metric)), (v) => (v === 1 ? stateOf(metric.state).rank : 0)));
  }
  for (const { metric } of bends) {
    const row = rows.get(cellKey(metric));
    if (row && end(metric) === Infinity && stateOf(metric.state).rank > rank(row)) row.state = metric.state;
  }
  const all = [...rows.values()], strides = new Map();
  for (const [id, of] of Map.groupBy(all, (row) => row.metric.slo_id)) strides.set(id, stride(of.map((row) => row.values), grid.step));
  for (const row of all) {
    const n = strides.get(row.metric.slo_id);
    row.states &&= hold(row.states, n, row.values);
    row.values = hold(row.values, n);
  }
  const first = time.firstKnown(times.length, all.map((row) => row.values)), empty = time.lead(times.length, first);
  for (const row of all) {
    row.values = row.values.subarray(empty);
    row.states = row.states?.subarray(empty);
    judge(row);
  }
  return { times: times.slice(empty), step: grid.step, rows: all, begin: empty > 0 ? times[first] - grid.step : undefined, truncated: series.length >= mostCells };
}

/** The larger of two numbers, NaN being none. */
const worse = (a, b) => (b > a || Number.isNaN(a) ? b : a);

/** The higher rank in each column; either may be undefined. */
const higher = (a, b) => (a && b ? a.map((v, i) => Math.max(v, b[i])) : (a ?? b));

/** The deviation, the worst within each step, so that a bad minute can be seen in a month: the highest of a ceiling, the lowest of a floor. */
function query(names, { f, measure }, floors, within) {
  const halves = f.slo_id ? [[floors.includes(f.slo_id) ? "min" : "max", {}]] : [["max", { slo_id: { not: floors } }], ["min", { slo_id: floors }]];
  return halves.map(([fn, matchers]) => {
    const over = (fn, key, more) => within(fn, selector(names, key, { ...f, ...matchers, ...more }));
    if (measure === "dynamic" || measure === "frozen") return relative(over(fn, "observed"), over("avg", "baseline", { baseline: measure }), "ignoring(baseline) ");
    if (measure === "ratio") return over(fn, "ratio");
    return names.deviation ? over(fn, "deviation") : relative(over(fn, "value"), over("avg", "objective"), "");
  }).join(" or ");
}

const relative = (value, reference, on) => `(${value} - ${on}${reference}) / ${on}${reference}`;

/** What is said of a row: its worst, and since which column it is worse than promised without a pause. */
function judge(row) {
  const { values } = row;
  let i = values.length - 1;
  while (i >= 0 && Number.isNaN(values[i])) i--;
  row.worst = -Infinity;
  for (const v of values) if (v > row.worst) row.worst = v;
  while (i >= 0 && values[i] > 0) i--;
  row.since = i + 1;
  const { service, name } = promise(row.metric);
  row.title = `${service} ${name}`;
  row.text = Object.entries(row.dims).map(([k, v]) => `${k}=${v}`).join(" ");
  row.search = `${row.metric.slo_id} ${row.title} ${row.metric.slo_class} ${row.text}`.toLowerCase();
}

/** Joins rows that have the same value of a label: the worst of them in each column. */
export function group(rows, label) {
  const groups = new Map();
  for (const row of rows) {
    const of = row.dims[label] ?? row.metric[label] ?? "", key = JSON.stringify([row.metric.slo_id, of]);
    let g = groups.get(key);
    if (!g) groups.set(key, (g = { key, metric: row.metric, dims: { [label]: of }, factor: row.factor, measure: row.measure, values: new Float32Array(row.values.length).fill(NaN), now: NaN, label, of, size: 0 }));
    g.size++;
    g.now = worse(g.now, row.now);
    g.states = higher(g.states, row.states);
    if (rank(row) > rank(g)) g.state = row.state;
    row.values.forEach((v, i) => { g.values[i] = worse(g.values[i], v); });
  }
  const all = [...groups.values()];
  all.forEach(judge);
  return all;
}

const rank = (row) => (row.state ? stateOf(row.state).rank : 0);

/** What the processor calls degraded comes first, though it may still be within its promise. */
export const worstNow = (a, b) => rank(b) - rank(a) || number(b.now) - number(a.now);

const orders = {
  now: worstNow,
  range: (a, b) => b.worst - a.worst,
  name: () => 0,
};
const number = (v) => (Number.isNaN(v) ? -Infinity : v);
const byName = (a, b) => (a.title < b.title ? -1 : a.title > b.title ? 1 : a.text < b.text ? -1 : a.text > b.text ? 1 : 0);

/** Rows that match, in order. */
export function arrange(rows, { q, sort, worse, by }) {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = rows.filter((r) => (!worse || r.worst > 0 || r.states) && words.every((w) => r.search.includes(w)));
  if (by) shown = group(shown, by);
  return shown.sort((a, b) => ((Object.hasOwn(orders, sort) && orders[sort]) || orders.now)(a, b) || byName(a, b));
}

/**
 * One series for each value of a key: those that differ in nothing but which collector spoke, as after its restart, are one.
 * Where several have a value, that of the one that was heard last counts.
 */
export function joined(series, keyOf) {
  const heard = ({ values, now }) => (Number.isFinite(now) ? values.length : values.findLastIndex(Number.isFinite)), all = new Map();
  for (const one of [...series].sort((a, b) => heard(a) - heard(b))) {
    const key = keyOf(one.metric), known = all.get(key);
    all.set(key, known ? { ...one, values: one.values.map((v, i) => (Number.isFinite(v) ? v : known.values[i])), now: one.now ?? known.now } : one);
  }
  return [...all.values()];
}
