// SPDX-License-Identifier: Apache-2.0
// GPUs over time: what is broken or throttled, what leaks in a line, and the curves.

import { h, replace, emptyView } from "./dom.js";
import { chart } from "./chart.js";
import * as format from "./format.js";
import * as time from "./time.js";
import { select } from "./prom.js";
import { byIdentity, apart, gpuOf, label, named, present, short, who } from "./gpu.js";
import { leakLine, leaking, leaks } from "./leaks.js";
import { chips, stateStrips, table } from "./parts.js";
import { rises } from "./opened.js";
import { xids } from "./xid.js";

const most = 12; // lines in a chart and rows of states; the highest and worst are shown

// rate is of a counter; limit is drawn as a line of its own.
const panels = [
  { title: "GPU memory used", name: "hw.gpu.memory.usage", unit: "bytes", limit: "hw.gpu.memory.limit" },
  { title: "GPU utilization", name: "hw.gpu.utilization", unit: "ratio" },
  { title: "Memory controller utilization", name: "nvidia.gpu.memory_controller.utilization", unit: "ratio" },
  { title: "Streaming multiprocessors active", name: "nvidia.gpu.sm.active", unit: "ratio" },
  { title: "Tensor cores active", name: "nvidia.gpu.tensor.active", unit: "ratio" },
  { title: "DRAM active", name: "nvidia.gpu.dram.active", unit: "ratio" },
  { title: "Temperature", name: "hw.temperature", unit: "°C", limit: "hw.temperature.limit" },
  { title: "Power", name: "hw.power", unit: "W" },
  { title: "Clock", name: "nvidia.gpu.clock.frequency", unit: "hertz" },
  { title: "NVLink", name: "nvidia.gpu.nvlink.io", unit: "bytes_per_second", rate: true },
  { title: "PCIe", name: "hw.gpu.io", unit: "bytes_per_second", rate: true },
];
const [hwStatus, throttle, xid, errors] = ["hw.status", "nvidia.gpu.throttle.reason", "nvidia.gpu.xid", "hw.errors"].map(named);
const colors = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"], dashes = [[], [6, 3], [2, 3]];

export function mount(root) {
  return {
    async update(app, client) {
      if (!present(app.names)) return replace(root, emptyView("No GPU metrics", "The nvidia_gpu receiver makes them, where there is an NVIDIA GPU and its driver; there are none in this time range."));
      const find = (re) => app.names.all.find((n) => re.test(n)), grid = time.grid(app.range, 240);
      const over = async (re) => (find(re) ? client.range(select(find(re)), grid, 2000) : { times: [], series: [] });
      const found = panels.map((p) => ({ ...p, metric: find(named(p.name)), limits: p.limit && find(named(p.limit)) })).filter((p) => p.metric);
      const [lost, status, throttled, broken, loaded] = await Promise.all([
        leaks(app, client), over(hwStatus), over(throttle), faults(client, find, grid),
        Promise.all(found.map(async (p) => ({ ...p, ...(await series(client, p, grid)) }))),
      ]);
      const color = colorOf(loaded.flatMap((p) => p.series)), suspects = leaking(lost);
      replace(root, summary(suspects, status, loaded), suspects.map((x) => leakLine(app, x)),
        stateStrips("States over time", status.times.length ? status.times : throttled.times, [
          ...byIdentity(status.series, "health of", "hw_state", (x) => x.name !== "ok", most), ...reasons(throttled.series)]),
        broken.length > 0 && h("section", null, h("h2", null, "Faults in this range"), table("Faults", faultColumns, broken)),
        h("div", { class: "columns" }, loaded.map((p) => panel(app, p, color))));
    },
  };
}

/** One colour for each GPU, the same in every chart. */
function colorOf(all) {
  const ids = [...new Set(all.map((x) => gpuOf(x.metric)))].sort();
  return (metric) => { const i = ids.indexOf(gpuOf(metric)); return [colors[i % colors.length], Math.floor(i / colors.length)]; };
}

async function series(client, { metric, rate, limits }, grid) {
  const query = rate ? `rate(${select(metric)}[${Math.max(4 * grid.step, 60)}s])` : select(metric);
  const kind = limits?.includes(".") ? '"hw.limit_type"' : "hw_limit_type";
  const [answer, bounds] = await Promise.all([client.range(query, grid, 500), limits ? client.range(`max by (${kind}) (${select(limits)})`, grid, 20) : undefined]);
  return { times: answer.times, series: answer.series, bounds: bounds?.series ?? [] };
}

function panel(app, { title, unit, times, series, bounds }, color) {
  const height = (x) => x.values.reduce((m, v) => (v > m ? v : m), -Infinity);
  const shown = series.map((x) => ({ ...x, top: height(x) })).sort((a, b) => b.top - a.top).slice(0, most), name = apart(shown), used = new Map();
  const lines = shown.map((x) => {
    const [line, round] = color(x.metric), nth = used.get(line) ?? 0;
    used.set(line, nth + 1);
    return { label: name(x.metric), values: x.values, color: line, dash: dashes[(round + nth) % dashes.length] };
  });
  const limits = bounds.map((x) => ({ label: label(x.metric, "hw_limit_type") ?? "limit", values: x.values, color: "--series-objective", dash: [12, 4] }));
  return chart({ title, times, lines: [...lines, ...limits], unit, height: 180, summary: series.length > most ? `the ${most} highest of ${series.length}` : "",
    onZoom: (from, to) => app.set({ from: time.iso(Math.round(from)), to: time.iso(Math.round(to)) }) });
}

const quiet = /idle|none|applications?_clocks?/; // reasons that are no trouble

/** A row for each reason that ever held a GPU back. */
function reasons(series) {
  const reasonOf = (m) => label(m, "nvidia_gpu_throttle_reason") ?? m.reason ?? m.state ?? "throttled";
  return series.filter((x) => x.values.includes(1) && !quiet.test(reasonOf(x.metric))).slice(0, most)
    .map((x) => ({ name: `${who(x.metric)} throttled: ${reasonOf(x.metric).replaceAll("_", " ")}`, series: [{ name: "active", values: x.values }] }));
}

function summary(suspects, status, loaded) {
  const gpus = new Set([...loaded.flatMap((p) => p.series), ...status.series].map((x) => gpuOf(x.metric)).filter(Boolean)).size, leaks = suspects.filter((x) => x.state === "leaking").length;
  const failed = new Set(status.series.filter((x) => ["failed", "degraded", "predicted_failure"].includes(label(x.metric, "hw_state")) && x.values.at(-1) === 1).map((x) => gpuOf(x.metric))).size;
  const said = [failed > 0 && `${format.plural(failed, "GPU")} not healthy`, leaks > 0 && `${format.plural(leaks, "process", "processes")} ${leaks === 1 ? "leaks" : "leak"} memory`].filter(Boolean).join(", ");
  return h("section", { class: "summary" }, h("h1", null, said || (suspects.length > 0 ? "A leak is suspected" : gpus > 0 ? `${format.plural(gpus, "GPU")}, nothing leaks` : "GPUs")),
    said && gpus > 0 && h("p", { class: "muted" }, `of ${format.plural(gpus, "GPU")}`));
}

/** Xids and other errors that were counted in the range: Xids first, then what happened most. */
async function faults(client, find, grid) {
  const all = await Promise.all([[xid, "nvidia_xid_code"], [errors, "error_type"]].map(async ([re, key]) => {
    if (!find(re)) return [];
    const { times, series } = await client.range(select(find(re)), grid, 2000);
    return series.map(({ metric, values }) => ({ metric, what: label(metric, key) ?? "error", xid: re === xid, risen: rises(values) })).filter((f) => f.risen.length > 0)
      .map((f) => ({ ...f, n: f.risen.reduce((sum, r) => sum + r.by, 0), time: times[f.risen.at(-1).index] }));
  }));
  return all.flat().sort((a, b) => b.xid - a.xid || b.n - a.n).slice(0, 50);
}

const faultColumns = [
  { name: "Times", class: "number", cell: (f) => f.n.toLocaleString("en") },
  { name: "Last", cell: (f) => format.time(f.time) },
  { name: "What", cell: (f) => [h("b", null, f.xid ? `Xid ${f.what}` : f.what), f.xid && xids[f.what] && ` ${xids[f.what]}`] },
  { name: "Where", cell: (f) => chips({ GPU: short(gpuOf(f.metric)) }) },
];
