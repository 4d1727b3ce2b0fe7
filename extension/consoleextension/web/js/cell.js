// SPDX-License-Identifier: Apache-2.0
// One cell: what is observed, against which baselines, what explains it, how it is distributed, and which traces to look at.

import { h, replace, empty } from "./dom.js";
import { chart } from "./chart.js";
import * as format from "./format.js";
import * as time from "./time.js";
import { joined } from "./cells.js";
import { isFloor, isShare, worseBy } from "./direction.js";
import { distribution, spreadFigure } from "./distribution.js";
import { explanation } from "./explanation.js";
import { current, cut, fresh, hold, lasting, stride } from "./heard.js";
import { cellKey, dimensions, promise, selector } from "./names.js";
import { badge, chips, nothingYet, stateStrips, table, trace } from "./parts.js";
import { stateOf } from "./palette.js";
import { cellLink, write } from "./state.js";

const normal = {
  dynamic: { term: "normal lately", line: "dynamic baseline", color: "--series-dynamic", dash: [] },
  frozen: { term: "normal once", line: "frozen baseline", color: "--series-frozen", dash: [2, 4] },
};

export function mount(root) {
  return {
    async update(app, client) {
      if (!app.names.value && !app.names.observed) return replace(root, await nothingYet(app, client));
      const cell = await load(app, client);
      replace(root, ...show(app, cell));
    },
  };
}

async function load(app, client) {
  const { names, state } = app, grid = time.grid(app.range, 240, 5), at = state.at ? Number(state.at) : app.evaluated, before = Math.max(app.range.from + 600, at - 3 * 3600);
  const of = { slo_id: state.slo_id }, key = cellKey({ ...of, ...state.d });
  // Over the range, and at the time that is asked for, which is not on the grid.
  const range = async (k, matchers, label, wanted) => {
    if (!names[k]) return [];
    const q = selector(names, k, { ...of, ...matchers });
    // Only what a sample is there for: a backend would repeat the last one for minutes.
    const [{ times, series }, now] = await Promise.all([client.range(`last_over_time(${q}[${grid.step}s])`, grid), client.instant(fresh(q, at), at)]), found = wanted(series), n = stride(found.map((x) => x.values), grid.step);
    const then = new Map(now.map((x) => [JSON.stringify(x.metric), x.value])), end = await lasting(client, q, at, found);
    return joined(found.map((x) => ({ ...x, values: cut(hold(x.values, n), times, end(x.metric)), now: end(x.metric) === Infinity ? then.get(JSON.stringify(x.metric)) : undefined })), (m) => m[label]);
  };
  const exactly = (list) => list.filter((x) => cellKey(x.metric) === key), covering = (list) => finest(list, state.d);
  const [drifted, value, objective, base, drift, judged, partly, inside, explained, spread, earlier, events, violations] = await Promise.all([
    range("observed", state.d, undefined, exactly),
    range("value", {}, undefined, covering),
    range("objective", {}, undefined, covering),
    range("baseline", state.d, "baseline", exactly),
    range("drift", state.d, "state", exactly),
    range("state", {}, "state", covering),
    range("incomplete", {}, undefined, covering),
    within(app, client, key, at),
    names.explanation ? client.instant(fresh(selector(names, "explanation", of), at), at) : [],
    distribution(app, client, state, at),
    before < at - 600 ? distribution(app, client, state, before) : undefined,
    names.events ? client.exemplars(selector(names, "events", { ...of, outcome: "bad" }), app.range) : [],
    names.violations ? client.exemplars(selector(names, "violations", of), app.range) : [],
  ]);
  const times = Array.from({ length: Math.floor((grid.to - grid.from) / grid.step + 1e-6) + 1 }, (_, i) => grid.from + i * grid.step);
  const observed = drifted.length > 0 ? drifted : exactly(value);
  // What is young is not squeezed into a corner.
  const empty = time.lead(times.length, time.firstKnown(times.length, [...observed, ...drift, ...judged].map((x) => x.values)));
  for (const x of new Set([...observed, ...objective, ...base, ...drift, ...judged, ...partly])) x.values = x.values.subarray(empty);
  return {
    metric: observed[0]?.metric ?? objective[0]?.metric ?? value[0]?.metric ?? inside[0]?.metric ?? of, at, before, times: times.slice(empty), observed, objective, base, drift, judged, partly, inside, explained, spread, earlier,
    exemplars: [...events, ...violations].filter((e) => agrees(e.series, state.d))
      .filter((e, i, all) => e.trace && all.findIndex((x) => x.trace === e.trace) === i).sort((a, b) => b.time - a.time),
  };
}

/** Whether what a series says of the cell's dimensions is the cell's. */
const agrees = (metric, d) => Object.entries(d).every(([k, v]) => metric[k] === undefined || metric[k] === v);

/** The series of the smallest group that the whole cell is in: the slo connector may tell fewer dimensions apart. */
function finest(list, d) {
  const size = (x) => Object.keys(dimensions(x.metric)).length, around = list.filter((x) => Object.entries(dimensions(x.metric)).every(([k, v]) => d[k] === v));
  const most = Math.max(...around.map(size));
  return around.filter((x) => size(x) === most);
}

/** The cells of the heatmap that lie in this one, the worst first: a promise's group may be told apart further by the processor. */
async function within({ names, state }, client, key, at) {
  if (!names.deviation) return [];
  const of = { slo_id: state.slo_id, ...state.d };
  const [deviations, states] = await Promise.all([current(client, selector(names, "deviation", of), at), names.drift ? current(client, selector(names, "drift", of), at, " == 1") : []]);
  const stateBy = new Map(states.map((x) => [cellKey(x.metric), x.metric.state])), rank = (c) => (c.state ? stateOf(c.state).rank : 0);
  return deviations.filter((x) => cellKey(x.metric) !== key)
    .map((x) => ({ metric: x.metric, bad: x.value * worseBy(x.metric), state: stateBy.get(cellKey(x.metric)) }))
    .sort((a, b) => rank(b) - rank(a) || b.bad - a.bad);
}

const last = (values) => { for (let i = values.length - 1; i >= 0; i--) if (Number.isFinite(values[i])) return values[i]; };

function show(app, c) {
  const { service, name } = promise(c.metric), unit = c.metric.unit;
  const back = write({ ...app.state, view: "heatmap", slo_id: "", d: {}, at: "" });
  const head = h("section", { class: "summary" },
    h("p", null, h("a", { href: back }, "← heatmap")),
    h("h1", null, h("strong", null, service), ` ${name}`),
    h("p", null, chips(Object.keys(app.state.d).length ? app.state.d : { group: "all" })));
  if (c.observed.length === 0 && c.inside.length === 0) return [head, empty("Nothing is known of this cell in this time range", "Choose a longer time range above: the cell may have come later, or gone.")];
  const index = Math.max(0, Math.min(c.times.length - 1, Math.round((c.at - c.times[0]) / (c.times[1] - c.times[0]))));
  // What is told is of the time that is asked for, or of the last before it of which anything is known.
  const known = c.observed[0]?.values.findLastIndex((v, i) => i <= index && Number.isFinite(v)) ?? index, gone = c.observed.length > 0 && known < index - 1 && (known >= 0 || c.observed[0].now === undefined);
  const then = { index: gone ? known : index, time: gone ? c.times[known] : c.at, gone: gone && known >= 0 };
  const exact = ({ now, values }) => (gone ? undefined : now) ?? values[then.index];
  const near = (x) => (Number.isFinite(exact(x)) ? exact(x) : last(x.values));
  const seen = { observed: c.observed[0] && exact(c.observed[0]), objective: c.objective[0] ? near(c.objective[0]) : Number(c.metric.target) };
  const verdicts = [...c.drift, ...c.judged].filter((x) => exact(x) === 1).map((x) => x.metric.state).sort((a, b) => stateOf(b).rank - stateOf(a).rank);
  const baselines = Object.keys(normal).map((k) => c.base.find((b) => b.metric.baseline === k)).filter(Boolean).map((b) => ({ ...normal[b.metric.baseline], values: b.values, value: near(b) }));
  const compare = (a, b) => difference(c.metric, a, b);
  const facts = [
    ["observed", format.value(seen.observed, unit), verdicts[0] && badge(verdicts[0])],
    ["objective", `${isFloor(c.metric) ? "≥" : "≤"} ${format.value(seen.objective, unit)}`, against(c.metric, seen)],
    ...baselines.map((b) => [`${b.term} (${b.line})`, format.value(b.value, unit), [compare(seen.observed, b.value), h("div", { class: "muted" }, "itself ", relation(b.value, seen.objective), " the objective")]]),
  ];
  const zoom = (from, to) => app.set({ from: time.iso(Math.round(from)), to: time.iso(Math.round(to)), at: "" });
  const lines = c.observed.length > 0 && [
    ...baselines.map((b) => ({ label: b.line, values: b.values, color: b.color, dash: b.dash })),
    { label: "objective", values: c.objective[0]?.values ?? c.times.map(() => seen.objective), color: "--series-objective", dash: [12, 4] },
    { label: "observed", values: c.observed[0].values, color: "--series-observed", width: 2.5 },
  ];
  const coarse = c.judged[0] && Object.keys(dimensions(c.judged[0].metric)).length < Object.keys(app.state.d).length;
  return [
    head,
    h("dl", { class: "facts" }, facts.map(([term, big, small]) => h("div", null, h("dt", null, term), h("dd", null, h("span", { class: "big" }, big), small && h("div", { class: "small" }, small))))),
    h("p", { class: "muted" }, `at ${format.fullTime(then.time ?? c.at)}`, since(c, seen.objective, then), then.gone && "; no data since"),
    c.partly[0] && exact(c.partly[0]) === 1 && h("p", { class: "note" }, h("b", null, "Incomplete. "), "This window was judged without what a known part has heard: what is missing could have been good or bad. The log of the Collector that judges names the part; look whether it runs."),
    explanation(app, c),
    inside(app, c),
    lines && chart({ title: "Observed against objective and baselines", times: c.times, lines, unit, height: 260, onZoom: zoom, at: c.at }),
    stateStrips("Verdicts", c.times, [
      c.drift.length > 0 && { name: "drift of the cell", series: c.drift.map((x) => ({ name: x.metric.state, values: x.values })) },
      c.judged.length > 0 && { name: `promise${coarse ? ` of ${format.labels(dimensions(c.judged[0].metric)) || "all"}` : ""}`, series: c.judged.map((x) => ({ name: x.metric.state, values: x.values })) },
      c.partly.some((x) => x.values.includes(1)) && { name: "judged without a known part", series: c.partly.map((x) => ({ name: "incomplete", values: x.values })) },
    ].filter(Boolean)),
    h("div", { class: "columns" }, !isShare(c.metric) && spreadFigure(app, c, unit, seen.objective), exemplars(app, c, unit)),
    h("p", { class: "muted small" }, c.metric.slo_id),
  ];
}

function against(metric, { observed, objective }) {
  if (!isShare(metric) || observed === undefined) return difference(metric, observed, objective);
  const bad = (worseBy(metric) * (observed - objective)) / objective;
  return bad > 0 ? h("span", { class: "over" }, format.failures(bad)) : "kept";
}

/** How far apart two values are, in words and with whether that is bad. */
function difference(metric, a, b) {
  if (a === undefined || b === undefined) return undefined;
  const over = (a - b) / b, bad = worseBy(metric) * over;
  if (isShare(metric)) return bad > 0.005 ? h("span", { class: "over" }, `${format.percent(bad)} of the allowed failures more`) : "as good or better";
  return Math.abs(over) < 0.005 ? "the same" : h("span", { class: bad > 0 ? "over" : "" }, `${format.percent(Math.abs(over))} ${over > 0 ? "above" : "below"}`);
}

const relation = (a, b) => (a === undefined || Math.abs(a - b) / b < 0.005 ? "at" : `${format.signed((a - b) / b)} against`);

/** Since when it is worse than promised without a pause, as far as the range goes. */
function since(c, objective, { index: end, time: until, gone }) {
  if (c.observed.length === 0) return null;
  const { values, now } = c.observed[0], way = worseBy(c.metric), promised = (i) => { const v = c.objective[0]?.values[i]; return Number.isFinite(v) ? v : objective; };
  let from = -1, i = end;
  if (!gone && now !== undefined && Number.isNaN(values[i])) i--; // the column that goes on
  for (; way * (values[i] - promised(i)) > 0; i--) from = i;
  if (from < 0) return null;
  // The window that is told of by the first bad value began when the one before it was told.
  let begin = from;
  if (Number.isFinite(values[from - 1])) for (begin = from - 1; values[begin - 1] === values[begin]; ) begin--;
  const at = (t) => format.time(t, c.times[1] - c.times[0]), long = ` (${format.duration(until - c.times[begin])})`;
  return h("span", { class: "over" }, from === 0 ? ", worse than promised all along" : `, worse than promised ${gone ? `from ${at(c.times[begin])} to ${at(until)}` : `since ${at(c.times[begin])}`}${long}`);
}

const insideShown = 6;

/** The cells in this one, with links: where in it it bends. */
function inside(app, c) {
  if (c.inside.length === 0) return null;
  const more = (m) => Object.fromEntries(Object.entries(dimensions(m)).filter(([k]) => !(k in app.state.d)));
  const bends = c.inside.filter((x) => x.bad > 0 || stateOf(x.state).rank >= 2).length;
  return h("section", null, h("h2", null, `Where in it: ${bends === 0 ? "none" : bends} of ${format.plural(c.inside.length, "cell")} ${bends === 1 ? "bends" : "bend"}`),
    h("ul", { class: "inside" }, c.inside.slice(0, insideShown).map((x) => h("li", null,
      h("a", { href: cellLink(app.state, x.metric, dimensions(x.metric), app.state.at) }, chips(more(x.metric))), x.state && badge(x.state),
      h("span", { class: x.bad > 0 ? "over" : "muted" }, ` ${isShare(x.metric) ? (x.bad > 0 ? format.failures(x.bad) : "as promised") : `${format.percent(Math.abs(x.bad))} ${x.bad > 0 ? "worse" : "better"} than promised`}`)))),
    c.inside.length > insideShown && h("p", { class: "muted small" }, h("a", { href: write({ ...app.state, view: "heatmap", slo_id: "", d: {}, at: "", f: { slo_id: app.state.slo_id, ...app.state.d } }) }, `all ${c.inside.length} in the heatmap`)));
}

function exemplars(app, c, unit) {
  if (c.exemplars.length === 0) return null;
  return h("section", null, h("h2", null, "Traces of bad events"),
    !app.config.trace_url && h("p", { class: "muted" }, "To have links, set trace_url, e.g. http://localhost:16686/trace/{trace_id}"),
    table("Traces of bad events", [
      { name: "Time", cell: (e) => format.fullTime(e.time) },
      { name: "Value", class: "number", cell: (e) => (unit === "ratio" ? "–" : format.value(e.value, unit)) },
      { name: "Trace", cell: (e) => trace(app, e.trace) },
    ], c.exemplars.slice(0, 6)));
}
