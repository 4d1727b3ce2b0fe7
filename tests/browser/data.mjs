// SPDX-License-Identifier: Apache-2.0
// Six hours of a platform whose canary is worse in one region, on one device type, since two hours, while all else is fine.

import { Batch } from "./otlp.mjs";

export const hours = 6;
export const guilty = { "cloud.region": "eu-west-1", "device.type": "H100", "model.version": "v2" };
export const guiltyTrace = "4bf92f3577b34da6a3ce929d0e0e4736";

const regions = ["eu-west-1", "us-east-1", "us-west-2", "ap-south-1"], devices = ["H100", "H200", "L40S"], versions = ["v1", "v2"];

/** The same numbers each time. */
function random(seed) {
  return () => ((seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32);
}

const labels = (id, cls, target, unit) => ({ slo_id: id, service: id.split(":")[1], slo_class: cls, target: target.toFixed(4), unit });
const stateSet = (batch, name, states, attrs, t, current) => states.forEach((state) => batch.gauge(name, { ...attrs, state }, t, state === current ? 1 : 0));
const verdicts = ["ok", "at_risk", "violated", "no_data"], drifts = ["ok", "drifting", "degraded", "insufficient_data"];

/** What of each promise without cells is seen over time: [labels, value at a share of the range]. */
const plain = [
  [labels("llm:chat:request-success:99.95", "availability", 0.9995, "ratio"), (x, r) => (x > 0.8 ? 0.9987 : 0.9998) + r() * 1e-4, (x) => (x > 0.8 ? "violated" : "ok"), (x) => Math.max(-0.31, 0.86 - x * (x > 0.8 ? 1.3 : 0.1)), (x) => (x > 0.8 ? 2.6 : 0.4)],
  [labels("llm:chat:output-tokens:p50", "throughput", 1800, "tokens_per_second"), (x, r) => 2100 + Math.sin(x * 9) * 90 + r() * 60, () => "ok", () => 0.93, () => 0.2],
  [labels("llm:search:time-per-output-token:p99", "latency", 0.05, "seconds"), (x, r) => 0.041 + x * 0.008 + r() * 0.002, (x) => (x > 0.9 ? "at_risk" : "ok"), (x) => 0.7 - x * 0.5, (x) => 0.6 + x],
  [labels("llm:search:e2e:p99", "latency", 6, "seconds"), (x, r) => 4.1 + Math.sin(x * 7) * 0.4 + r() * 0.3, () => "ok", () => 0.81, () => 0.3],
  [labels("llm:embed:kv-cache-use:p95", "saturation", 0.9, "ratio"), (x, r) => 0.61 + x * 0.14 + r() * 0.02, () => "ok", () => 0.97, () => 0.1],
];
const silent = labels("llm:embed:ttft:p95", "latency", 0.3, "seconds");
const ttft = labels("llm:chat:ttft:p95", "latency", 0.8, "seconds");

/** Sends the story to a Prometheus, minute by minute until a time. */
export async function story(prometheus, end, { skip = [] } = {}) {
  const r = random(7), begin = end - hours * 3600, cells = [];
  for (const region of regions) for (const device of devices) for (const version of versions) cells.push({ attrs: { "cloud.region": region, "device.type": device, "model.version": version }, base: 0.45 + r() * 0.2, events: [0, 0], opened: 0 });
  const events = plain.map(() => [0, 0]);
  for (let t = begin; t <= end; t += 60) {
    const batch = new Batch(), x = (t - begin) / (end - begin);
    plain.forEach(([l, value, state, left, burn], i) => {
      batch.gauge("slo.sli.value", l, t, value(x, r));
      batch.gauge("slo.objective", l, t, Number(l.target));
      stateSet(batch, "slo.state", verdicts, l, t, state(x));
      batch.gauge("slo.error_budget.remaining", l, t, left(x), "1");
      batch.gauge("slo.error_budget.coverage", l, t, 1, "1");
      batch.gauge("slo.sli.incomplete", l, t, l.slo_id === "llm:search:time-per-output-token:p99" && x > 0.9 ? 1 : 0);
      batch.gauge("slo.burn_rate", { ...l, window: "1h" }, t, burn(x), "1");
      batch.counter("slo.violations", { ...l, "slo.policy": `${l.service}-page` }, t, state(x) === "violated" && x > 0.83 ? 1 : 0, "{violation}");
      batch.counter("slo.sli.events", { ...l, outcome: "good" }, t, (events[i][0] += 400), "{event}");
    });
    stateSet(batch, "slo.state", verdicts, silent, t, "no_data");
    batch.gauge("slo.objective", silent, t, 0.3);
    batch.gauge("slo.error_budget.coverage", silent, t, 0.07, "1");
    for (const cell of cells) sendCell(batch, cell, t, x, r);
    gpus(batch, t, x, r);
    coupling(batch, t);
    batch.gauge("slo.evaluation.lag", {}, t, 32 + r() * 8, "s");
    for (const name of skip) for (const metric of [...batch.metrics.keys()]) if (metric.startsWith(name)) batch.metrics.delete(metric);
    await batch.send(prometheus);
  }
}

const isGuilty = (attrs) => Object.entries(guilty).every(([k, v]) => attrs[k] === v);

function sendCell(batch, cell, t, x, r) {
  const l = { ...ttft, ...cell.attrs }, bent = isGuilty(cell.attrs) && x > 0.66;
  const value = bent ? 1.12 + Math.min(0.12, (x - 0.66) * 0.5) + r() * 0.03 : cell.base + Math.sin(x * 6 + cell.base * 20) * 0.03 + r() * 0.03;
  const dynamic = bent ? 0.62 + Math.min(0.28, (x - 0.66) * 0.9) : cell.base + 0.02;
  batch.gauge("slo.sli.value", l, t, value);
  batch.gauge("slo.sli.bound", { ...l, bound: "lower" }, t, value * 0.98);
  batch.gauge("slo.sli.bound", { ...l, bound: "upper" }, t, value * 1.02);
  batch.gauge("slo.objective", l, t, 0.8);
  stateSet(batch, "slo.state", verdicts, l, t, bent ? "violated" : "ok");
  batch.gauge("slo.error_budget.remaining", l, t, bent ? 0.22 - (x - 0.66) : 0.95, "1");
  batch.gauge("slo.error_budget.coverage", l, t, 0.98, "1");
  batch.gauge("slo.burn_rate", { ...l, window: "1h" }, t, bent ? 7.2 : 0.2, "1");
  const trace = (n) => (n === 1 ? guiltyTrace : Array.from({ length: 32 }, () => Math.floor(r() * 16).toString(16)).join(""));
  const opened = bent && x > 0.7 ? 1 : 0;
  batch.counter("slo.violations", { ...l, "slo.policy": "chat-ttft-3x5m" }, t, opened, "{violation}", opened && !cell.opened ? [{ time: t - 30, value: 1.21, trace: trace(1) }] : []);
  cell.opened = opened;
  cell.events[0] += bent ? 70 : 98;
  cell.events[1] += bent ? 30 : 2;
  batch.counter("slo.sli.events", { ...l, outcome: "good" }, t, cell.events[0], "{event}");
  batch.counter("slo.sli.events", { ...l, outcome: "bad" }, t, cell.events[1], "{event}", bent && t % 600 === 0 ? [{ time: t - 7, value: value + 0.3, trace: trace(2) }] : []);
  batch.gauge("slo.drift.observed", l, t, value);
  batch.gauge("slo.drift.deviation", l, t, (value - 0.8) / 0.8, "1");
  batch.gauge("slo.drift.baseline", { ...l, baseline: "static" }, t, 0.8);
  batch.gauge("slo.drift.baseline", { ...l, baseline: "dynamic" }, t, dynamic);
  batch.gauge("slo.drift.baseline", { ...l, baseline: "frozen" }, t, cell.base + 0.015);
  batch.gauge("slo.drift.ratio", l, t, (dynamic - 0.8) / 0.8, "1");
  stateSet(batch, "slo.drift.state", drifts, l, t, bent ? (x > 0.7 ? "degraded" : "drifting") : "ok");
  if (bent) [["model.version", "v2", 0.81], ["device.type", "H100", 0.64], ["cloud.region", "eu-west-1", 0.7]].forEach(([dimension, v, part]) => batch.gauge("slo.drift.explanation", { ...ttft, dimension, value: v }, t, part, "1"));
  if (isGuilty(cell.attrs)) {
    const values = Array.from({ length: 100 }, () => Math.exp((r() + r() + r() - 1.5) * 0.5) * (bent && r() < 0.35 ? 1.15 : 0.42));
    batch.distribution("slo.sli.distribution", l, t - 60, t, values);
  }
}

function gpus(batch, t, x, r) {
  for (let i = 0; i < 4; i++) {
    const gpu = { "hw.id": `GPU-${i}` }, hot = i === 1 && x > 0.4 && x < 0.55;
    batch.gauge("hw.gpu.memory.usage", gpu, t, (i === 2 ? 42 + 31 * x : 44 + i + r()) * 2 ** 30, "By");
    batch.gauge("hw.gpu.memory.limit", gpu, t, 80 * 2 ** 30, "By");
    batch.gauge("nvidia.gpu.memory.reserved", gpu, t, 2 ** 29, "By");
    batch.gauge("nvidia.gpu.memory.unattributed", gpu, t, i === 2 ? 2 * 2 ** 30 : 0, "By");
    batch.gauge("hw.gpu.utilization", { ...gpu, "hw.gpu.task": "general" }, t, 0.55 + 0.2 * Math.sin(x * 8 + i) + r() * 0.1, "1");
    batch.gauge("hw.temperature", { ...gpu, "hw.type": "gpu" }, t, 58 + 4 * i + (hot ? 22 : 0) + r(), "Cel");
    batch.gauge("hw.power", { ...gpu, "hw.type": "gpu" }, t, 410 + 40 * Math.sin(x * 8 + i) + 10 * r(), "W");
    ["ok", "degraded", "failed", "predicted_failure"].forEach((s) => batch.gauge("hw.status", { ...gpu, "hw.type": "gpu", "hw.state": s }, t, s === (i === 3 && x > 0.9 ? "degraded" : "ok") ? 1 : 0, "1"));
    ["gpu_idle", "sw_power_cap", "hw_thermal_slowdown"].forEach((reason) => batch.gauge("nvidia.gpu.throttle.reason", { ...gpu, reason }, t, hot && reason === "hw_thermal_slowdown" ? 1 : 0, "1"));
    if (i === 3) batch.counter("nvidia.gpu.xid", { ...gpu, "nvidia.xid.code": "94" }, t, x > 0.9 ? 2 : x > 0.5 ? 1 : 0, "{error}");
  }
  const leak = { "hw.id": "GPU-2", "process.pid": "4711", "process.executable.name": "vllm" };
  stateSet(batch, "gpu.leak.state", ["ok", "suspect", "leaking", "plateau"], leak, t, x < 0.3 ? "ok" : x < 0.6 ? "suspect" : "leaking");
  batch.gauge("nvidia.gpu.process.memory.usage", leak, t, (40 + 31 * x) * 2 ** 30, "By");
  batch.gauge("gpu.memory.per_request", leak, t, (1.23 + 3.48 * x) * 2 ** 30, "By/{request}");
  batch.gauge("gpu.memory.per_request.first_hour", leak, t, 1.23 * 2 ** 30, "By/{request}");
  if (x > 0.6) {
    const end = (1.25 - x) * 6 * 3600;
    batch.gauge("gpu.leak.time_to_exhaustion", leak, t, end, "s");
    batch.gauge("gpu.leak.rate", leak, t, 1.5 * 2 ** 20, "By/s");
    ["not_returned", "unknown"].forEach((cause) => batch.gauge("gpu.leak.cause", { ...leak, cause }, t, cause === "not_returned" ? 1 : 0));
    for (const [slo_id, within] of [["llm:search:e2e:p99", end], ["llm:chat:output-tokens:p50", end / 2]]) batch.gauge("gpu.leak.slo.breaks_in", { ...leak, slo_id }, t, within, "s");
  }
  const flat = { "hw.id": "GPU-0", "process.pid": "4699", "process.executable.name": "vllm" };
  stateSet(batch, "gpu.leak.state", ["ok", "suspect", "leaking", "plateau"], flat, t, "ok");
  batch.gauge("nvidia.gpu.process.memory.usage", flat, t, 43 * 2 ** 30, "By");
  batch.gauge("gpu.leak.rate", flat, t, 0, "By/s");
  for (const [pid, reason] of [["4800", "young"], ["4801", "young"], ["4802", "calls_missed"], ["4803", "told_elsewhere"]]) {
    batch.gauge("gpu.leak.unjudged", { "hw.id": "GPU-1", "process.pid": pid, "process.executable.name": "vllm", reason }, t, 1);
  }
  batch.counter("otelcol_gpu_guard_actions", { extension: "gpu_guard", outcome: "not_ended", reason: "threshold", dry_run: "true" }, t, x > 0.95 ? 1 : 0, "{action}");
}

/** An engine whose throughput levels off, the earlier the longer the prompts are and the less of them is cached. */
function coupling(batch, t) {
  for (const [i, context] of ["<=1000", "1000-4000", "4000-16000", ">16000"].entries()) {
    for (const [j, hit] of ["<=0.25", "0.25-0.5", "0.5-0.75", ">0.75"].entries()) {
      const of = { model_name: "qwen2-72b", context, cache_hit: hit }, knee = 44 / 1.7 ** i * 1.25 ** j;
      for (let size = 1; size <= 128 / 2 ** i; size *= 2) batch.gauge("llm.throughput", { ...of, batch: `<=${size}` }, t, (52 * knee * size) / (knee + size) * 1.08 ** j, "{token}/s");
      if (i < 3) batch.gauge("llm.throughput.knee", of, t, knee, "{request}");
    }
  }
}

/** Many cells of one promise, five minutes apart; the one at index bad is worse in the last quarter. */
export async function crowd(prometheus, end, count, bad) {
  const r = random(11), windows = 48, base = Array.from({ length: count }, () => 0.3 + r() * 0.45);
  const tenant = (i) => ({ ...ttft, tenant: `tenant-${String(Math.floor(i / 20)).padStart(4, "0")}`, "cloud.region": regions[i % 4], "device.type": devices[Math.floor(i / 4) % 5] ?? `B${200 + (Math.floor(i / 4) % 5)}` });
  for (let w = windows - 1; w >= 0; w--) {
    const batch = new Batch(), t = end - w * 300;
    for (let i = 0; i < count; i++) {
      const value = i === bad && w < windows / 4 ? 1.3 : base[i] + r() * 0.04;
      batch.gauge("slo.drift.deviation", tenant(i), t, Number(((value - 0.8) / 0.8).toFixed(4)), "1");
    }
    batch.gauge("slo.evaluation.lag", {}, t, 30, "s");
    await batch.send(prometheus);
  }
  return tenant(bad);
}
