// SPDX-License-Identifier: Apache-2.0
// Starts what the tests need: Prometheus, the console in front of it, the shipped Collector beside a simulated engine, and
// Chromium. All of it ends with the tests.

import { spawn, execFileSync } from "node:child_process";
import { createServer } from "node:net";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

export const here = dirname(fileURLToPath(import.meta.url));
export const root = resolve(here, "../..");
export const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

function required(variable, fallback, cure) {
  const path = process.env[variable] ?? fallback;
  if (!existsSync(path)) throw new Error(`${path} is not there: ${cure}`);
  return path;
}

/** How long a page may take for whatever it does, in milliseconds. */
const patience = 120_000;

const given = new Set();

/**
 * A port on which nobody listens: below those that systems give to connections that go out, since one of them could be taken before
 * somebody listens on it.
 */
async function port() {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000), server = createServer();
    const free = await new Promise((done) => server.once("error", () => done(false)).listen(port, "127.0.0.1", () => server.close(() => done(true))));
    if (!free || given.has(port)) continue;
    given.add(port);
    return port;
  }
}

/** Waits for what is not false, of what may fail meanwhile: for long, since that costs nothing where it comes. */
export async function eventually(what, ask, seconds = 600) {
  for (let end = Date.now() + seconds * 1000, why = "nothing"; ; ) {
    try {
      const answer = await ask();
      if (answer) return answer;
    } catch (error) {
      why = error;
    }
    if (Date.now() > end) throw new Error(`${what}: not after ${seconds} s`, { cause: why });
    await new Promise((r) => setTimeout(r, 100));
  }
}

const stops = new Set();

/** Starts a process, which stopAll ends if nobody else has: {up, stop}. It is up when ready says something, which is what up is then. */
async function start(program, args, options, end, ready, folder) {
  const child = spawn(program, args, options), ended = new Promise((done) => child.once("exit", (code) => done(code ?? "a signal")));
  let over;
  ended.then((code) => { over = code; });
  const stop = async () => {
    if (!stops.delete(stop)) return;
    end(child);
    await ended;
    if (folder) rmSync(folder, { recursive: true, force: true });
  };
  stops.add(stop);
  const up = await eventually(`${program} is up`, async () => over !== undefined ? { over } : ready());
  if (up.over !== undefined) throw new Error(`${program} has ended with ${up.over}`);
  return { up, stop };
}

const kill = (child) => child.kill(), answers = (url) => async () => (await fetch(url)).ok;

/** Ends what has been started and not been stopped, also where something has failed: what goes on would keep the tests from ending. */
export async function stopAll() {
  for (const stop of [...stops].reverse()) await stop();
}

/** A Prometheus with an empty database: {url, stop}. strategy is how it spells OTLP names; at is where it listens, scrape what it scrapes. */
export async function prometheus({ strategy = "UnderscoreEscapingWithSuffixes", at, scrape } = {}) {
  const binary = required("PROMETHEUS", "", "make test-browser builds it; or set PROMETHEUS");
  const folder = mkdtempSync(join(tmpdir(), "prometheus-"));
  at ??= `127.0.0.1:${await port()}`;
  writeFileSync(join(folder, "prometheus.yml"), `otlp: {translation_strategy: ${strategy}}\nstorage: {tsdb: {out_of_order_time_window: 1d}, exemplars: {max_exemplars: 10000}}\n${scrape ? `scrape_configs: [{job_name: otelcol-llm, scrape_interval: 5s, static_configs: [{targets: [${JSON.stringify(scrape)}]}]}]\n` : ""}`);
  const { stop } = await start(binary, [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=${at}`, "--web.enable-otlp-receiver", "--enable-feature=exemplar-storage,otlp-deltatocumulative", "--log.level=warn"], { stdio: ["ignore", "inherit", "inherit"] }, kill, answers(`http://${at}/-/ready`), folder);
  return { url: `http://${at}`, stop };
}

let built;

/** The console in front of a Prometheus: {url, stop}. */
export async function startConsole(queryUrl, traceUrl = "http://localhost:16686/trace/{trace_id}") {
  if (!built) {
    built = join(mkdtempSync(join(tmpdir(), "console-")), "console");
    execFileSync("go", ["build", "-o", built, "./tests/browser/console"], { cwd: root, stdio: "inherit" });
  }
  const at = `127.0.0.1:${await port()}`;
  const { stop } = await start(built, ["-endpoint", at, "-query-url", queryUrl, "-trace-url", traceUrl], { stdio: ["pipe", "ignore", "inherit"] }, (child) => child.stdin.end(), answers(`http://${at}/config.json`));
  return { url: `http://${at}/`, stop };
}

/** The demo, on ports of its own: the shipped Collector, builtin:all-in-one, beside a simulated fleet and its GPUs: {url, stop}. */
export async function collector() {
  for (const name of ["otelcol-llm", "llmsim"]) required("", join(root, "bin", name), "make build");
  const folder = mkdtempSync(join(tmpdir(), "otelcol-llm-")), demo = join(folder, "demo"), env = { ...process.env, TMPDIR: folder };
  execFileSync("go", ["build", "-o", demo, "./demo"], { cwd: root, stdio: "inherit" });
  for (const name of ["SIMULATOR", "CONSOLE", "TSDB", "PROMETHEUS", "OTLP_GRPC", "OTLP_HTTP", "HEALTH", "TELEMETRY"]) env[`DEMO_${name}_PORT`] = await port();
  const log = join(folder, "log"), to = openSync(log, "w"), said = () => readFileSync(log, "utf8");
  // Where it says that it is: another port than was asked for, if somebody was faster. The database begins to listen after the page.
  const ready = async () => {
    const url = /the console is there: (http:\/\/localhost:\d+\/)/.exec(said())?.[1];
    return url && (await fetch(`${url}api/v1/query?query=1`)).ok && url;
  };
  try {
    const { up: url, stop } = await start(demo, [], { cwd: root, env, stdio: ["ignore", to, to] }, kill, ready, folder);
    return { url, stop };
  } catch (error) {
    console.error(said());
    throw error;
  } finally {
    closeSync(to);
  }
}

export async function browser() {
  const executablePath = required("CHROMIUM", "/usr/bin/chromium", "apt-get install -y --no-install-recommends chromium");
  const chrome = await chromium.launch({ executablePath, timeout: patience, args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
  const stop = () => { stops.delete(stop); return chrome.close(); };
  stops.add(stop);
  return chrome;
}

/** Opens a page; what it complains about in its console is gathered in page.complaints. */
export async function open(chrome, url, { dark = false, width = 1360, height = 900 } = {}) {
  const context = await chrome.newContext({ colorScheme: dark ? "dark" : "light", viewport: { width, height }, locale: "en-GB", timezoneId: "UTC" });
  context.setDefaultTimeout(patience);
  const page = await context.newPage();
  page.complaints = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) page.complaints.push(m.text()); });
  page.on("pageerror", (e) => page.complaints.push(String(e)));
  page.on("requestfailed", (r) => { if (!r.failure()?.errorText.includes("ABORTED")) page.complaints.push(`${r.url()}: ${r.failure()?.errorText}`); });
  await page.goto(url);
  await loaded(page);
  return page;
}

export const loaded = (page) => page.waitForFunction(() => document.body.dataset.loaded === "yes", null, { timeout: patience });
