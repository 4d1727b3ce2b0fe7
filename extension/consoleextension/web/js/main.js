// SPDX-License-Identifier: Apache-2.0
// The page: which view, of which time range, how often refreshed.

import { h, replace, code } from "./dom.js";
import * as format from "./format.js";
import * as time from "./time.js";
import * as url from "./state.js";
import { Client, QueryError } from "./prom.js";
import { learn } from "./direction.js";
import { discover, selector } from "./names.js";
import { badge } from "./parts.js";
import { prune } from "./chart.js";
import * as promises from "./promises.js";
import * as heatmap from "./heatmap.js";
import * as cell from "./cell.js";
import * as violations from "./violations.js";
import * as coupling from "./coupling.js";
import * as gpus from "./gpus.js";
import * as memory from "./memory.js";
import { present } from "./gpu.js";

const views = { promises, heatmap, violations, coupling, gpus, memory, cell };
const tabs = [["promises", "Promises"], ["heatmap", "Heatmap"], ["violations", "Violations"], ["coupling", "Throughput"], ["gpus", "GPUs"], ["memory", "GPU memory"]];
const behind = 300; // seconds after which verdicts are old
const silent = 90; // seconds after which nobody speaks any more: how far behind they are is told at least once a minute
const slow = 150; // milliseconds after which waiting is shown
const $ = (id) => document.getElementById(id);

const app = {
  state: url.read(),
  config: { query_url: "", trace_url: "" },
  names: { all: [] },
  range: time.resolve("now-6h", "now"),
  evaluated: 0,
  client: (signal) => new Client(signal),
  set(patch) { this.go(url.write({ ...this.state, ...patch })); },
  go(address) {
    history.pushState(null, "", address);
    arrive();
  },
  find(q) {
    this.state.q = q;
    history.replaceState(null, "", url.write(this.state));
    view?.find?.(this);
  },
};
let view, shown, loading, timer, first = true;

/** Shows what the address says. */
function arrive() {
  const before = app.state;
  app.state = url.read();
  if (!Object.hasOwn(views, app.state.view) || (app.state.view === "cell" && !app.state.slo_id)) {
    app.state.view = "promises";
    history.replaceState(null, "", url.write(app.state)); // the address says what is shown
  }
  const id = app.state.view === "cell" ? `cell ${app.state.slo_id} ${JSON.stringify(app.state.d)}` : app.state.view;
  const was = shown;
  if (id !== shown) {
    shown = id;
    $("view").replaceChildren();
    view = views[app.state.view].mount($("view"));
    globalThis.consoleView = view; // for tests
    scrollTo(0, 0);
    if (!first) $("main").focus({ preventScroll: true });
    first = false;
  }
  controls();
  if (id === was && before !== app.state && onlyDisplay(before, app.state) && view.find) view.find(app);
  else load();
}

/** Whether nothing but the arrangement of what is loaded has changed. */
function onlyDisplay(a, b) {
  const rest = (s) => url.write({ ...s, by: "", sort: "now", worse: "", q: "" });
  return rest(a) === rest(b) && url.write(a) !== url.write(b);
}

async function load() {
  clearTimeout(timer);
  loading?.abort();
  const mine = (loading = new AbortController()), client = app.client(mine.signal);
  const wait = setTimeout(() => {
    $("progress").hidden = false;
    if (!$("view").hasChildNodes()) replace($("view"), asking());
  }, slow);
  app.range = time.resolve(app.state.from, app.state.to);
  app.evaluated = app.range.to;
  document.body.dataset.loaded = "no";
  try {
    app.names = await discover(client, app.range);
    tell($("banner"), await late(client));
    await learn(client, app.names, app.evaluated);
    tabsFor();
    await view.update(app, client);
    document.title = [$("view").querySelector("h1")?.innerText, "otelcol-llm"].filter(Boolean).join(" · ");
    tell($("error"), h("div", null, [...client.warnings].map((w) => h("p", { class: "note" }, w))));
  } catch (error) {
    if (error.name === "AbortError") return;
    $("view").querySelector(".asking")?.remove();
    tell($("error"), trouble(error));
    if (!(error instanceof QueryError)) console.error(error);
  } finally {
    clearTimeout(wait);
    if (loading === mine) {
      $("progress").hidden = true;
      document.body.dataset.loaded = "yes";
      footer();
      prune();
      again();
    }
  }
}

/** Puts a message where it is read out; one that is there already is not read out again. */
function tell(place, message) {
  if (place.textContent !== (message?.textContent ?? "")) replace(place, message);
}

/** Refreshes a range that ends now, while somebody looks. */
function again() {
  const every = time.span(app.state.refresh);
  if (!(every > 0) || !app.range.live) return;
  timer = setTimeout(() => (document.hidden ? document.addEventListener("visibilitychange", load, { once: true }) : load()), every * 1000);
}

/** Says since when nothing was evaluated; the rest of the page then shows how it was then. */
async function late(client) {
  const { names, range } = app, key = names.lag ? "lag" : "state";
  if (!names[key]) return null;
  const sel = selector(names, key);
  // A backend repeats for minutes what was said last, so that what counts is when that was.
  const ask = (query) => client.instant(`max(${query})`, range.to), [[heard], [now], [growth]] = await Promise.all([ask(`timestamp(${sel})`), ask(sel), names.lag ? ask(`delta(${sel}[10m])`) : []]);
  const speaking = heard && range.to - heard.value <= silent;
  if (speaking && !names.lag) return banner("Nobody says how far behind the verdicts are", "slo_evaluation_lag_seconds is absent: switch slo.evaluation.lag on in the slo connector, or look whether it is dropped on its way.");
  if (speaking) {
    const lag = now.value;
    if (lag < behind && !(lag > 120 && growth?.value > 60)) return null;
    return banner(`Not evaluated since ${format.time(range.to - lag)}`, `The verdicts are ${format.duration(lag)} behind${growth?.value > 60 ? ", and fall further behind" : ""}: data comes late, or not at all.`);
  }
  const [seen] = heard ? [heard] : await ask(`max_over_time(timestamp(${sel})[${Math.max(range.to - range.from, 86400)}s:1m])`);
  if (!seen) return null;
  app.evaluated = seen.value;
  return banner(`Not evaluated since ${format.time(seen.value)}`, `That is ${format.duration(range.to - seen.value)} ago. No slo connector reports here any more: is the Collector running, and does what it sends arrive? Below is what was known last.`);
}

const asking = () => h("section", { class: "asking", role: "status" }, h("h1", null, "Asking for the metrics …"), h("p", { class: "muted" }, code(app.config.query_url), " has not answered yet."));

const banner = (title, text) => h("section", { class: "banner" }, h("h2", null, h("span", { "aria-hidden": "true" }, "◷ "), title), h("p", null, text));

function trouble(error) {
  const advice = {
    unavailable: ["The console asks ", code(app.config.query_url), ". Is it running, and is query_url right?"],
    timeout: ["The query took too long: choose a shorter time range, or a filter."],
    execution: ["The query was too much, or is not known to this backend: choose a shorter time range, or a filter."],
  }[error.kind];
  return h("section", { class: "error" },
    h($("view").querySelector("h1") ? "h2" : "h1", null, h("span", { "aria-hidden": "true" }, "⚠ "), error instanceof QueryError ? "The metrics cannot be read" : "The page made a mistake"),
    h("p", null, error.message), advice && h("p", null, advice),
    error.query && h("details", null, h("summary", null, "The query"), h("pre", null, [].concat(error.query).join("\n"))),
    h("button", { type: "button", on: { click: () => load() } }, "Try again"));
}

function tabsFor() {
  const at = app.state.view === "cell" ? "heatmap" : app.state.view;
  replace($("views"), tabs.filter(([id]) => !["gpus", "memory"].includes(id) || at === id || present(app.names)).map(([id, name]) =>
    h("a", { href: url.write({ ...app.state, view: id, slo_id: "", d: {}, at: "", q: "" }), "aria-current": id === at ? "page" : undefined, data: { key: id } }, name)));
}

function controls() {
  const { state } = app, range = time.resolve(state.from, state.to), preset = state.to === "now" && state.from.startsWith("now-") ? state.from.slice(4) : "";
  const known = time.presets.some(([p]) => p === preset);
  const local = (t) => new Date((t - new Date(t * 1000).getTimezoneOffset() * 60) * 1000).toISOString().slice(0, 16);
  const pick = (which) => h("input", { type: "datetime-local", "aria-label": which, value: local(range[which]), data: { key: which }, on: { change: (e) => {
    const t = new Date(e.target.value).getTime() / 1000;
    if (t > 0) app.set({ from: time.iso(which === "from" ? t : range.from), to: time.iso(which === "to" ? t : range.to), at: "" });
  } } });
  const shift = (by) => () => {
    const w = range.to - range.from, to = range.to + by * w * 0.5;
    app.set(to >= Date.now() / 1000 ? { from: `now-${Math.round(w / 60)}m`, to: "now", at: "" } : { from: time.iso(Math.round(to - w)), to: time.iso(Math.round(to)), at: "" });
  };
  const wider = () => {
    const w = range.to - range.from;
    app.set(range.live ? { from: `now-${Math.round(w / 30)}m`, at: "" } : { from: time.iso(Math.round(range.from - w / 2)), to: time.iso(Math.min(Math.round(range.to + w / 2), Math.floor(Date.now() / 1000))), at: "" });
  };
  const option = (value, text, chosen) => { const o = h("option", { value }, text); o.selected = chosen; return o; };
  replace($("controls"),
    h("button", { type: "button", "aria-label": "Earlier", title: "Earlier", data: { key: "earlier" }, on: { click: shift(-1) } }, "‹"),
    h("select", { "aria-label": "Time range", data: { key: "range" }, on: { change: (e) => app.set(e.target.value ? { from: `now-${e.target.value}`, to: "now", at: "" } : { from: time.iso(range.from), to: time.iso(range.to), at: "" }) } },
      time.presets.map(([p, text]) => option(p, `Last ${text}`, p === preset)),
      preset && !known && option(preset, `Last ${format.duration(range.to - range.from)}`, true),
      option("", "From … to …", !preset)),
    !preset && h("span", { class: "between" }, pick("from"), pick("to")),
    h("button", { type: "button", "aria-label": "Later", title: "Later", data: { key: "later" }, on: { click: shift(1) } }, "›"),
    h("button", { type: "button", "aria-label": "Twice the time range", title: "Twice the time range", data: { key: "wider" }, on: { click: wider } }, "⤢"),
    h("select", { "aria-label": "Refresh", title: "Refresh", data: { key: "refresh" }, on: { change: (e) => app.set({ refresh: e.target.value }) } },
      time.refreshes.map(([r, text]) => option(r, `↻ ${text}`, r === state.refresh)),
      !time.refreshes.some(([r]) => r === state.refresh) && option(state.refresh, `↻ ${state.refresh}`, true)),
    h("button", { type: "button", "aria-label": `Colours: ${document.documentElement.dataset.theme}`, title: "Light, dark or as the system", data: { key: "theme" }, on: { click: () => globalThis.nextTheme() } }, { auto: "◐", light: "☼", dark: "☾" }[document.documentElement.dataset.theme]),
    h("button", { type: "button", "aria-label": "Help", title: "Help ( ? )", data: { key: "help" }, on: { click: help } }, "?"));
}

function footer() {
  replace($("footer"), h("span", null, "asks ", code(app.config.query_url)), h("span", null, `${format.fullTime(app.range.from)} – ${format.fullTime(app.range.to)}`), h("span", null, app.range.live && app.state.refresh !== "0" ? `refreshed every ${format.duration(time.span(app.state.refresh))}` : "not refreshed"));
}

function help() {
  const dialog = $("help"), key = (k, what) => h("tr", null, h("th", { scope: "row" }, k.split(" ").map((x) => h("kbd", null, x))), h("td", null, what));
  replace(dialog, h("h2", { id: "help-title" }, "Help"),
    h("table", null, h("tbody", null, key("1 2 3 4 5 6", "promises, heatmap, violations, throughput, GPUs, GPU memory"), key("/", "find a label"), key("r", "refresh now"), key("t", "light, dark, as the system"), key("← → ↑ ↓", "move in the heatmap, and in a table of throughput"), key("Enter", "open the cell"), key("Esc", "leave a field, or go back from a cell"), key("?", "this help"))),
    h("p", null, "Drag over a chart to look closer. The address of the page holds all that is chosen: share it."),
    h("p", null, ["violated", "at_risk", "ok", "no_data"].map((s) => [badge(s), " "]), "are the verdicts on the window that closed last."),
    h("p", null, "At risk: the resolution of the input cannot tell whether the promise is kept, or the error budget is spent too fast. Budget left is of the SLO's whole time window, and of what was observed of it."),
    h("form", { method: "dialog" }, h("button", { type: "button", on: { click: () => dialog.close() } }, "Close")));
  dialog.showModal();
}

addEventListener("popstate", arrive);
addEventListener("restyle", () => {
  controls();
  if (view?.restyle) view.restyle();
  else load();
});
document.addEventListener("click", (e) => {
  const a = e.target.closest("a[href^='?']");
  if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  e.preventDefault();
  app.go(a.getAttribute("href"));
});
document.addEventListener("keydown", (e) => {
  if (e.metaKey || e.ctrlKey || e.altKey) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  if ($("help").open) return;
  const tab = tabs[Number(e.key) - 1];
  if (tab) document.querySelector(`#views [data-key="${tab[0]}"]`)?.click();
  else if (e.key === "/") document.getElementById("find")?.focus();
  else if (e.key === "r") load();
  else if (e.key === "t") globalThis.nextTheme();
  else if (e.key === "?") help();
  else if (e.key === "Escape" && app.state.view === "cell") app.go(url.write({ ...app.state, view: "heatmap", slo_id: "", d: {}, at: "" }));
  else return;
  e.preventDefault();
});

try {
  app.config = await (await fetch("config.json")).json();
} catch {
  // the first query says what is wrong
}
tabsFor();
arrive();
