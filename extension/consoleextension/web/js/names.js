// SPDX-License-Identifier: Apache-2.0
// How the metrics are called here. A backend appends unit and type to names, or not, and keeps dots, or not.

import { select } from "./prom.js";

const known = {
  value: "slo.sli.value",
  bound: "slo.sli.bound",
  events: "slo.sli.events",
  distribution: "slo.sli.distribution",
  objective: "slo.objective",
  remaining: "slo.error_budget.remaining",
  coverage: "slo.error_budget.coverage",
  burn: "slo.burn_rate",
  state: "slo.state",
  violations: "slo.violations",
  incomplete: "slo.sli.incomplete",
  lag: "slo.evaluation.lag",
  observed: "slo.drift.observed",
  deviation: "slo.drift.deviation",
  baseline: "slo.drift.baseline",
  ratio: "slo.drift.ratio",
  drift: "slo.drift.state",
  explanation: "slo.drift.explanation",
  throughput: "llm.throughput",
  knee: "llm.throughput.knee",
};

const suffix = "(?:_(?:ratio|seconds|total|ratio_total|bucket|per_second))?";
const pattern = (name) => new RegExp(`^${name.replace(/[._]/g, "[._]")}${suffix}$`);
const patterns = Object.entries(known).map(([key, name]) => [key, pattern(name)]);

/** Asks which of the metrics exist in a time range: {value: "slo_sli_value", …, all: [names]}. */
export async function discover(client, range) {
  const all = await client.values("__name__", `{__name__=~"(slo|gpu|hw|nvidia|cuda|otelcol_gpu_guard)[._].+|llm[._]throughput.*"}`, range);
  const names = { all };
  for (const name of all) {
    for (const [key, re] of patterns) if (re.test(name)) names[key] ??= name;
  }
  return names;
}

/** Selects a metric by its key; one that does not exist selects nothing. */
export const selector = (names, key, matchers) => select(names[key] ?? known[key].replaceAll(".", "_"), matchers);

export const canonical = new Set(["slo_id", "service", "slo_class", "target", "unit"]);
const own = new Set(["__name__", "job", "instance", "exported_job", "exported_instance", "prometheus_replica", "service_instance_id", "service.instance.id", "state", "bound", "window", "outcome", "baseline", "slo_policy", "slo.policy", "layout", "le", "quantile"]);
const technical = /^(otel|telemetry)[._]/;

/** The labels by which a promise is kept apart: all but what every result has and what says which collector spoke. */
export function dimensions(metric) {
  return Object.fromEntries(
    Object.entries(metric)
      .filter(([k]) => !canonical.has(k) && !own.has(k) && !technical.test(k))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

export const isDimension = (label) => Object.keys(dimensions({ [label]: "" })).length > 0;

/** What a cell is told by: slo_id and dimensions. */
export const cellKey = (metric) => JSON.stringify([metric.slo_id, dimensions(metric)]);

/** The parts of a slo_id as people read them. */
export function promise(metric) {
  const parts = (metric.slo_id ?? "").split(":");
  if (parts.length < 4) return { service: metric.service ?? "", name: metric.slo_id ?? "" };
  return { service: metric.service ?? parts[1], name: `${parts[2]} ${parts.slice(3).join(":")}` };
}
