// SPDX-License-Identifier: Apache-2.0
// Where more stops paying: throughput by batch size, length of prompts and share that is cached, and the knee of each curve.

import { h, s, replace, empty, emptyView, code } from "./dom.js";
import * as format from "./format.js";
import { dimensions, selector } from "./names.js";
import { heat } from "./palette.js";
import { chips, filterBar, matches } from "./parts.js";

const axes = ["batch", "context", "cache_hit"];
const unit = "tokens_per_second";

export function mount(root) {
  let last;
  const show = (app) => {
    const groups = last.groups.filter((g) => matches(g.metric, app.state));
    replace(root, last.bar, summary(groups, app), groups.length === 0 ? empty("No engine matches", "Take a filter away.") : groups.map(view));
  };
  return {
    async update(app, client) {
      if (!app.names.throughput) return replace(root, nothing());
      const [bar, groups] = await Promise.all([filterBar(app, client, "throughput", axes), load(app, client)]);
      if (groups.length === 0) return replace(root, nothing());
      last = { bar, groups };
      show(app);
    },
    find(app) { if (last) show(app); },
    restyle() { root.querySelectorAll(".learned").forEach(paint); },
  };
}

const nothing = () => emptyView("Nothing is learned of throughput yet",
  h("p", null, "The ", code("drift_heatmap"), " processor learns it from the metrics of engines, when it is told to. For vLLM:"),
  h("pre", null, "processors:\n  drift_heatmap:\n    coupling: {}"),
  h("p", null, "It takes a counter of tokens and a gauge of running requests, ", code("vllm:generation_tokens"), " and ", code("vllm:num_requests_running"), " unless told otherwise, and tells the first when a window is over. Engines that are idle teach nothing."));

/** The upper end of a bucket: <=8, 1000-4000, >4000. */
export const upper = (text = "") => (text.startsWith(">") ? Infinity : Number(text.replace("<=", "").split("-").at(-1)));
const byUpper = (a, b) => upper(a) - upper(b) || (a < b ? -1 : 1);

/**
 * Curves of the newest values, by what engines are told apart by: [{metric, dims, batches, most, panels: [{hit, rows: [{context,
 * values by batch, knee}]}]}]. Every panel of a group has the same columns and colours, so that they can be held against each other.
 */
export function curves(throughput, knees) {
  const groups = new Map();
  const row = (metric) => {
    const dims = Object.fromEntries(Object.entries(dimensions(metric)).filter(([k]) => !axes.includes(k))), id = JSON.stringify(dims);
    if (!groups.has(id)) groups.set(id, { metric, dims, batches: new Set(), most: 0, hits: new Map() });
    const group = groups.get(id), hit = metric.cache_hit ?? "", context = metric.context ?? "";
    if (!group.hits.has(hit)) group.hits.set(hit, new Map());
    if (!group.hits.get(hit).has(context)) group.hits.get(hit).set(context, { context, values: new Map(), knee: undefined });
    return [group, group.hits.get(hit).get(context)];
  };
  for (const { metric, value } of throughput) {
    const [group, of] = row(metric);
    group.batches.add(metric.batch);
    group.most = Math.max(group.most, value);
    of.values.set(metric.batch, value);
  }
  for (const { metric, value } of knees) row(metric)[1].knee = value;
  return [...groups.values()].filter((g) => g.most > 0).map((g) => ({
    ...g, batches: [...g.batches].sort(byUpper),
    panels: [...g.hits].sort(([a], [b]) => byUpper(a, b)).map(([hit, rows]) => ({ hit, rows: [...rows.values()].filter((r) => r.values.size > 0).sort((a, b) => byUpper(a.context, b.context)) })),
  }));
}

async function load(app, client) {
  const [throughput, knees] = await Promise.all(["throughput", "knee"].map((k) => (app.names[k] ? client.instant(selector(app.names, k, app.state.f), app.evaluated) : [])));
  return curves(throughput, knees);
}

function summary(groups, app) {
  const knees = groups.flatMap((g) => g.panels.flatMap((p) => p.rows.map((r) => r.knee))).filter(Number.isFinite);
  const [lo, hi] = [Math.min(...knees), Math.max(...knees)].map(requests);
  return h("section", { class: "summary" },
    h("h1", null, knees.length === 0 ? "No knee is known" : lo === hi ? `More than ${lo} at once stops paying` : `More than ${lo} to ${hi} at once stops paying`),
    h("p", { class: "muted" }, knees.length === 0 ? "Throughput grows with the batch as far as was seen, or too few batch sizes were seen. " : "Beyond the knee, a larger batch makes each request slower for hardly more throughput. ", `As of ${format.fullTime(app.evaluated)}.`));
}

const requests = (v) => Math.max(1, Math.round(v)).toLocaleString("en");
const percents = (text) => text.replace(/\d+(\.\d+)?/g, (n) => String(Number((n * 100).toFixed(1)))).replace("<=", "≤ ").replace("-", "–").replace(">", "> ");
const hitText = (hit) => (hit ? `${percents(hit)} % of prompts cached` : "all prompts");
const contextText = (context) => (context ? context.replace("<=", "≤ ").replace("-", "–").replace(">", "> ") : "all lengths");

/** How many requests a column stands for: 5–8. */
const between = (batch) => { const n = upper(batch), from = n / 2 + 1; return from < n ? `${from}–${n}` : String(n); };

function view(group) {
  return h("section", { class: "coupling" }, Object.keys(group.dims).length > 0 && h("h2", null, chips(group.dims)),
    h("div", { class: "columns wider" }, group.panels.map((p) => panel(group, p))), legend(group));
}

function panel(group, { hit, rows }) {
  const read = h("p", { class: "read", "aria-live": "polite" }, "Point at a field, or go there with the arrow keys.");
  const tell = (row, batch) => { read.textContent = sentence(group, row, batch); };
  const body = rows.map((row) => h("tr", null,
    h("th", { scope: "row" }, contextText(row.context), h("div", { class: "muted small" }, Number.isFinite(row.knee) ? `knee ${requests(row.knee)}` : "no knee")),
    group.batches.map((batch) => field(group, hit, row, batch, tell))));
  const grid = h("table", { class: "learned", role: "grid", "aria-label": `Throughput, ${hitText(hit)}`, on: { keydown: (e) => step(e, grid) } },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, h("span", { class: "hidden" }, "prompt tokens, and requests "), "tokens \\ at once"), group.batches.map((b) => h("th", { scope: "col", class: "number" }, between(b))))),
    h("tbody", null, body));
  const first = grid.querySelector("td");
  if (first) first.tabIndex = 0;
  paint(grid);
  return h("figure", { class: "chart" }, h("figcaption", null, hitText(hit)), h("div", { class: "wide" }, grid), read, lines(group, rows, hit));
}

/** Where the knee lies: before a column, in it or beyond. */
const place = (batch, knee) => (!Number.isFinite(knee) || knee > upper(batch) ? "before" : knee > upper(batch) / 2 ? "knee" : "beyond");

function field(group, hit, row, batch, tell) {
  const v = row.values.get(batch), at = place(batch, row.knee), key = JSON.stringify([group.dims, hit, row.context, batch]), told = () => tell(row, batch);
  const focus = ({ currentTarget: td }) => {
    td.closest("table").querySelector("td[tabindex='0']").tabIndex = -1;
    td.tabIndex = 0;
    told();
  };
  const props = { tabindex: "-1", on: { pointerenter: told, focus, click: (e) => e.currentTarget.focus() } };
  if (v === undefined) return h("td", { ...props, class: "datum none", data: { key } }, "·");
  return h("td", { ...props, class: `datum ${at}`, data: { key, heat: String(v / group.most) } }, brief(v),
    at === "knee" && h("span", { class: "diamond", "aria-hidden": "true" }, "◆"), at !== "before" && h("span", { class: "hidden" }, at === "knee" ? " the knee" : " beyond the knee"));
}

const brief = (v) => (v >= 1e4 ? `${Number((v / 1000).toPrecision(3))}k` : Number(v.toPrecision(3)).toLocaleString("en"));

function sentence(group, row, batch) {
  const v = row.values.get(batch), half = row.values.get(`<=${upper(batch) / 2}`), where = `${between(batch)} at once, ${row.context ? `prompts of ${contextText(row.context)} tokens` : "prompts of any length"}`;
  if (v === undefined) return `${where}: not seen`;
  const gain = half > 0 ? `, ${format.signed(v / half - 1)} against half as many` : "";
  const at = place(batch, row.knee);
  return `${where}: ${format.value(v, unit)}${gain}${at === "knee" ? `; the knee, at ${requests(row.knee)}` : at === "beyond" ? "; beyond the knee" : ""}`;
}

/** Colours by the theme; the numbers stand in every field besides. */
function paint(grid) {
  const dark = document.documentElement.dataset.dark === "true";
  for (const td of grid.querySelectorAll("[data-heat]")) {
    const [background, text] = heat(Number(td.dataset.heat), dark);
    td.style.background = background;
    td.style.color = text;
  }
}

/** Arrow keys go from field to field; one field of a table is in the order of the tab key. */
function step(e, grid) {
  const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -99], End: [0, 99] }[e.key], td = e.target.closest("td");
  if (!by || !td || e.altKey || e.ctrlKey || e.metaKey) return;
  const rows = [...grid.tBodies[0].rows], y = rows.indexOf(td.parentNode), cells = (r) => [...r.cells].slice(1), x = cells(td.parentNode).indexOf(td);
  const to = rows[Math.max(0, Math.min(rows.length - 1, y + by[0]))], next = cells(to)[Math.max(0, Math.min(cells(to).length - 1, x + by[1]))];
  next.focus();
  e.preventDefault();
  e.stopPropagation();
}

const colors = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"], dashes = ["", "6 3", "2 3", "10 3 2 3"];

/** The same as curves: batch size to the right, each doubling as wide as the other; a diamond is the knee. */
function lines(group, rows, hit) {
  const w = 480, high = 130, left = 4, right = 118, n = group.batches.length;
  if (n < 2) return null;
  const top = Math.max(...rows.flatMap((row) => [...row.values.values()])), y = (v) => high - (v / top) * (high - 18), lo = Math.log2(upper(group.batches[0])), hi = Math.log2(upper(group.batches.at(-1)));
  const xOf = (batch) => left + Math.max(0, Math.min(1, (Math.log2(batch) - lo) / (hi - lo))) * (w - left - right);
  const points = ({ values }) => group.batches.map((b) => [xOf(upper(b)), values.get(b)]).filter(([, v]) => v !== undefined);
  const ends = []; // of the labels, so that none hides another
  const labelled = rows.map((row, i) => ({ row, i, points: points(row) })).sort((a, b) => b.points.at(-1)[1] - a.points.at(-1)[1]);
  const label = (v) => { const wanted = Math.max(y(v) + 4, (ends.at(-1) ?? -9) + 13); ends.push(wanted); return wanted; };
  return s("svg", { class: "curves", viewBox: `0 0 ${w} ${high + 18}`, role: "img", "aria-label": `Throughput over batch size, ${hitText(hit)}` },
    s("line", { class: "axis", x1: 0, x2: w - right, y1: high, y2: high }), s("line", { class: "axis", x1: 0, x2: w - right, y1: y(top), y2: y(top) }), s("text", { x: 0, y: y(top) - 3 }, format.value(Number(top.toPrecision(2)), unit)),
    group.batches.map((b, i) => s("text", { x: xOf(upper(b)), y: high + 14, "text-anchor": i === 0 ? "start" : "middle" }, String(upper(b)))),
    labelled.map(({ row, i, points: ps }) => {
      const color = `var(${colors[i % colors.length]})`, knee = Number.isFinite(row.knee) && heightAt(ps, xOf(row.knee));
      const line = s("polyline", { points: ps.map(([x, v]) => `${x.toFixed(1)},${y(v).toFixed(1)}`).join(" "), "stroke-dasharray": dashes[i % dashes.length] });
      const text = s("text", { class: "name", x: w - right + 6, y: label(ps.at(-1)[1]) }, row.context ? contextText(row.context) : "all");
      const dots = ps.map(([x, v]) => s("circle", { cx: x.toFixed(1), cy: y(v).toFixed(1), r: 2 }));
      for (const dot of dots) dot.style.fill = color;
      line.style.stroke = color;
      text.style.fill = color;
      const mark = knee && s("path", { class: "knee", d: `M${xOf(row.knee)} ${y(knee) - 6}l6 6l-6 6l-6 -6z` }, s("title", null, `knee at ${requests(row.knee)}`));
      if (mark) mark.style.fill = color;
      return [line, dots, mark, text];
    }));
}

/** The height of a curve at x. */
function heightAt(points, x) {
  const i = points.findIndex(([px]) => px >= x);
  if (i <= 0) return (points[Math.max(i, 0)] ?? [])[1];
  const [[x1, v1], [x2, v2]] = [points[i - 1], points[i]];
  return v1 + ((v2 - v1) * (x - x1)) / (x2 - x1);
}

const legend = (group) => h("div", { class: "legend" }, h("span", null, "0 ", h("i", { class: "swatch ramp" }), ` ${format.value(group.most, unit)}`), h("span", null, h("span", { class: "diamond" }, "◆"), " the knee"), h("span", null, h("i", { class: "swatch beyond" }), "beyond it"));
