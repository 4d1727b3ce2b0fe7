// SPDX-License-Identifier: Apache-2.0
// The heatmap itself: a canvas as large as its window, that draws the rows which are in view. Ten thousand rows cost as
// much as forty.

import { h } from "./dom.js";
import { css, scale, shade, stateOf } from "./palette.js";
import * as format from "./format.js";

const ticks = [10, 30, 60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
const degraded = stateOf("degraded").rank;
const part = (text) => h("bdi", null, text); // whichever way it is written, its neighbours are not turned
const axisHeight = 22, gap = 1;

/**
 * makeHeatmap returns {element, set(rows, times, step), paintNow()}.
 * on.hover({row, column, time, x, y} or null), on.open({row, time}), on.cursor({row, column, time, x, y}).
 */
export function makeHeatmap(on) {
  const canvas = h("canvas", { class: "cells", "aria-hidden": "true" });
  const labels = h("div", { class: "labels" });
  const spacer = h("div", { class: "spacer" });
  const sticky = h("div", { class: "sticky" }, labels, canvas);
  const element = h("div", {
    class: "heatmap", tabindex: "0", role: "application", "aria-roledescription": "heatmap", data: { key: "heatmap" },
    "aria-label": "Cells over time, worst first. Arrow keys move, Enter opens a cell.",
  }, sticky, spacer);
  const context = canvas.getContext("2d", { alpha: false });
  let rows = [], times = [], step = 0, colors, ground, ink, faint, line, cursor = null, hovered = null, pending = 0;
  let width = 0, height = 0, labelWidth = 0, rowHeight = 20;
  const pool = []; // label elements, one for each row in view

  function theme() {
    colors = scale(document.documentElement.dataset.dark === "true");
    [ground, ink, faint, line] = ["--surface", "--text", "--muted", "--line"].map(css);
  }

  function measure() {
    const ratio = devicePixelRatio || 1, narrow = element.clientWidth < 640, two = narrow && new Set(rows.map((r) => r.title)).size > 1;
    rowHeight = two ? 36 : 20;
    element.classList.toggle("two", two);
    element.style.setProperty("--row", `${rowHeight}px`);
    labelWidth = narrow ? Math.max(132, Math.round(element.clientWidth * 0.46)) : Math.min(420, Math.max(240, element.clientWidth * 0.32));
    width = Math.max(60, element.clientWidth - labelWidth);
    height = element.clientHeight;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    labels.style.width = `${labelWidth}px`;
    sticky.style.height = `${height}px`;
    spacer.style.height = `${Math.max(0, rows.length * rowHeight + axisHeight - height)}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  const columnWidth = () => width / Math.max(1, times.length);
  const first = () => Math.floor(element.scrollTop / rowHeight);

  function paint() {
    pending = 0;
    const top = first(), shift = element.scrollTop - top * rowHeight, w = columnWidth();
    const n = Math.min(rows.length - top, Math.ceil((height - axisHeight) / rowHeight) + 1);
    context.fillStyle = ground;
    context.fillRect(0, 0, width, height);
    for (let i = 0; i < n; i++) paintRow(rows[top + i], axisHeight + i * rowHeight - shift, w);
    paintCursor(top, shift, w);
    paintAxis(w);
    paintLabels(top, n, shift);
  }

  function paintRow({ values, states }, y, w) {
    const space = w > 4 ? gap : 0, ch = rowHeight - gap;
    for (let c = 0; c < values.length; c++) {
      const v = values[c], x = Math.round(c * w), cw = Math.max(1, Math.round((c + 1) * w) - x - space);
      if (v !== v) { // NaN: nothing is known
        context.fillStyle = line;
        context.fillRect(x + w / 2 - 1, y + ch / 2, 2, 1);
        continue;
      }
      const k = shade(v);
      context.fillStyle = colors[k];
      context.fillRect(x, y, cw, ch);
      if (v > 0.05) symbol(x + cw / 2, y + ch / 2, v, Math.min(cw, ch));
      if (states?.[c]) underline(x, y + ch, Math.max(1, Math.round((c + 1) * w) - x), cw, states[c]);
    }
  }

  /** What is worse than promised is marked besides its colour: a bar, and from +50 % a cross. */
  function symbol(x, y, v, size) {
    if (size < 7) return;
    context.fillStyle = v > 0.12 ? ground : ink;
    const a = Math.min(3, size / 3);
    context.fillRect(x - a, y - 0.75, 2 * a, 1.5);
    if (v >= 0.5) context.fillRect(x - 0.75, y - a, 1.5, 2 * a);
  }

  /** What the processor complained of, whatever the colour says: a line below, solid for degraded, broken for drifting. */
  function underline(x, y, whole, part, rank) {
    context.fillStyle = ink;
    if (rank >= degraded) context.fillRect(x, y - 3, whole, 3);
    else context.fillRect(x, y - 2, Math.max(1, part / 2), 2);
  }

  function paintCursor(top, shift, w) {
    for (const [at, thick] of [[hovered, 1], [cursor, 2]]) {
      if (!at || at.row < top - 1) continue;
      context.strokeStyle = ink;
      context.lineWidth = thick;
      context.strokeRect(at.column * w - 0.5, axisHeight + (at.row - top) * rowHeight - shift - 0.5, Math.max(3, w), rowHeight);
    }
  }

  function paintAxis(w) {
    context.fillStyle = ground;
    context.fillRect(0, 0, width, axisHeight);
    context.fillStyle = faint;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const every = ticks.find((x) => x >= step && (x / step) * w >= (x < 60 ? 84 : 72)) ?? ticks.at(-1);
    for (let c = 0; c < times.length; c++) {
      const start = times[c] - step, local = start - new Date(start * 1000).getTimezoneOffset() * 60;
      if (local % every !== 0 || c * w + 44 > width) continue;
      context.fillText(local % 86400 === 0 ? format.dayTime(start) : format.clockTime(start, every), c * w + 3, axisHeight / 2);
      context.fillRect(Math.round(c * w), axisHeight - 5, 1, 5);
    }
  }

  function paintLabels(top, n, shift) {
    while (pool.length < n) {
      const sign = h("span", { class: "sign" }), name = h("span", { class: "title" }), text = h("span", { class: "dims" });
      const label = h("div", { class: "label" }, sign, " ", name, " ", text);
      labels.append(label);
      pool.push({ label, sign, name, text, row: undefined });
    }
    pool.forEach((p, i) => {
      const row = i < n ? rows[top + i] : undefined;
      p.label.hidden = !row;
      if (!row) return;
      p.label.style.transform = `translateY(${axisHeight + i * rowHeight - shift}px)`;
      p.label.classList.toggle("current", cursor?.row === top + i || hovered?.row === top + i);
      if (p.row === row) return;
      p.row = row;
      p.sign.textContent = row.state ? stateOf(row.state).symbol : row.now > 0 ? "▲" : "";
      p.name.textContent = row.title;
      p.text.replaceChildren(...(row.label ? [part(row.of || "∅"), ` (${row.size})`] : Object.values(row.dims).flatMap((v, i) => (i > 0 ? [" · ", part(v)] : [part(v)]))));
      p.label.title = `${row.title} ${row.text}`;
    });
  }

  const draw = () => { pending ||= requestAnimationFrame(paint); };

  function at(event) {
    const box = element.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - labelWidth) / columnWidth());
    const row = Math.floor((event.clientY - box.top - element.clientTop - axisHeight + element.scrollTop) / rowHeight);
    if (row < 0 || row >= rows.length || column >= times.length || event.clientY - box.top < axisHeight) return null;
    return { row, column: column < 0 ? null : column };
  }

  const told = (p) => ({ row: rows[p.row], column: p.column, time: times[p.column] });

  function move(row, column) {
    if (rows.length === 0) return;
    cursor = { row: Math.max(0, Math.min(rows.length - 1, row)), column: Math.max(0, Math.min(times.length - 1, column)) };
    const y = cursor.row * rowHeight, view = height - axisHeight;
    if (y < element.scrollTop) element.scrollTop = y;
    if (y + rowHeight > element.scrollTop + view) element.scrollTop = y + rowHeight - view;
    hovered = null;
    draw();
    const w = columnWidth();
    on.cursor({ ...told(cursor), x: labelWidth + (cursor.column + 0.5) * w, y: axisHeight + (cursor.row + 1) * rowHeight - element.scrollTop });
  }

  element.addEventListener("scroll", () => { hovered = null; on.hover(null); draw(); }, { passive: true });
  element.addEventListener("pointermove", (e) => {
    const p = at(e);
    if (p?.row === hovered?.row && p?.column === hovered?.column) return;
    hovered = p && p.column !== null ? p : null;
    draw();
    const box = element.getBoundingClientRect();
    on.hover(hovered ? { ...told(hovered), x: e.clientX - box.left, y: e.clientY - box.top } : null);
  });
  element.addEventListener("pointerleave", () => { hovered = null; on.hover(null); draw(); });
  element.addEventListener("click", (e) => {
    const p = at(e);
    if (p) on.open({ row: rows[p.row], time: p.column === null ? undefined : times[p.column] });
  });
  element.addEventListener("keydown", (e) => {
    const c = cursor ?? { row: first(), column: times.length }, page = Math.floor((height - axisHeight) / rowHeight) - 1;
    const to = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-page, 0], PageDown: [page, 0], Home: [-c.row, 0], End: [rows.length, 0] }[e.key];
    if (to && !e.altKey && !e.ctrlKey && !e.metaKey) move(cursor ? c.row + to[0] : c.row, c.column + (cursor ? to[1] : -1));
    else if (e.key === "Enter" && cursor) on.open(told(cursor));
    else if (e.key === "Escape" && cursor) { cursor = null; on.hover(null); draw(); }
    else return;
    e.preventDefault();
    e.stopPropagation();
  });
  new ResizeObserver(() => { measure(); draw(); }).observe(element);

  return {
    element,
    set(newRows, newTimes, newStep) {
      [rows, times, step] = [newRows, newTimes, newStep];
      for (const p of pool) p.row = undefined;
      if (cursor && cursor.row >= rows.length) cursor = null;
      theme();
      measure();
      draw();
    },
    /** Draws at once and says how many milliseconds that took: for tests. */
    paintNow() {
      const t = performance.now();
      paint();
      return performance.now() - t;
    },
  };
}
