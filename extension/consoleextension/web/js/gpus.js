// SPDX-License-Identifier: Apache-2.0
// GPUs over time, and memory that leaks: shown when there are such metrics.

import { h, replace, empty } from "./dom.js";
import { chart } from "./chart.js";
import * as format from "./format.js";
import * as time from "./time.js";
import { select } from "./prom.js";
import { stateStrip } from "./parts.js";

const most = 12; // lines in a chart; the highest are shown

// The unit suffix that a backend may have appended is left open.
const panels = [
  { title: "GPU memory used", re: /^hw[._]gpu[._]memory[._]usage(_bytes)?$/, unit: "bytes" },
  { title: "Memory of processes", re: /^nvidia[._]gpu[._]process[._]memory[._]usage(_bytes)?$/, unit: "bytes" },
  { title: "Memory that no process accounts for", re: /^nvidia[._]gpu[._]memory[._]unattributed(_bytes)?$/, unit: "bytes" },
  { title: "CUDA memory in use", re: /^cuda[._]memory[._]live(_bytes)?$/, unit: "bytes" },
  { title: "Time to exhaustion", re: /^gpu[._]leak[._]time[._]to[._]exhaustion(_seconds)?$/, unit: "seconds" },
  { title: "Leak rate", re: /^gpu[._]leak[._]rate(_bytes_per_second)?$/, unit: "bytes_per_second" },
  { title: "Memory per request", re: /^gpu[._]memory[._]per[._]request.*$/, unit: "bytes" },
  { title: "GPU utilization", re: /^hw[._]gpu[._]utilization(_ratio)?$/, unit: "ratio" },
  { title: "Streaming multiprocessors active", re: /^nvidia[._]gpu[._]sm[._]active(_ratio)?$/, unit: "ratio" },
  { title: "Temperature", re: /^hw[._]temperature(_celsius)?$/, unit: "°C" },
  { title: "Power", re: /^hw[._]power(_watts)?$/, unit: "W" },
];
const leak = /^gpu[._]leak[._]state$/;
const colors = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];
const dashes = [[], [6, 3]];

export const present = (names) => names.all.some((n) => /^(hw|nvidia)[._]gpu[._]|^gpu[._]leak[._]|^cuda[._]memory[._]/.test(n));

export function mount(root) {
  return {
    async update(app, client) {
      if (!present(app.names)) return replace(root, empty("No GPU metrics", "The nvidia_gpu receiver makes them; there are none in this time range."));
      const grid = time.grid(app.range, 240);
      const found = panels.map((p) => ({ ...p, name: app.names.all.find((n) => p.re.test(n)) })).filter((p) => p.name);
      const state = app.names.all.find((n) => leak.test(n));
      const [leaks, ...figures] = await Promise.all([state ? leakStrips(client, state, grid) : [], ...found.map((p) => panel(app, client, p, grid))]);
      replace(root, h("section", { class: "summary" }, h("h1", null, "GPUs")), leaks, h("div", { class: "columns" }, figures));
    },
  };
}

const ignored = /^(__name__|job|instance|service[._]instance[._]id|state|otel.*|telemetry.*)$/;
const identity = (metric) => Object.fromEntries(Object.entries(metric).filter(([k]) => !ignored.test(k)));

/** Labels that tell series apart; what all of them have is left out. */
function apart(series) {
  const all = series.map((x) => identity(x.metric)), keys = [...new Set(all.flatMap(Object.keys))];
  const telling = keys.filter((k) => new Set(all.map((m) => m[k])).size > 1);
  return (metric) => telling.map((k) => metric[k]).filter(Boolean).join(" · ") || metric["hw_id"] || metric["hw.id"] || "value";
}

async function panel(app, client, { title, name, unit }, grid) {
  const { times, series } = await client.range(select(name), grid, 500);
  const height = (x) => x.values.reduce((m, v) => (v > m ? v : m), -Infinity);
  const shown = series.map((x) => ({ ...x, top: height(x) })).sort((a, b) => b.top - a.top).slice(0, most), label = apart(shown);
  const lines = shown.map((x, i) => ({ label: label(x.metric), values: x.values, color: colors[i % colors.length], dash: dashes[Math.floor(i / colors.length) % 2] }));
  return chart({ title, times, lines, unit, height: 180, summary: series.length > most ? `the ${most} highest of ${series.length}` : "",
    onZoom: (from, to) => app.set({ from: time.iso(Math.round(from)), to: time.iso(Math.round(to)) }) });
}

async function leakStrips(client, name, grid) {
  const { times, series } = await client.range(select(name), grid, 500);
  const by = new Map();
  for (const x of series) {
    const key = JSON.stringify(identity(x.metric));
    if (!by.has(key)) by.set(key, []);
    by.get(key).push({ name: x.metric.state, values: x.values });
  }
  const bad = (xs) => xs.some((x) => x.name !== "ok" && x.values.includes(1));
  return [...by].sort(([, a], [, b]) => bad(b) - bad(a)).slice(0, most).map(([key, xs]) => stateStrip(`Leak: ${format.labels(JSON.parse(key))}`, times, xs));
}
