// SPDX-License-Identifier: Apache-2.0
// How values are distributed: now, and as they were before.

import { h, s } from "./dom.js";
import * as format from "./format.js";
import { isFloor } from "./direction.js";
import { selector } from "./names.js";

const window = "10m";

/**
 * The distribution in the window that ends at a time, whether buckets or a native histogram: {buckets: [{from, to, count}], of},
 * of being the dimensions of the cell that it tells apart; undefined without the metric.
 */
export async function distribution(app, client, { slo_id, d }, at) {
  const name = app.names.distribution;
  if (!name) return undefined;
  const labels = await client.labels(selector(app.names, "distribution", { slo_id }), app.range);
  const of = Object.fromEntries(Object.entries(d).filter(([k]) => labels.includes(k))), selected = selector(app.names, "distribution", { slo_id, ...of });
  if (!name.endsWith("_bucket")) {
    const [sum] = await client.instant(`sum(increase(${selected}[${window}]))`, at);
    return { of, buckets: (sum?.histogram?.buckets ?? []).map(([, from, to, count]) => ({ from: Number(from), to: Number(to), count: Number(count) })).filter((b) => b.count > 0) };
  }
  const series = await client.instant(`sum by (le) (increase(${selected}[${window}]))`, at);
  const bounds = series.map((x) => ({ le: Number(x.metric.le.replace("+Inf", "Infinity")), n: x.value })).sort((a, b) => a.le - b.le);
  return { of, buckets: bounds.map(({ le, n }, i) => ({ from: i ? bounds[i - 1].le : 0, to: le, count: n - (i ? bounds[i - 1].n : 0) })).filter((b) => b.count > 0) };
}

/** Two distributions over each other: at the chosen time as bars, up to three hours before as dashes. */
export function spreadFigure(app, c, unit, objective) {
  const title = h("h2", null, "Distribution");
  if (!c.spread) return h("section", null, title, h("p", { class: "muted" }, "Not kept here: switch ", h("code", null, "slo.sli.distribution"), " on in the slo connector to see how the values are spread."));
  const spread = c.spread.buckets, before = c.earlier?.buckets ?? [], finite = [...spread, ...before].filter((b) => Number.isFinite(b.to) && b.to > 0);
  if (spread.length === 0 || finite.length === 0) return h("section", null, title, h("p", { class: "muted" }, `No values in the ten minutes before ${format.time(c.at)}.`));
  const lo = Math.min(...finite.map((b) => (b.from > 0 ? b.from : b.to / 2)), objective), hi = Math.max(...finite.map((b) => b.to), objective);
  const w = 480, high = 150, log = lo > 0 && hi / lo > 10;
  const x = (v) => (log ? (Math.log(Math.max(v, lo) / lo) / Math.log(hi / lo)) * w : ((Math.max(v, lo) - lo) / (hi - lo)) * w);
  // Buckets are not of one width: what is seen is the area.
  const shares = (bs) => { const n = bs.reduce((a, b) => a + b.count, 0); return bs.filter((b) => Number.isFinite(b.to)).map((b) => ({ ...b, share: b.count / n, height: b.count / n / Math.max(1, x(b.to) - x(b.from)) })); };
  const now = shares(spread), then = shares(before), top = Math.max(...now.map((b) => b.height), ...then.map((b) => b.height));
  const y = (v) => high - (v / top) * (high - 8);
  const outline = then.map((b) => `M${x(b.from)} ${y(b.height)}H${x(b.to)}`).join("");
  const beyond = isFloor(c.metric) ? (b) => b.to <= objective : (b) => b.from >= objective;
  const share = spread.filter(beyond).reduce((a, b) => a + b.count, 0) / spread.reduce((a, b) => a + b.count, 0);
  const narrower = Object.keys(c.spread.of).length < Object.keys(app.state.d).length && ` Of ${format.labels(c.spread.of) || "all"}.`;
  return h("section", null, title,
    s("svg", { class: "spread", viewBox: `0 0 ${w} ${high + 18}`, role: "img", "aria-label": `${format.share(share)} of the values lie beyond the objective` },
      now.map((b) => s("rect", { class: beyond(b) ? "beyond" : "within", x: x(b.from), width: Math.max(1, x(b.to) - x(b.from) - 0.5), y: y(b.height), height: high - y(b.height) }, s("title", null, `${format.value(b.from, unit)} to ${format.value(b.to, unit)}: ${format.share(b.share)}`))),
      s("path", { class: "before", d: outline }),
      s("line", { class: "objective", x1: x(objective), x2: x(objective), y1: 0, y2: high }),
      s("text", { x: 0, y: high + 14 }, format.value(lo, unit)), s("text", { x: w, y: high + 14, "text-anchor": "end" }, format.value(hi, unit)),
      x(objective) > 70 && x(objective) < w - 70 && s("text", { x: x(objective), y: high + 14, "text-anchor": "middle" }, format.value(objective, unit))),
    h("p", { class: "muted small" }, `Bars: the ten minutes before ${format.time(c.at)}, ${format.share(share)} of them beyond the objective.${then.length ? ` Dashes: before ${format.time(c.before)}.` : ""}${log ? " Logarithmic." : ""}`, narrower));
}
