// SPDX-License-Identifier: Apache-2.0
// What the page computes, without a browser.

import assert from "node:assert/strict";
import { test } from "node:test";

const js = "../../extension/consoleextension/web/js/";
const [format, time, names, prom, cells, palette, state, direction, opened, waiting, explanation, coupling, heard] = await Promise.all(["format", "time", "names", "prom", "cells", "palette", "state", "direction", "opened", "waiting", "explanation", "coupling", "heard"].map((m) => import(`${js}${m}.js`)));
const f = (got, want) => assert.deepEqual(got, want);

test("values are told in the unit and with the digits that people use", () => {
  f(format.value(0.238, "seconds"), "238 ms");
  f(format.value(0.0000421, "seconds"), "42.1 µs");
  f(format.value(5, "seconds"), "5 s");
  f(format.value(5400, "seconds"), "1 h 30 min");
  f(format.value(0.9995, "ratio"), "99.95 %");
  f(format.value(0.99999, "ratio"), "99.999 %");
  f(format.value(0.5, "ratio"), "50 %");
  f(format.value(1, "ratio"), "100 %");
  f(format.value(0, "ratio"), "0 %");
  f(format.value(3 * 2 ** 30, "bytes"), "3 GiB");
  f(format.value(1800, "tokens_per_second"), "1,800 tokens/s");
  f(format.value(NaN, "seconds"), "–");
  f(format.value(undefined, "seconds"), "–");
  f(format.value(Infinity, "seconds"), "∞");
  f(format.signed(0.19), "+19 %");
  f(format.signed(-0.09), "−9 %");
  f(format.percent(0.004), "under 1 %");
});

test("a bend is worse whichever way the objective points", () => {
  const worse = (labels, observed, target) => Number((direction.worseBy({ target: String(target), ...labels }) * ((observed - target) / target)).toFixed(4));
  f(worse({ slo_id: "llm:a:ttft:p95", slo_class: "latency", unit: "seconds" }, 0.238, 0.2), 0.19);
  f(worse({ slo_id: "llm:a:ttft:p95", slo_class: "latency", unit: "seconds" }, 0.182, 0.2), -0.09);
  f(worse({ slo_id: "llm:a:tokens:p50", slo_class: "throughput", unit: "tokens_per_second" }, 1500, 2000), 0.25);
  f(worse({ slo_id: "llm:a:success:99.95", slo_class: "availability", unit: "ratio" }, 0.998, 0.9995), 3); // four times the allowed failures
  f(worse({ slo_id: "llm:a:success:99.95", slo_class: "availability", unit: "ratio" }, 1, 0.9995), -1);
  f(worse({ slo_id: "llm:a:kv-cache:p99", slo_class: "saturation", unit: "ratio" }, 0.99, 0.9), 0.1);
  f(worse({ slo_id: "llm:a:fast-enough:95", slo_class: "latency", unit: "ratio" }, 0.9, 0.95), 1); // a share of good events, of whatever class
  f(worse({ slo_id: "llm:a:relevance:p90", slo_class: "quality", unit: "ratio" }, 0.6, 0.8), 0.25); // a quantile of what is measured
});

test("what verdicts say counts more than what labels suggest", () => {
  const free = { slo_id: "llm:b:free:p99", slo_class: "saturation", unit: "ratio", target: "0.2000" };
  f(direction.isFloor(free), false);
  direction.hear([{ metric: free, value: -3 }, { metric: { slo_id: "llm:b:undecided:p50" }, value: 0 }]);
  f(direction.isFloor(free), true);
  f(direction.worseBy(free), -1);
  f(direction.isFloor({ slo_id: "llm:b:undecided:p50", slo_class: "latency" }), false);
});

test("a violation is counted once, though the collector that tells of it is restarted under another name", () => {
  const series = (instance, values, policy = "page") => ({ metric: { slo_id: "a", cloud_region: "eu", slo_policy: policy, service_instance_id: instance, instance }, values: Float64Array.from(values) });
  const times = [10, 20, 30, 40, 50, 60], at = (...all) => opened.violations(times, all).map((v) => v.time);
  f(at(series("pod-1", [0, 1, 1, NaN, NaN, NaN]), series("pod-2", [NaN, NaN, NaN, 1, 1, 2])), [20, 60]);
  f(at(series("pod-1", [0, 0, 1, 1, 1, 1]), series("pod-2", [0, 0, 1, 1, 1, 1])), [30]); // two that judge the same
  f(at(series("pod-1", [0, 2, 2, NaN, NaN, NaN]), series("pod-2", [NaN, NaN, NaN, 0, 1, 1])), [20, 50]); // its state was lost
  f(at(series("pod-1", [0, 1, 1, 1, 1, 1]), series("pod-1", [0, 1, 1, 1, 1, 1], "ticket")), [20, 20]);
  f(at(series("pod-1", [NaN, NaN, 1, 1, 1, 1])), [30]); // began with its first
  f(at(series("pod-1", [NaN, NaN, 7, 7, 8, 8])), [50]); // is only first seen with seven
});

test("what a collector said is over when it is silent and another tells of the same", () => {
  const of = (instance, region = "eu", state) => ({ __name__: "slo_state", slo_id: "a", cloud_region: region, instance, ...(state && { state }) });
  const end = heard.until([[of("pod-1"), 1000], [of("pod-2"), 1200], [of("pod-1", "us"), 1000], [of("pod-1", "ap"), 1180], [of("pod-2", "ap"), 1200]].map(([metric, value]) => ({ metric, value })));
  f(end(of("pod-1")), 1000);
  f(end(of("pod-1", "eu", "violated")), 1000);
  f(end(of("pod-2")), Infinity);
  f(end(of("pod-1", "us")), Infinity); // nobody else tells of it
  f([end(of("pod-1", "ap")), end(of("pod-2", "ap"))], [Infinity, Infinity]); // both speak
  f(heard.cut([1, 2, 3], [900, 1000, 1100], 1000), [1, 2, NaN]);
});

test("a value stands for its window, and not until somebody notices", () => {
  const none = NaN, minutes = (...lists) => heard.stride(lists, 60);
  f(minutes([1, none, none, 2, none, none, 3], [none, none, none, 5, none, none, none]), 3);
  f(minutes([1, 2, 3]), 1);
  f(minutes([none, 1, none, none]), 1); // nothing tells how long its window is
  f(minutes([1, ...Array(20).fill(none), 2]), 1); // two that stand alone
  f(heard.hold([1, none, 2, none, none, 3, none, none], 2), [1, 1, 2, 2, 2, 3, 3, 3]); // one a little late, and one that may still come
  f(heard.hold([1, 2, none, none, none, none], 1), [1, 2, none, none, none, none]);
  f(heard.hold([none, 1, none, none, none, none, 2], 2), [none, 1, 1, none, none, none, 2]);
  f([...heard.hold(Uint8Array.from([3, 0, 0, 0, 0, 0]), 2, [1, none, none, none, none, none])], [3, 3, 0, 0, 0, 0]);
});

test("the first window closes with its five minutes, plus what may be late", () => {
  f(waiting.closes(1200), 1530);
  f(waiting.closes(1499), 1530);
  assert.match(waiting.sentence(1210, 1250), /: at \d\d:25, in 4 min 40 s, where windows are five minutes/);
  assert.match(waiting.sentence(1210, 1600), /longer than the usual five minutes here/);
});

test("an explanation is a sentence, and what the cell is part of comes first", () => {
  const of = (dimension, value, share) => ({ metric: { slo_id: "a", dimension, value }, value: share });
  f(explanation.sentence(of("cloud.region", "eu", 0.7)), "70 % of the bad events would not have been if cloud.region eu were like the others");
  f(explanation.rank([of("tenant", "acme", 0.9), of("cloud.region", "eu", 0.7), of("device.type", "H100", NaN)], { cloud_region: "eu", tenant: "beta" }).map((e) => e.metric.dimension), ["cloud.region", "tenant"]);
});

test("curves of throughput have their columns in order of size, and their knee", () => {
  const at = (batch, context, cache_hit, value) => ({ metric: { model_name: "m", batch, context, cache_hit, instance: "i" }, value });
  const [group, ...others] = coupling.curves([at("<=16", "1000-4000", ">0.75", 5), at("<=2", "<=1000", "<=0.25", 3), at("<=8", "<=1000", "<=0.25", 4), at("<=8", ">16000", "<=0.25", 1)], [{ metric: { model_name: "m", context: "<=1000", cache_hit: "<=0.25" }, value: 6 }]);
  f([others, group.dims, group.batches, group.most], [[], { model_name: "m" }, ["<=2", "<=8", "<=16"], 5]);
  f(group.panels.map((p) => [p.hit, p.rows.map((r) => [r.context, [...r.values], r.knee])]), [["<=0.25", [["<=1000", [["<=2", 3], ["<=8", 4]], 6], [">16000", [["<=8", 1]], undefined]]], [">0.75", [["1000-4000", [["<=16", 5]], undefined]]]]);
  f(coupling.curves([], []), []);
});

test("text on every shade of a field can be read", () => {
  const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = (colour) => { const [r, g, b] = colour.startsWith("#") ? [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)) : colour.match(/\d+/g).map(Number); return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
  for (const dark of [false, true]) {
    for (let v = 0; v <= 1; v += 0.01) {
      const [a, b] = palette.heat(v, dark).map(light).sort((x, y) => y - x);
      assert.ok((a + 0.05) / (b + 0.05) >= 4.5, `${v}, dark ${dark}: ${palette.heat(v, dark)}`);
    }
  }
});

test("what is young is not squeezed into a corner", () => {
  const lead = (...lists) => time.lead(8, time.firstKnown(8, lists));
  f(lead([NaN, NaN, NaN, 1, 2, 3, 4, 5], [NaN, NaN, NaN, NaN, 1, 1, 1, 1]), 2);
  f(lead([NaN, NaN, NaN, NaN, NaN, NaN, NaN, 5]), 6);
  f(lead([1, NaN, NaN, NaN, NaN, NaN, NaN, 5]), 0);
  f(lead(), 0);
});

test("names are found however a backend spells them", () => {
  const f = async (all, key, want) => assert.equal((await names.discover({ values: async () => all }, {}))[key], want);
  return Promise.all([
    f(["slo_drift_deviation_ratio"], "deviation", "slo_drift_deviation_ratio"),
    f(["slo_drift_deviation"], "deviation", "slo_drift_deviation"),
    f(["slo.drift.deviation"], "deviation", "slo.drift.deviation"),
    f(["slo_violations_total"], "violations", "slo_violations_total"),
    f(["slo_sli_distribution_bucket", "slo_sli_distribution_count"], "distribution", "slo_sli_distribution_bucket"),
    f(["slo_state_other", "slo_drift_state"], "state", undefined),
    f(["llm_throughput_per_second", "llm_throughput_knee"], "throughput", "llm_throughput_per_second"),
    f(["llm.throughput", "llm.throughput.knee"], "knee", "llm.throughput.knee"),
  ]);
});

test("what says which collector spoke is no dimension", () => {
  f(names.dimensions({ __name__: "x", slo_id: "a", service: "b", unit: "c", target: "1", slo_class: "latency", job: "j", instance: "i", otel_scope_name: "s", state: "ok", tenant: "acme", cloud_region: "eu" }), { cloud_region: "eu", tenant: "acme" });
  f(names.cellKey({ slo_id: "a", b: "1", a: "2" }), names.cellKey({ a: "2", slo_id: "a", b: "1", instance: "x" }));
});

test("a selector says what it means, whatever stands in a value", () => {
  f(prom.select("slo.state", { "cloud.region": 'a"b\\', tenant: ["x.y", "z"], slo_class: { not: ["a", "b.c"] } }), '{__name__="slo.state","cloud.region"="a\\"b\\\\",tenant=~"x\\\\.y|z",slo_class!~"a|b\\\\.c"}');
});

test("a label stands in a path, whatever it is called", () => {
  f(["cloud.region", "app.kubernetes.io/name", "a..b", "é"].map(prom.inPath), ["cloud.region", "app.kubernetes.io%2Fname", "a..b", "%C3%A9"]);
  f(["..", "../a", "a//b", "100%", "a_b?"].map(prom.inPath), ["U___2e__2e_", "U___2e__2e__2f_a", "U__a_2f__2f_b", "U__100_25_", "U__a__b_3f_"]);
});

test("a grid has steps that people think in, and lies still between two refreshes", () => {
  f(time.grid({ from: 0, to: 6 * 3600 }, 96, 60), { from: 0, to: 21600, step: 300 });
  f(time.grid({ from: 7, to: 7 + 6 * 3600 }, 96, 60), { from: 300, to: 21600, step: 300 });
  f(time.grid({ from: 0, to: 28 * 86400 }, 96, 60).step, 43200);
  f(time.grid({ from: 0, to: 600 }, 96, 60).step, 60);
  assert.ok(time.grid({ from: 0, to: 5 * 365 * 86400 }, 96).step % 86400 === 0);
});

test("the heatmap's last column is the step that goes on", () => {
  f(time.stepsUntil({ from: 0, to: 6 * 3600 }, 96, 60), { from: 300, to: 21600, step: 300 });
  f(time.stepsUntil({ from: 0, to: 6 * 3600 + 1 }, 96, 60), { from: 300, to: 21900, step: 300 });
});

test("times are relative or absolute, and nonsense is the last six hours", () => {
  f(time.resolve("now-1h", "now", 10_000), { from: 6400, to: 10_000, live: true });
  f(time.resolve("1970-01-01T00:00:00Z", "1970-01-01T01:00:00Z", 10_000), { from: 0, to: 3600, live: false });
  f(time.resolve("1700000000", "1700003600000", 2e9), { from: 1_700_000_000, to: 1_700_003_600, live: false });
  f(time.resolve("soon", "never", 100_000), { from: 100_000 - 21600, to: 100_000, live: false });
  f(time.resolve("now", "now-1h", 100_000).from, 100_000 - 3600 - 21600);
});

test("the address holds what is chosen, and nothing of what is usual", () => {
  f(state.write(state.read("")), "?");
  const address = "?view=cell&from=now-1h&slo_id=llm:chat:ttft:p95&f.service=chat&d.cloud_region=eu+west";
  f(state.write(state.read(address)), address);
});

const row = (values, labels = {}, more = {}) => ({ key: JSON.stringify(labels), metric: { slo_id: "a" }, dims: labels, factor: 1, values: Float32Array.from(values), now: values.at(-1), worst: Math.max(...values), title: "a", text: JSON.stringify(labels), search: JSON.stringify(labels).toLowerCase(), ...more });
const view = { q: "", sort: "now", worse: "", by: "" };

test("the worst now stands first, and what is degraded before it, though still within its promise", () => {
  const rows = [row([0.1, -0.2], { r: "1" }), row([-0.2, 0.3], { r: "2" }), row([-0.5, -0.4], { r: "3" }, { state: "degraded" }), row([NaN, NaN], { r: "4" })];
  f(cells.arrange(rows, view).map((r) => r.dims.r), ["3", "2", "1", "4"]);
  f(cells.arrange(rows, { ...view, worse: "1" }).map((r) => r.dims.r), ["2", "1"]);
  f(cells.arrange(rows, { ...view, q: '"r":"4"' }).map((r) => r.dims.r), ["4"]);
});

test("rows that are joined show the worst of them in each column, and what is not known of one does not hide the other", () => {
  const [g] = cells.group([row([0.5, NaN, -1], { region: "eu", t: "1" }), row([0.25, 0.75, NaN], { region: "eu", t: "2" })], "region");
  f([...g.values], [0.5, 0.75, -1]);
  f([g.size, g.of, g.now], [2, "eu", -1]);
});

test("since when it is worse is the first column of the run that goes on", () => {
  const [g] = cells.group([row([0.5, -0.1, 0.2, 0.3, NaN], { region: "eu" })], "region");
  f(g.since, 2);
});

test("a collector that has been restarted goes on with its series, though under another name", () => {
  const [before, after] = [["a", [1, 2, 2, NaN], undefined], ["b", [NaN, NaN, 3, 4], 5]].map(([instance, values, now]) => ({ metric: { instance, state: "ok" }, values: Float64Array.from(values), now }));
  for (const order of [[before, after], [after, before]]) {
    const [one, ...others] = cells.joined(order, (m) => m.state);
    f([[...one.values], one.now, others], [[1, 2, 3, 4], 5, []]);
  }
  f(cells.joined([before, { ...after, metric: { state: "violated" } }], (m) => m.state).length, 2);
});

test("colours go from better to worse without a step back", () => {
  const shades = [-1, -0.5, -0.1, 0, 0.1, 0.5, 1].map(palette.shade);
  f(shades, [...shades].sort((a, b) => a - b));
  f([shades[0], shades.at(-1)], [0, 255]);
  f(palette.scale(false).length, 256);
});
