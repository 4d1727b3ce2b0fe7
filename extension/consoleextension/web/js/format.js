// SPDX-License-Identifier: Apache-2.0
// Numbers and times as people read them.

const digits = (v, n = 3) => Number(v.toPrecision(n)).toLocaleString("en", { maximumSignificantDigits: n });

export function seconds(v) {
  const a = Math.abs(v);
  if (a === 0) return "0 s";
  if (a < 1e-3) return `${digits(v * 1e6)} µs`;
  if (a < 1) return `${digits(v * 1e3)} ms`;
  if (a < 120) return `${digits(v)} s`;
  return duration(v);
}

export function bytes(v) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (Math.abs(v) >= 1024 && i < units.length - 1) (v /= 1024), i++;
  return `${digits(v)} ${units[i]}`;
}

/** A share, with as many digits as it takes to tell it from 100 %. */
export function share(v) {
  const off = Math.min(Math.abs(v), Math.abs(1 - v));
  const decimals = off === 0 ? 0 : Math.min(4, Math.max(0, Math.ceil(-Math.log10(off)) - 1));
  return `${Number((v * 100).toFixed(decimals))} %`;
}

export const percent = (v) => (v !== 0 && Math.abs(v) < 0.01 ? "under 1 %" : Math.abs(v) >= 10 ? `${digits(v, 2)} ×` : `${Math.round(v * 100)} %`);

/** Of a ratio with a floor: 2.4 × the failures that were allowed. */
export const failures = (worse) => `${digits(1 + worse, 2)} × the allowed failures`;

/** +19 %, −9 %. */
export const signed = (v) => (v < 0 ? "−" : "+") + percent(Math.abs(v));

/** A value in its OpenMetrics base unit. */
export function value(v, unit) {
  if (v === undefined || Number.isNaN(v)) return "–";
  if (!Number.isFinite(v)) return v > 0 ? "∞" : "−∞";
  switch (unit) {
    case "seconds": return seconds(v);
    case "bytes": return bytes(v);
    case "bytes_per_second": return `${bytes(v)}/s`;
    case "hertz": return v >= 1e9 ? `${digits(v / 1e9)} GHz` : `${digits(v / 1e6)} MHz`;
    case "ratio": return share(v);
    case undefined: case "": return digits(v, 4);
    default: return `${digits(v, 4)} ${unit.replace("_per_second", "/s").replaceAll("_", " ")}`;
  }
}

/** 3 h 20 min. */
export function duration(v) {
  const parts = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  let rest = Math.round(Math.abs(v)), out = [];
  for (const [name, size] of parts) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n || (out.length === 0 && name === "s")) out.push(`${n} ${name}`);
    if (out.length === 2) break;
  }
  return (v < 0 ? "−" : "") + out.join(" ");
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });

/** 14:05, with the day when it is not today. */
export function time(t, step) {
  const d = new Date(t * 1000);
  return d.toDateString() === new Date().toDateString() ? clockTime(t, step) : `${day.format(d)} ${clockTime(t, step)}`;
}

export const fullTime = (t) => full.format(new Date(t * 1000));
const precise = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
/** 14:05; 14:05:30 where steps are shorter than a minute. */
export const clockTime = (t, step = 60) => (step < 60 ? precise : clock).format(new Date(t * 1000));
export const dayTime = (t) => day.format(new Date(t * 1000));

/** cloud.region=eu-west-1, device.type=H100 */
export const labels = (dims) => Object.entries(dims).map(([k, v]) => `${k}=${v === "" ? '""' : v}`).join(", ");

export const plural = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
