// SPDX-License-Identifier: Apache-2.0
// Where it bends: time × cell, coloured by how much worse than promised.

import { h, replace, empty } from "./dom.js";
import * as format from "./format.js";
import { scale, shade, full, stateOf } from "./palette.js";
import { arrange, cellMetric, load, measures, worstNow } from "./cells.js";
import { makeHeatmap } from "./canvas.js";
import { isFloor, isShare } from "./direction.js";
import { isDimension, selector } from "./names.js";
import { badge, chips, field, filterBar, keep, nothingYet } from "./parts.js";
import { cellLink } from "./state.js";

const told = 3; // how many of the worst cells are told in words

export function mount(root) {
  let app, grid, bar, details, wait;
  const seen = new Map(); // what was asked for a tip: key → text, for one load
  const tip = h("div", { class: "tip", hidden: true });
  const count = h("span", { class: "muted cellcount" }), keptTools = keep();
  const live = h("p", { class: "hidden", "aria-live": "polite" });
  const map = makeHeatmap({
    hover: (p) => showTip(p),
    cursor: (p) => { showTip(p); live.textContent = sentence(p.row, index(p.time), p.time, grid.step); },
    open: ({ row, time }) => openRow(row, time),
  });
  const index = (t) => Math.round((t - grid.times[0]) / grid.step);

  function openRow(row, time) {
    if (row.label) return app.set({ by: "", f: { ...app.state.f, slo_id: row.metric.slo_id, [row.label]: row.of } });
    app.go(cellLink(app.state, row.metric, row.dims, time && Math.min(time, app.evaluated)));
  }

  function showTip(p) {
    clearTimeout(wait);
    details?.abort();
    tip.hidden = !p;
    if (!p) return;
    const v = p.row.values[index(p.time)], key = `${p.row.key}@${p.time}`;
    const more = h("dl", null);
    replace(tip, h("strong", null, p.row.title), h("div", null, chips(p.row.dims)), h("div", null, `${format.time(p.time - grid.step, grid.step)}–${format.clockTime(p.time, grid.step)}: `, h("b", null, deviation(v, p.row))), stateAt(p.row, index(p.time)), more);
    place(p);
    if (p.row.label || Number.isNaN(v)) return;
    if (seen.has(key)) return void (fillTip(more, seen.get(key), p.row), place(p));
    wait = setTimeout(async () => {
      details = new AbortController();
      try {
        const values = await ask(app, p.row, p.time, details.signal);
        seen.set(key, values);
        fillTip(more, values, p.row);
        place(p);
      } catch (error) {
        if (error.name !== "AbortError") more.replaceChildren(h("dt", null, "Values"), h("dd", null, error.message));
      }
    }, 200);
  }

  function place({ x, y }) {
    const w = tip.offsetWidth, room = map.element.clientWidth, high = tip.offsetHeight;
    tip.style.left = `${Math.max(0, Math.min(x + 14, room - w - 4))}px`;
    tip.style.top = `${y + 18 + high > map.element.clientHeight ? Math.max(0, y - high - 14) : y + 18}px`;
  }

  const view = h("div", { class: "mapbox" }, map.element, tip);

  function show() {
    seen.clear();
    const rows = arrange(grid.rows, app.state);
    map.set(rows, grid.times, grid.step);
    const cells = app.state.by ? format.plural(rows.length, "row") : rows.length === grid.rows.length ? format.plural(rows.length, "cell") : `${rows.length.toLocaleString("en")} of ${format.plural(grid.rows.length, "cell")}`;
    count.textContent = `${cells}, ${format.duration(grid.step)} a column${grid.begin ? `, nothing before ${format.time(grid.begin, grid.step)}` : ""}`;
    view.classList.toggle("alike", new Set(rows.map((r) => r.title)).size === 1);
    replace(root, bar, h("section", { class: "summary" }, h("h1", null, headline(rows)), worstCells(rows)), tools(),
      grid.truncated && h("p", { class: "note" }, "There are more cells than are shown: filter by a label."),
      rows.length === 0 ? empty("No cell matches", "Take a filter away, or choose a longer time range.") : view, legend(), live);
    view.style.setProperty("--rows", Math.min(rows.length, 400));
  }

  const bends = (state) => grid.rows.filter((r) => r.state === state).length;
  const than = () => measures(app.names).find((m) => m.id === app.state.measure)?.than ?? "promised";

  /** The processor's verdicts, where there are any: one bad window is not yet a drift. */
  function headline(rows) {
    const degraded = bends("degraded"), drifting = bends("drifting"), bad = grid.rows.filter((r) => r.now > 0).length, of = (n) => `${format.plural(n, "cell")} of ${grid.rows.length.toLocaleString("en")}`;
    if (rows.length === 0) return "Drift";
    if (degraded + drifting > 0) return `${of(degraded || drifting)} ${degraded > 1 ? "are degraded" : degraded ? "is degraded" : drifting > 1 ? "drift" : "drifts"}${degraded && drifting ? `, ${drifting} more ${drifting === 1 ? "drifts" : "drift"}` : ""}`;
    if (app.names.drift && than() === "promised") return "No cell drifts";
    return bad === 0 ? `Nothing is worse than ${than()} now` : `${of(bad)} ${bad === 1 ? "is" : "are"} worse than ${than()}`;
  }

  const worstCells = (rows) => {
    const verdicts = app.names.drift && than() === "promised", worst = rows.filter((r) => r.state || (!verdicts && r.now > 0)).sort(worstNow).slice(0, told);
    const chance = verdicts ? rows.filter((r) => !r.state && r.now > 0).length : 0;
    return [
      worst.length > 0 && h("ol", { class: "worst" }, worst.map((r) => h("li", null,
        h("a", { href: r.label ? "#" : cellLink(app.state, r.metric, r.dims, app.evaluated), on: r.label ? { click: (e) => { e.preventDefault(); e.stopPropagation(); openRow(r); } } : undefined },
          h("strong", null, r.title), " ", chips(r.dims)),
        r.state && badge(r.state), h("span", { class: r.now > 0 ? "over" : "muted" }, ` ${deviation(r.now, r)}`),
        h("span", { class: "muted" }, !(r.now > 0) ? (r.state ? ` than ${than()}` : "") : r.since === 0 ? " all along" : ` since ${format.time(grid.times[r.since] - grid.step, grid.step)}`)))),
      chance > 0 && h("p", { class: "muted" }, `${format.plural(chance, app.state.by ? "row" : "cell")} ${worst.length ? "besides " : ""}${chance === 1 ? "was" : "were"} worse than promised in the last window, by too little or too few values to be a drift.`),
    ];
  };

  function tools() {
    const { state } = app, labels = [...new Set(grid.rows.flatMap((r) => Object.keys(r.dims)))].filter(isDimension), kinds = measures(app.names);
    return keptTools([labels, kinds, state.by, state.sort, state.measure, state.worse], () => makeTools(state, labels, kinds));
  }

  function makeTools(state, labels, kinds) {
    const choose = (key, options) => h("select", { data: { key }, on: { change: (e) => app.set({ [key]: e.target.value }) } },
      options.map(([value, text]) => { const o = h("option", { value }, text); o.selected = state[key] === value; return o; }));
    return h("div", { class: "filters tools" },
      field("rows", choose("by", [["", "every cell"], ...labels.map((l) => [l, `worst by ${l}`])])),
      field("order", choose("sort", [["now", "worst now"], ["range", "worst in range"], ["name", "name"]])),
      kinds.length > 1 && field("colour", choose("measure", kinds.map((m) => [m.id, m.text]))),
      h("label", { class: "check" }, h("input", { type: "checkbox", checked: state.worse === "1", data: { key: "worse" }, on: { change: (e) => app.set({ worse: e.target.checked ? "1" : "" }) } }), "only what bends"),
      count);
  }

  return {
    async update(a, client) {
      app = a;
      const kinds = measures(app.names);
      if (kinds.length === 0) return replace(root, await nothingYet(app, client));
      if (!kinds.some((m) => m.id === app.state.measure)) app.state.measure = "";
      [bar, grid] = await Promise.all([filterBar(app, client, cellMetric(app.names)), load(app, client)]);
      show();
    },
    find(a) {
      app = a;
      if (grid) show();
    },
    restyle() { if (grid) show(); },
    map,
  };
}

/** A deviation in words: against the promise, or what was normal. */
function deviation(v, row) {
  if (v === undefined || Number.isNaN(v)) return "no data";
  const promised = row.measure === "" || row.measure === "ratio";
  if (isShare(row.metric)) return promised ? (v > 0 ? format.failures(v) : "as promised") : Math.abs(v) < 0.005 ? "as normal" : `${v > 0 ? "worse" : "better"} by ${format.percent(Math.abs(v))} of the allowed failures`;
  return Math.abs(v) < 0.005 ? (promised ? "as promised" : "as normal") : `${format.percent(Math.abs(v))} ${v > 0 ? "worse" : "better"}`;
}

/** What the processor said of a row in a column, where it complained. */
const stateAt = (row, column) => {
  const rank = row.states?.[column];
  return rank ? h("div", null, badge(rank >= stateOf("degraded").rank ? "degraded" : "drifting")) : null;
};

const sentence = (row, column, t, step) => `${row.title} ${row.text}, until ${format.time(t, step)}: ${[deviation(row.values[column], row), stateAt(row, column)?.textContent.slice(1)].filter(Boolean).join(", ")}`;

/** The values behind a cell at a time. */
async function ask(app, row, time, signal) {
  const client = app.client(signal), { names } = app, matchers = { slo_id: row.metric.slo_id, ...row.dims };
  const keys = names.observed ? ["observed", "baseline"] : ["value"];
  const [observed, bases] = await Promise.all(keys.filter((k) => names[k]).map((k) => client.instant(selector(names, k, matchers), Math.min(time, app.evaluated))));
  const found = [["objective", Number(row.metric.target)]];
  for (const { metric, value } of observed ?? []) if (sameDims(metric, row)) found.unshift(["observed", value]);
  // The static baseline is the objective.
  for (const name of ["dynamic", "frozen"]) for (const { metric, value } of bases ?? []) if (metric.baseline === name && sameDims(metric, row)) found.push([normal[name], value]);
  return found;
}

const normal = { dynamic: "normal lately (dynamic)", frozen: "normal once (frozen)" };

const sameDims = (metric, row) => Object.keys(metric).filter(isDimension).every((k) => row.dims[k] === metric[k]);

function fillTip(list, values, row) {
  list.replaceChildren(...values.flatMap(([name, v]) => [h("dt", null, name), h("dd", null, (name === "objective" ? (isFloor(row.metric) ? "≥ " : "≤ ") : "") + format.value(v, row.metric.unit))]));
}

function legend() {
  const colors = scale(document.documentElement.dataset.dark === "true");
  const marks = [-full, -0.2, -0.05, 0, 0.05, 0.2, full];
  const swatch = (v) => {
    const box = h("i", { class: "swatch" }, v >= full ? "+" : v > 0.05 ? "–" : "");
    box.style.background = colors[shade(v)];
    box.style.color = v > 0.12 ? "var(--surface)" : "var(--text)";
    return h("span", null, box, v === 0 ? "as it should be" : `${format.signed(v)}${Math.abs(v) === full ? " or more" : ""}`);
  };
  return h("div", { class: "legend", "aria-label": "Legend", role: "group" }, h("span", { class: "muted" }, "better"), marks.map(swatch), h("span", { class: "muted" }, "worse"),
    h("span", null, h("i", { class: "swatch none" }, "·"), "no data"),
    ["drifting", "degraded"].map((name) => h("span", null, h("i", { class: `swatch under ${name}` }), name)));
}
