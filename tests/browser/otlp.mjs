// SPDX-License-Identifier: Apache-2.0
// Metrics as OTLP JSON, as the Collector would send them to Prometheus.

const attributes = (object) => Object.entries(object).map(([key, v]) => ({ key, value: { stringValue: String(v) } }));
const nano = (t) => `${Math.round(t * 1000)}000000`;

/** A batch of points at one time or several. */
export class Batch {
  constructor() {
    this.metrics = new Map();
  }

  #metric(name, make) {
    if (!this.metrics.has(name)) this.metrics.set(name, { name, ...make() });
    return this.metrics.get(name);
  }

  gauge(name, attrs, time, value, unit = "") {
    this.#metric(name, () => ({ unit, gauge: { dataPoints: [] } })).gauge.dataPoints.push({ attributes: attributes(attrs), timeUnixNano: nano(time), asDouble: value });
  }

  counter(name, attrs, time, value, unit, exemplars = []) {
    this.#metric(name, () => ({ unit, sum: { aggregationTemporality: 2, isMonotonic: true, dataPoints: [] } })).sum.dataPoints.push({
      attributes: attributes(attrs), timeUnixNano: nano(time), asDouble: value,
      exemplars: exemplars.map((e) => ({ timeUnixNano: nano(e.time), asDouble: e.value, traceId: e.trace, spanId: e.trace.slice(0, 16) })),
    });
  }

  /** A delta exponential histogram at scale 3 of some values. */
  distribution(name, attrs, start, time, values, unit = "") {
    const scale = 3, index = (v) => Math.ceil(Math.log2(v) * 2 ** scale) - 1, all = values.map(index), offset = Math.min(...all);
    const bucketCounts = Array(Math.max(...all) - offset + 1).fill(0);
    for (const i of all) bucketCounts[i - offset]++;
    this.#metric(name, () => ({ unit, exponentialHistogram: { aggregationTemporality: 1, dataPoints: [] } })).exponentialHistogram.dataPoints.push({
      attributes: attributes(attrs), startTimeUnixNano: nano(start), timeUnixNano: nano(time), scale, zeroCount: "0",
      count: String(values.length), sum: values.reduce((a, b) => a + b, 0), positive: { offset, bucketCounts: bucketCounts.map(String) },
    });
  }

  async send(prometheus, instance = "gateway-0") {
    const body = JSON.stringify({ resourceMetrics: [{ resource: { attributes: attributes({ "service.name": "otelcol-llm", "service.instance.id": instance }) }, scopeMetrics: [{ scope: { name: "test" }, metrics: [...this.metrics.values()] }] }] });
    const answer = await fetch(`${prometheus}/api/v1/otlp/v1/metrics`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
    if (!answer.ok) throw new Error(`Prometheus: ${answer.status} ${await answer.text()}`);
  }
}
