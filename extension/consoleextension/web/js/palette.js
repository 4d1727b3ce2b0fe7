// SPDX-License-Identifier: Apache-2.0
// Colours that a colour-blind person can tell apart, and a symbol for each thing a colour says.

export const states = {
  violated: { symbol: "✕", text: "violated", rank: 3 },
  degraded: { symbol: "✕", text: "degraded", rank: 3 },
  at_risk: { symbol: "▲", text: "at risk", rank: 2 },
  drifting: { symbol: "▲", text: "drifting", rank: 2 },
  no_data: { symbol: "○", text: "no data", rank: 1 },
  insufficient_data: { symbol: "○", text: "too little data", rank: 1 },
  ok: { symbol: "✓", text: "ok", rank: 0 },
  leaking: { symbol: "✕", text: "leaking", rank: 3 },
  suspect: { symbol: "▲", text: "suspect", rank: 2 },
  plateau: { symbol: "▬", text: "plateau", rank: 1 },
};

const unknown = { symbol: "?", text: "unknown", rank: 1 };
export const stateOf = (name) => states[name] ?? { ...unknown, text: name ?? unknown.text };

/** A colour of the style sheet. */
export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// From blue (better than promised) over the page's own colour (as promised) to orange (worse). Better is quiet, so that what
// is worse is seen first.
const scales = {
  light: ["#8db4dd", "#c3d7eb", "#f1f1ee", "#f2a65a", "#a63c06"],
  dark: ["#34618f", "#2b445e", "#262d36", "#a9591a", "#ffb35c"],
};

const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/** 256 colours from −1 to 1. */
export function scale(dark) {
  const stops = scales[dark ? "dark" : "light"].map(channels);
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (stops.length - 1), k = Math.min(stops.length - 2, Math.floor(at)), f = at - k;
    return `rgb(${stops[k].map((c, j) => Math.round(c + (stops[k + 1][j] - c) * f)).join(",")})`;
  });
}

/** Where on the scale a deviation is: half as much again, and twice, differ less than nothing and a little. */
export const full = 0.5;
export const shade = (v) => Math.round((Math.sign(v) * Math.sqrt(Math.min(1, Math.abs(v) / full)) * 0.5 + 0.5) * 255);
