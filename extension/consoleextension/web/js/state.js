// SPDX-License-Identifier: Apache-2.0
// What the page shows stands in its address, so that it can be shared: ?view=heatmap&from=now-6h&f.cloud_region=eu.

const defaults = { view: "promises", from: "now-6h", to: "now", refresh: "30s", q: "", sort: "now", by: "", measure: "", worse: "" };

export function read(search = location.search) {
  const params = new URLSearchParams(search);
  const state = { ...defaults, f: {}, d: {}, slo_id: params.get("slo_id") ?? "", at: params.get("at") ?? "" };
  for (const [key, value] of params) {
    if (Object.hasOwn(defaults, key)) state[key] = value;
    else if (key.startsWith("f.")) state.f[key.slice(2)] = value;
    else if (key.startsWith("d.")) state.d[key.slice(2)] = value;
  }
  return state;
}

export function write(state) {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(defaults)) if (state[key] !== value) params.set(key, state[key]);
  for (const key of ["slo_id", "at"]) if (state[key]) params.set(key, state[key]);
  for (const kind of ["f", "d"]) for (const [k, v] of Object.entries(state[kind])) params.set(`${kind}.${k}`, v);
  const text = params.toString().replaceAll("%3A", ":").replaceAll("%2F", "/");
  return text ? `?${text}` : "?";
}

/** The address of a cell; what was looked for is there again on the way back. */
export const cellLink = (state, metric, dims, at) =>
  write({ ...state, view: "cell", slo_id: metric.slo_id, d: dims, at: at ? String(at) : "" });
