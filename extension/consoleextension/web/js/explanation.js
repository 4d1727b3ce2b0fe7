// SPDX-License-Identifier: Apache-2.0
// What explains a deviation, in words.

import { h } from "./dom.js";
import { promise } from "./names.js";

/** A label as it is spelled by whatever backend. */
const plain = (label) => label.replaceAll(".", "_");

/** Of each explanation: whether the cell is among what it tells of; undefined when the cell does not say. */
function among(d, { dimension, value = "" }) {
  const own = Object.entries(d).find(([k]) => plain(k) === plain(dimension));
  return own && own[1] === value;
}

/** One that is about the cell comes first, then one that explains more. */
export function rank(explained, d) {
  const ours = (e) => Number(among(d, e.metric) === true);
  return explained.filter((e) => e.metric.dimension && e.value > 0).sort((a, b) => ours(b) - ours(a) || b.value - a.value);
}

/** A share of events, in whole percents. */
const percent = (v) => (v >= 0.995 ? "Nearly all" : v < 0.01 ? "Under 1 %" : `${Math.round(v * 100)} %`);

/** The sentence that the number stands for. */
export const sentence = ({ metric, value }) => `${percent(value)} of the bad events would not have been if ${metric.dimension} ${metric.value || "∅"} were like the others`;

export function explanation(app, c) {
  const all = rank(c.explained, app.state.d);
  if (all.length === 0) return null;
  const [top] = all, { service, name } = promise(c.metric), ours = among(app.state.d, top.metric);
  return h("section", { class: "explanation" }, h("h2", null, "What explains it"),
    h("p", { class: "lead" }, `${sentence(top)}.`),
    ours === false && h("p", { class: "muted" }, "This cell is not among them."),
    h("ul", { class: "bars" }, all.slice(0, 6).map((e) => h("li", { title: sentence(e) },
      h("span", null, h("span", { class: "muted" }, e.metric.dimension), " ", h("b", null, e.metric.value || "∅")),
      h("meter", { min: 0, max: 1, value: Math.min(1, e.value), "aria-label": sentence(e) }), h("span", { class: "number" }, percent(e.value))))),
    h("p", { class: "muted small" }, `Of all bad events of ${service} ${name}; each dimension by itself, so that the shares overlap.`));
}
