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
  failed: { symbol: "✕", text: "failed", rank: 3 },
  predicted_failure: { symbol: "▲", text: "will fail", rank: 2 },
  active: { symbol: "▲", text: "active", rank: 2 },
  incomplete: { symbol: "◐", text: "incomplete", rank: 2 },
  waiting: { symbol: "◔", text: "first window open", rank: 1 },
};

const unknown = { symbol: "?", text: "unknown", rank: 1 };
export const stateOf = (name) => (Object.hasOwn(states, name) && states[name]) || { ...unknown, text: name ?? unknown.text };

/** A colour of the style sheet. */
export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// From blue (better than promised) over the page's own colour (as promised) to orange (worse). Better is quiet, so that what
// is worse is seen first.
const scales = {
  light: ["#a3c3e4", "#cfdff0", "#f1f1ee", "#f2a65a", "#a63c06"],
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

// From little to much of what is neither good nor bad, one hue, as light as the page or as dark.
const heats = { light: ["#e9f0f8", "#9fc0e4", "#1f5fae"], dark: ["#1d2a38", "#2f5f92", "#8cc1fa"] };
const luminance = (rgb) => [0.2126, 0.7152, 0.0722].reduce((sum, k, i) => { const c = rgb[i] / 255; return sum + k * (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4); }, 0);

/** The colour of a share from 0 to 1, and that of text on it which can be read. */
export function heat(share, dark) {
  const stops = heats[dark ? "dark" : "light"].map(channels), at = Math.max(0, Math.min(1, share)) * 2, k = Math.min(1, Math.floor(at));
  const rgb = stops[k].map((c, i) => Math.round(c + (stops[k + 1][i] - c) * (at - k)));
  return [`rgb(${rgb.join(",")})`, luminance(rgb) > 0.179 ? "#000000" : "#ffffff"];
}
