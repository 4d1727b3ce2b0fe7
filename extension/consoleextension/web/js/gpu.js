// SPDX-License-Identifier: Apache-2.0
// GPUs, and the processes on them, as people name them.

import * as format from "./format.js";

/** A metric by its name in dots; a backend may have underscores, and append unit and type. */
export const named = (name) => new RegExp(`^${name.replace(/[._]/g, "[._]")}(_(bytes|seconds|ratio|celsius|watts|hertz|joules|total|bytes_total|bytes_per_second|bytes_per_request|ratio_total))?$`);

export const present = (names) => names.all.some((n) => /^(hw|nvidia)[._]gpu[._]|^gpu[._]leak[._]|^cuda[._]memory[._]/.test(n));

/** A label by its name with underscores, which a backend may have left in dots. */
export const label = (metric, name) => metric[name] ?? metric[name.replaceAll("_", ".")];

const ignored = /^(__name__|job|instance|service[._]instance[._]id|state|hw[._]state|reason|nvidia[._]gpu[._]throttle[._]reason|cause|hw[._]type|otel.*|telemetry.*)$/;
export const identity = (metric) => Object.fromEntries(Object.entries(metric).filter(([k]) => !ignored.test(k)));
export const gpuOf = (metric) => label(metric, "hw_id") ?? "";
export const pidOf = (metric) => label(metric, "process_pid") ?? "";

/** A UUID by its beginning, as nvidia-smi -L is read. */
export const short = (value) => value.replace(/^((?:GPU|MIG)-[0-9a-f]{8})-[0-9a-f-]{20,}$/, "$1");

/** A process by itself: vllm (4711); undefined of memory that no process accounts for. */
export function program(metric) {
  const name = label(metric, "process_executable_name") ?? (pidOf(metric) && "process");
  return name ? `${name}${pidOf(metric) ? ` (${pidOf(metric)})` : ""}` : undefined;
}

/** vllm (4711) on GPU-2. */
export function who(metric) {
  const name = program(metric), gpu = gpuOf(metric);
  return [name, gpu && `${name ? "on " : ""}${short(gpu)}`].filter(Boolean).join(" ") || format.labels(identity(metric)) || "GPU";
}

/** Labels that tell series apart; what all of them have is left out. */
export function apart(series) {
  const all = series.map((x) => identity(x.metric)), keys = [...new Set(all.flatMap(Object.keys))];
  const telling = keys.filter((k) => new Set(all.map((m) => m[k])).size > 1).sort((a, b) => /^hw[._]id$/.test(b) - /^hw[._]id$/.test(a));
  return (metric) => telling.map((k) => metric[k]).filter(Boolean).map(short).join(" · ") || short(gpuOf(metric)) || "value";
}

/** State sets by what they are of, those that were ever bad: rows of stateStrips. */
export function byIdentity(series, what, key, isBad, most) {
  const by = new Map();
  for (const x of series) {
    const of = JSON.stringify(identity(x.metric));
    if (!by.has(of)) by.set(of, { name: `${what} ${who(x.metric)}`, series: [] });
    by.get(of).series.push({ name: label(x.metric, key), values: x.values });
  }
  const bad = ({ series }) => series.some((x) => isBad(x) && x.values.includes(1));
  return [...by.values()].filter(bad).slice(0, most);
}
