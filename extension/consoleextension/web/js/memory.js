// SPDX-License-Identifier: Apache-2.0
// GPU memory: who leaks, how fast, why, how that is seen, which promises it will break, and whose the memory is over time.

import { h, replace, code, empty, emptyView } from "./dom.js";
import { explain } from "./causes.js";
import { chart } from "./chart.js";
import * as format from "./format.js";
import { apart, byIdentity, gpuOf, label, named, present, program, short, who } from "./gpu.js";
import { guarded } from "./guarded.js";
import { find, leaking, leaks, metrics, perHour, placeOf, unjudged } from "./leaks.js";
import { badge, field, stateStrips, table } from "./parts.js";
import { stateOf } from "./palette.js";
import { select } from "./prom.js";
import { write } from "./state.js";
import * as time from "./time.js";

const mostGPUs = 6, mostProcesses = 6, mostRows = 100; // charts, lines in one and rows; what leaks and what is most comes first

const parts = Object.fromEntries(Object.entries({
  used: "hw.gpu.memory.usage", limit: "hw.gpu.memory.limit", reserved: "nvidia.gpu.memory.reserved", unattributed: "nvidia.gpu.memory.unattributed",
  process: "nvidia.gpu.process.memory.usage", live: "cuda.memory.live",
}).map(([key, name]) => [key, named(name)]));

export function mount(root) {
  return {
    async update(app, client) {
      if (!present(app.names)) return replace(root, nothing());
      const grid = time.grid(app.range, 240, 5), over = async (re) => {
        const name = find(app.names, re);
        return name ? (await client.range(select(name), grid, 2000)).series : [];
      };
      const [all, open, states, rates, ends, requests, firsts, guard, ...seen] = await Promise.all([
        leaks(app, client), unjudged(app, client), over(metrics.state), over(metrics.rate), over(metrics.end), over(metrics.perRequest), over(metrics.first), guarded(app, client, grid),
        ...Object.values(parts).map(over),
      ]);
      const times = Array.from({ length: Math.floor((grid.to - grid.from) / grid.step + 1e-6) + 1 }, (_, i) => grid.from + i * grid.step);
      const memory = Object.fromEntries(Object.keys(parts).map((key, i) => [key, seen[i]])), chosen = app.state.d.gpu ?? "", of = (m) => !chosen || gpuOf(m) === chosen;
      const shown = all.filter((p) => of(p.metric)), suspects = leaking(shown), held = latestBy(memory.process, memory.unattributed, memory.live);
      const zoom = (from, to) => app.set({ from: time.iso(Math.round(from)), to: time.iso(Math.round(to)) });
      replace(root, summary(shown, memory, all.length > 0, open), chooser(app, memory, all, chosen),
        suspects.map((p) => card(app, p, held.get(p.id))),
        !find(app.names, metrics.state) && empty("Nobody looks for leaks here", "Give the metrics of the GPUs, and of the engines on them, to the gpu_leak connector, and its results to this backend: builtin:all-in-one and builtin:gateway do. Without it, memory is shown and not judged."),
        guard && h("section", null, h("h2", null, "What gpu_guard did in this range"), guard),
        stateStrips("Leaks over time", times, byIdentity(states.filter((x) => of(x.metric)), "memory of", "state", (x) => x.name !== "ok", 12)),
        h("div", { class: "columns" }, growing(suspects, memory, times, zoom), devices(memory, all, of).map((gpu) => device(gpu, memory, times, zoom)),
          history("How much it grows in an hour", hourly(rates), "bytes", times, of, zoom), history("When nothing is left", ends, "seconds", times, of, zoom),
          perRequest(requests, firsts, times, of, zoom)),
        shown.length > 0 && h("section", null, h("h2", null, "All that is judged"), table("All that is judged", columns(held), shown.slice(0, mostRows)),
          shown.length > mostRows && h("p", { class: "muted small" }, `and ${shown.length - mostRows} more: choose a GPU`)));
    },
  };
}

const nothing = () => emptyView("No GPU memory is read", h("p", null, "There are no metrics of GPUs in this time range. What it takes:"),
  h("ol", null, h("li", null, "a machine with an NVIDIA GPU and its driver: ", code("nvidia-smi"), " lists it"),
    h("li", null, "the ", code("nvidia_gpu"), " receiver on it, which builtin:all-in-one and builtin:agent have. In a container it needs the driver's libraries: ", code("--gpus all -e NVIDIA_DRIVER_CAPABILITIES=utility")),
    h("li", null, "the ", code("gpu_leak"), " connector behind it, which says what leaks")));

const last = (values) => values[values.findLastIndex(Number.isFinite)];

/** What each place holds now: of the first list that knows. */
function latestBy(...lists) {
  const by = new Map();
  for (const list of lists) for (const { metric, values } of list) if (!by.has(placeOf(metric))) by.set(placeOf(metric), last(values));
  return by;
}

const whyOpen = { young: "seen for too short a time", calls_missed: "calls were missed, so what is allocated is not known" };

function summary(shown, memory, judged, open) {
  const leak = shown.filter((p) => p.state === "leaking").length, suspect = shown.filter((p) => p.state === "suspect").length;
  const gpus = new Set(Object.values(memory).flat().map((x) => gpuOf(x.metric)).filter(Boolean)).size, processes = new Set(memory.process.map((x) => placeOf(x.metric))).size;
  const title = leak > 0 ? `${format.plural(leak, "leak")} of GPU memory` : suspect > 0 ? "A leak is suspected" : judged ? "Nothing leaks" : "GPU memory";
  return h("section", { class: "summary" }, h("h1", null, title),
    h("p", { class: "muted" }, [gpus > 0 && format.plural(gpus, "GPU"), processes > 0 && `${format.plural(processes, "process", "processes")} on them`, leak > 0 && suspect > 0 && `${suspect} more suspected`].filter(Boolean).join(", ")),
    Object.entries(open).sort().map(([reason, n]) => h("p", { class: "muted" }, `${n} not judged: ${whyOpen[reason] ?? reason}`)));
}

/** A GPU, or all. */
function chooser(app, memory, all, chosen) {
  const ids = [...new Set([...memory.used, ...memory.process, ...all].map((x) => gpuOf(x.metric)).filter(Boolean))].sort();
  if (ids.length < 2 && !chosen) return null;
  const option = (value, text) => { const o = h("option", { value }, text); o.selected = value === chosen; return o; };
  return h("div", { class: "filters tools", role: "search", "aria-label": "Filters" }, field("GPU", h("select", { data: { key: "gpu" }, on: { change: (e) => app.set({ d: e.target.value ? { gpu: e.target.value } : {} }) } },
    option("", `all ${ids.length}`), [...new Set([...ids, ...(chosen ? [chosen] : [])])].map((id) => option(id, short(id))))));
}

/** All there is to say of a leak. */
function card(app, p, bytes) {
  const whose = program(p.metric) ?? (p.causes.includes("device_grows") ? "memory of the device" : "memory of no visible process"), gpu = gpuOf(p.metric);
  const facts = [
    ["grows by", p.rate > 0 ? perHour(p.rate) : "–"],
    ["nothing is left in", Number.isFinite(p.end) ? h("span", { class: "over" }, format.duration(p.end)) : "–"],
    bytes !== undefined && ["holds", format.bytes(bytes)],
    p.perRequest !== undefined && ["takes for a request", format.bytes(p.perRequest), p.first !== undefined && ["in its first hour ", format.bytes(p.first), p.perRequest > p.first * 1.005 && h("span", { class: "over" }, `, now ${format.signed(p.perRequest / p.first - 1)}`)]],
  ].filter(Boolean);
  return h("article", { class: "note leak", "aria-label": `Leak of ${who(p.metric)}` },
    h("h2", null, badge(p.state), " ", whose, gpu && h("span", { class: "muted" }, ` on ${short(gpu)}`)),
    h("dl", { class: "facts" }, facts.map(([term, big, small]) => h("div", null, h("dt", null, term), h("dd", null, h("span", { class: "big" }, big), small && h("div", { class: "small" }, small))))),
    p.causes.map((c) => why(explain(c, label(p.metric, "process_pid") ?? "", gpu))),
    p.causes.length === 0 && h("p", { class: "muted" }, "No rule knows why yet. What the process allocates (cuda_memory) and what the application makes and releases (log events) tell more."),
    endangered(app, p));
}

const why = ({ name, text, verify }) => [
  h("p", null, h("b", null, `Cause: ${name}. `), text ?? "By a rule of your own: the event gpu.leak.opened has its text, and the command that shows it."),
  verify && h("div", null, h("p", { class: "small" }, "To see it:"), h("pre", { class: "command", tabindex: "0", "aria-label": "Command" }, verify))];

function endangered(app, p) {
  if (p.breaks.length === 0) return p.state === "leaking" ? h("p", { class: "muted" }, "Which promises it will break is not known: that takes the catalog in gpu_leak, and metrics of the engine that say its process, pod, container or GPU.") : null;
  return [h("p", null, h("b", null, "It will break")),
    h("ul", { class: "inside" }, p.breaks.map(({ id, within }) => h("li", null,
      h("a", { href: write({ ...app.state, view: "promises", f: { slo_id: id }, d: {}, q: "" }), data: { key: `breaks ${id}` } }, id), h("span", { class: "over" }, within > 0 ? ` in ${format.duration(within)}` : " is broken already"))))];
}

/** The memory of what leaks, by itself: against all of the GPU it is long hardly seen to grow. */
function growing(suspects, memory, times, zoom) {
  const ids = new Set(suspects.map((p) => p.id)), of = (list) => list.filter((x) => ids.has(placeOf(x.metric)));
  const some = [...of(memory.process), ...of(memory.unattributed)].slice(0, mostProcesses);
  return some.length > 0 && chart({ title: "What grows", times, unit: "bytes", height: 200, onZoom: zoom, lines: some.map((x, i) => ({ label: program(x.metric) ?? `of no process on ${short(gpuOf(x.metric))}`, values: x.values, color: colors[i % colors.length], width: 2 })) });
}

/** The GPUs that are drawn: what leaks and what is fullest first. */
function devices(memory, all, of) {
  const ids = [...new Set([...memory.used, ...memory.process].filter((x) => of(x.metric)).map((x) => gpuOf(x.metric)))];
  const rank = (id) => Math.max(0, ...all.filter((p) => gpuOf(p.metric) === id).map((p) => stateOf(p.state).rank));
  const used = new Map(memory.used.map((x) => [gpuOf(x.metric), last(x.values) ?? 0])), full = (id) => used.get(id) ?? 0;
  return ids.sort((a, b) => rank(b) - rank(a) || full(b) - full(a) || (a < b ? -1 : 1)).slice(0, mostGPUs).map((id) => ({ id, of: ids.length }));
}

const colors = ["--line-1", "--line-3", "--line-4", "--line-2", "--line-6"];

/** Whose the memory of a GPU is over time. */
function device({ id }, memory, times, zoom) {
  const here = (list) => list.filter((x) => gpuOf(x.metric) === id), line = (key, name, color, more) => here(memory[key]).slice(0, 1).map((x) => ({ label: name, values: x.values, color, ...more }));
  const processes = here(memory.process).sort((a, b) => (last(b.values) ?? 0) - (last(a.values) ?? 0)), few = processes.slice(0, mostProcesses), name = apart(few);
  const live = here(memory.live).slice(0, mostProcesses), allocated = apart(live);
  return chart({ title: `Memory of ${short(id) || "all GPUs"}`, times, unit: "bytes", height: 200, onZoom: zoom, summary: processes.length > few.length ? `the ${few.length} largest of ${processes.length} processes` : "", lines: [
    ...few.map((x, i) => ({ label: program(x.metric) ?? name(x.metric), values: x.values, color: colors[i % colors.length], width: 2 })),
    ...live.map((x, i) => ({ label: `allocated by ${program(x.metric) ?? allocated(x.metric)}`, values: x.values, color: colors[i % colors.length], dash: [2, 3] })),
    ...line("unattributed", "of no process", "--line-5", { dash: [6, 3] }), ...line("reserved", "reserved by the driver", "--muted", { dash: [2, 4] }),
    ...line("used", "in use", "--series-observed", { width: 1.5 }), ...line("limit", "all there is", "--series-objective", { dash: [12, 4] }),
  ] });
}

const hourly = (rates) => rates.map((x) => ({ ...x, values: x.values.map((v) => 3600 * v) }));

/** A metric of what leaks, over time. */
function history(title, series, unit, times, of, zoom) {
  const some = series.filter((x) => of(x.metric) && x.values.some((v) => Number.isFinite(v) && v !== 0)).sort((a, b) => (last(b.values) ?? 0) - (last(a.values) ?? 0)).slice(0, 12);
  return some.length > 0 && chart({ title, times, unit, height: 180, onZoom: zoom, lines: some.map((x, i) => ({ label: who(x.metric), values: x.values, color: colors[i % colors.length], dash: i < colors.length ? [] : [6, 3] })) });
}

/** Memory of a request over time, beside that of the first hour. */
function perRequest(now, first, times, of, zoom) {
  const some = now.filter((x) => of(x.metric)).sort((a, b) => (last(b.values) ?? 0) - (last(a.values) ?? 0)).slice(0, mostProcesses), before = new Map(first.map((x) => [placeOf(x.metric), x.values]));
  return some.length > 0 && chart({ title: "Memory for a request", times, unit: "bytes", height: 180, onZoom: zoom, lines: some.flatMap((x, i) => [
    { label: who(x.metric), values: x.values, color: colors[i % colors.length] },
    ...(before.has(placeOf(x.metric)) ? [{ label: `${who(x.metric)}, first hour`, values: before.get(placeOf(x.metric)), color: colors[i % colors.length], dash: [2, 3] }] : [])]) });
}

const columns = (held) => [
  { name: "State", cell: (p) => badge(p.state) },
  { name: "Process", cell: (p) => program(p.metric) ?? h("span", { class: "muted" }, "of no visible process") },
  { name: "GPU", cell: (p) => short(gpuOf(p.metric)) || "–" },
  { name: "Holds", class: "number", cell: (p) => (held.get(p.id) === undefined ? "–" : format.bytes(held.get(p.id))) },
  { name: "Grows by", class: "number", cell: (p) => (p.rate > 0 && p.state !== "ok" ? perHour(p.rate) : "–") },
  { name: "Nothing left in", class: "number", cell: (p) => (Number.isFinite(p.end) ? format.duration(p.end) : "–") },
  { name: "For a request", class: "number", cell: (p) => (p.perRequest === undefined ? "–" : format.bytes(p.perRequest)) },
];
