// SPDX-License-Identifier: Apache-2.0
// Lines over time, by uPlot.

import { h } from "./dom.js";
import { css } from "./palette.js";
import * as format from "./format.js";

/* global uPlot */

/**
 * A chart in a figure.
 * lines: [{label, values, color (a variable of the style sheet), dash, width}]; unit: of the values.
 * onZoom(from, to) is told of a range that was dragged. at marks a time.
 */
export function chart({ title, times, lines, unit, height = 220, onZoom, at, summary }) {
  const box = h("div", { class: "plot" });
  const figure = h("figure", { class: "chart" }, h("figcaption", null, title, summary && h("span", { class: "muted" }, ` ${summary}`)), box);
  const axis = { stroke: css("--muted"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  const show = (v) => (v === null || v === undefined ? "–" : format.value(v, unit));
  const options = {
    width: 600,
    height,
    cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 7 }, sync: { key: "time" } },
    select: { show: true },
    legend: { live: true, markers: { width: 2, dash: (_, i) => (lines[i - 1]?.dash?.length ? "dashed" : "solid") } },
    scales: { x: { time: true }, y: { range: (_, lo, hi) => padded(lo, hi) } },
    axes: [
      { ...axis, size: 30, space: 66, values: (_, splits, __, ___, step) => splits.map((t, i) => (i > 0 && new Date(t * 1000).getDate() !== new Date(splits[i - 1] * 1000).getDate() ? format.dayTime(t) : format.clockTime(t, step))) },
      { ...axis, size: 76, space: 36, incrs: increments[unit], values: (_, splits) => splits.map(show) },
    ],
    series: [
      { label: "Time", value: (_, t) => (t ? format.fullTime(t) : "–") },
      ...lines.map((l) => ({
        label: l.label, stroke: css(l.color), width: l.width ?? 1.5, dash: l.dash, spanGaps: false, points: { show: sparse(l.values), size: 4 },
        value: (_, v) => show(v),
      })),
    ],
    hooks: {
      setSelect: [(u) => {
        if (u.select.width < 8) return;
        onZoom?.(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
      }],
      setCursor: [(u) => { if (u.cursor.idx === null) latest(u); }],
      ready: [latest],
      draw: at ? [(u) => mark(u, at)] : [],
    },
  };
  const data = [times, ...lines.map((l) => Array.from(l.values, (v) => (Number.isFinite(v) ? v : null)))];
  const plot = new uPlot(options, data, box);
  alive.add(plot);
  new ResizeObserver(() => {
    const width = Math.floor(box.clientWidth);
    if (width > 0 && width !== plot.width) plot.setSize({ width, height });
  }).observe(box);
  return figure;
}

const alive = new Set();

/** Ends the charts that are no longer on the page: each listens to the window. */
export function prune() {
  for (const plot of alive) {
    if (plot.root.isConnected) continue;
    plot.destroy();
    alive.delete(plot);
  }
}

/** The steps of an axis, where tens are not what people count in. */
const increments = {
  bytes: Array.from({ length: 50 }, (_, i) => 2 ** i),
  seconds: [...Array.from({ length: 24 }, (_, i) => [1, 2, 5][i % 3] * 10 ** (Math.floor(i / 3) - 6)), 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800],
};

/** The legend tells the newest values while the pointer is elsewhere. */
function latest(u) {
  const n = u.data[0].length;
  let i = n - 1;
  while (i > 0 && u.data.slice(1).every((values) => values[i] === null)) i--;
  if (n > 0) u.setLegend({ idx: i }, false);
}

/** The scale of values: from zero when they come near it, with some air. */
function padded(lo, hi) {
  if (lo === null || hi === null) return [0, 1];
  if (lo > 0 && lo < hi * 0.7) lo = 0;
  const air = (hi - lo || Math.abs(hi) || 1) * 0.08;
  return [lo === 0 ? 0 : lo - air, hi + air];
}

/** Whether values stand alone, so that lines between them would show nothing. */
function sparse(values) {
  let n = 0;
  for (const v of values) if (Number.isFinite(v)) n++;
  return n > 0 && n < 3;
}

function mark(u, t) {
  const x = u.valToPos(t, "x", true);
  if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) return;
  u.ctx.save();
  u.ctx.strokeStyle = css("--muted");
  u.ctx.setLineDash([2, 3]);
  u.ctx.beginPath();
  u.ctx.moveTo(x, u.bbox.top);
  u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
  u.ctx.stroke();
  u.ctx.restore();
}
