// SPDX-License-Identifier: Apache-2.0
// The Prometheus HTTP API, as far as the page needs it.

/** What kept a query from being answered, in words for people. */
export class QueryError extends Error {
  constructor(message, { query, status, kind } = {}) {
    super(message);
    this.query = query;
    this.status = status;
    this.kind = kind;
  }
}

const posted = new Set(["query", "query_range", "series", "labels", "query_exemplars"]);

/** Asks api/v1/PATH. A client lives for one load of a view: its signal ends all of its queries. */
export class Client {
  constructor(signal) {
    this.signal = signal;
    this.warnings = new Set();
  }

  async ask(path, params) {
    const form = new URLSearchParams();
    for (const [name, value] of Object.entries(params)) {
      for (const v of Array.isArray(value) ? value : [value]) if (v !== undefined) form.append(name, v);
    }
    const query = params.query ?? params["match[]"];
    let answer, body;
    try {
      answer = posted.has(path)
        ? await fetch(`api/v1/${path}`, { method: "POST", body: form, signal: this.signal })
        : await fetch(`api/v1/${path}?${form}`, { signal: this.signal });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new QueryError("The console itself does not answer. Is the Collector still running?", { query, kind: "network" });
    }
    try {
      body = await answer.json();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      if (!answer.ok) throw new QueryError(`The console answered ${answer.status}.`, { query, status: answer.status });
      throw new QueryError("The answer broke off. It may be longer than max_response_bytes: choose a shorter time range, or a filter.", { query, kind: "cut" });
    }
    if (body.status !== "success") throw new QueryError(body.error ?? `HTTP ${answer.status}`, { query, status: answer.status, kind: body.errorType });
    for (const w of [...(body.warnings ?? []), ...(body.infos ?? [])]) this.warnings.add(w);
    return body.data;
  }

  /** The series of an instant query: [{metric, value: number} or {metric, histogram}]. */
  async instant(query, time) {
    const data = await this.ask("query", { query, time });
    return data.result.map((r) => ({ metric: r.metric, value: r.value ? Number(r.value[1]) : undefined, histogram: r.histogram?.[1], time }));
  }

  /** The series of a range query, on its grid: {times, series: [{metric, values}]}, NaN where there is nothing. */
  async range(query, { from, to, step }, limit) {
    const data = await this.ask("query_range", { query, start: from, end: to, step, limit });
    const columns = Math.floor((to - from) / step + 1e-6) + 1;
    const times = Array.from({ length: columns }, (_, i) => from + i * step);
    const series = data.result.map(({ metric, values }) => {
      const grid = new Float64Array(columns).fill(NaN);
      for (const [t, v] of values ?? []) grid[Math.round((t - from) / step)] = Number(v);
      return { metric, values: grid };
    });
    return { times, series };
  }

  /** Values of a label among the series of a selector. */
  values(label, match, { from, to }) {
    return this.ask(`label/${label}/values`, { "match[]": match, start: from, end: to });
  }

  labels(match, { from, to }) {
    return this.ask("labels", { "match[]": match, start: from, end: to });
  }

  /** Exemplars: [{labels of the series, trace, time, value}], newest first. Backends without them have none. */
  async exemplars(query, { from, to }) {
    let data;
    try {
      data = await this.ask("query_exemplars", { query, start: from, end: to });
    } catch (error) {
      if (error.name === "AbortError" || !error.status || error.status < 400) throw error;
      return [];
    }
    return (data ?? [])
      .flatMap(({ seriesLabels, exemplars }) =>
        exemplars.map((e) => ({ series: seriesLabels, trace: e.labels.trace_id ?? e.labels.traceID, labels: e.labels, time: Number(e.timestamp), value: Number(e.value) })),
      )
      .sort((a, b) => b.time - a.time);
  }
}

/** A label's name in a path. One that a path cannot hold safely has the escaped form that Prometheus reads as well. */
export const inPath = (label) => (!/[%?#\\]|(^|\/)\.{0,2}(\/|$)/.test(label) ? encodeURIComponent(label)
  : `U__${[...label].map((c) => (/[a-zA-Z0-9:]/.test(c) ? c : c === "_" ? "__" : `_${c.codePointAt(0).toString(16)}_`)).join("")}`);

const plain = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
const quote = (text) => JSON.stringify(text);

/** A label matcher: text for =, an array for one of them, {not: array} for none of them, {re} for a regular expression. */
export function matcher(label, value) {
  const name = plain.test(label) ? label : quote(label);
  const any = (values) => quote(values.map(escapeRegExp).join("|"));
  if (Array.isArray(value)) return `${name}=~${any(value)}`;
  if (typeof value === "object") return value.not ? `${name}!~${any(value.not)}` : `${name}=~${quote(value.re)}`;
  return `${name}=${quote(value)}`;
}

/** A selector of a metric by its name and matchers: {label: value}. */
export function select(name, matchers = {}) {
  return `{${[`__name__=${quote(name)}`, ...Object.entries(matchers).map(([l, v]) => matcher(l, v))].join(",")}}`;
}

const escapeRegExp = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
