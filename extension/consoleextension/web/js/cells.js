// SPDX-License-Identifier: Apache-2.0
// The cells of the heatmap: rows of worse-than-promised numbers over time.

import * as time from "./time.js";
import { stateOf } from "./palette.js";
import { cellKey, dimensions, floorClasses, isFloor, promise, selector, worseBy } from "./names.js";

export const columns = 96;
export const mostCells = 20000;
const held = 300; // seconds for which a backend gives a value again, so that windows longer than a column leave no gaps

/** Which measures there are to colour by, the first one being the usual. */
export function measures(names) {
  const all = [];
  if (names.deviation || (names.value && names.objective)) all.push({ id: "", text: "objective" });
  if (names.ratio) all.push({ id: "baseline", text: "its own baseline" });
  return all;
}

/** The metric that tells which cells there are. */
export const cellMetric = (names) => (names.deviation ? "deviation" : "value");

/** Loads the grid: {times, step, rows: [Row], truncated}. A column is the step that ends at its time. */
export async function load(app, client) {
  const { names, state } = app, grid = time.stepsUntil(app.range, columns, 60);
  const [{ times, series }, current, drifting] = await Promise.all([
    client.range(query(names, state, (fn, selected) => {
      const worst = `${fn}_over_time(${selected}[${grid.step}s])`;
      return grid.step < held ? `(${worst} or ${selected} + 0)` : worst;
    }), grid, mostCells),
    client.instant(query(names, state, (_, selected) => selected), app.evaluated),
    names.drift ? client.instant(`${selector(names, "drift", { ...state.f, state: { re: "drifting|degraded" } })} == 1`, app.evaluated) : [],
  ]);
  const turn = (metric) => (state.measure === "baseline" ? (isFloor(metric) ? -1 : 1) : worseBy(metric));
  const rows = new Map(), states = new Map(drifting.map((x) => [cellKey(x.metric), x.metric.state]));
  for (const { metric, values } of series) {
    const factor = turn(metric);
    const key = cellKey(metric), bad = Float32Array.from(values, (v) => v * factor);
    const known = rows.get(key);
    if (known) known.values.forEach((v, i) => { if (!(v >= bad[i])) known.values[i] = Number.isNaN(bad[i]) ? v : bad[i]; });
    else rows.set(key, { key, metric, dims: dimensions(metric), factor, values: bad, now: NaN, state: states.get(key) });
  }
  for (const { metric, value } of current) {
    const row = rows.get(cellKey(metric)), bad = value * turn(metric);
    if (row && !(row.now >= bad)) row.now = bad;
  }
  const all = [...rows.values()];
  all.forEach(judge);
  return { times, step: grid.step, rows: all, truncated: series.length >= mostCells };
}

/** The deviation, the worst within each step, so that a bad minute can be seen in a month. */
function query(names, state, within) {
  const over = (fn, key, m) => within(fn, selector(names, key, { ...state.f, ...m }));
  const floor = { slo_class: { re: floorClasses } }, ceiling = { slo_class: { not: floorClasses } };
  // A filter by class takes the place of the split by class: one of the two halves is then empty or the same.
  const [high, low] = state.f.slo_class ? [{}, {}] : [ceiling, floor];
  const key = state.measure === "baseline" ? "ratio" : "deviation";
  if (state.f.slo_class) {
    const fn = isFloor({ slo_class: state.f.slo_class }) ? "min" : "max";
    return names[key] ? over(fn, key, {}) : relative(over(fn, "value", {}), over("avg", "objective", {}));
  }
  if (names[key]) return `${over("max", key, high)} or ${over("min", key, low)}`;
  return `${relative(over("max", "value", high), over("avg", "objective", high))} or ${relative(over("min", "value", low), over("avg", "objective", low))}`;
}

const relative = (value, objective) => `(${value} - ${objective}) / ${objective}`;

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
    if (!g) groups.set(key, (g = { key, metric: row.metric, dims: { [label]: of }, factor: row.factor, values: new Float32Array(row.values.length).fill(NaN), now: NaN, label, of, size: 0 }));
    g.size++;
    if (!(g.now >= row.now) && !Number.isNaN(row.now)) g.now = row.now;
    if (rank(row) > rank(g)) g.state = row.state;
    row.values.forEach((v, i) => { if (!(g.values[i] >= v) && !Number.isNaN(v)) g.values[i] = v; });
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
  let shown = rows.filter((r) => (!worse || r.worst > 0) && words.every((w) => r.search.includes(w)));
  if (by) shown = group(shown, by);
  return shown.sort((a, b) => (orders[sort] ?? orders.now)(a, b) || byName(a, b));
}

/**
 * The series of a cell, one for each value of a label: those that differ in nothing but which collector spoke, as after its
 * restart, are one. Where several have a value, that of the one that was heard last counts.
 */
export function joined(series, label) {
  const heard = ({ values, now }) => (Number.isFinite(now) ? values.length : values.findLastIndex(Number.isFinite)), all = new Map();
  for (const one of [...series].sort((a, b) => heard(a) - heard(b))) {
    const known = all.get(one.metric[label]);
    all.set(one.metric[label], known ? { ...one, values: one.values.map((v, i) => (Number.isFinite(v) ? v : known.values[i])), now: one.now ?? known.now } : one);
  }
  return [...all.values()];
}
