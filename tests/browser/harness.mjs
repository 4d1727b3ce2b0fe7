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

const port = () => new Promise((done) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});

async function answers(url) {
  for (let i = 0; i < 300; i++) {
    try {
      if ((await fetch(url)).ok) return;
    } catch {
      // not yet
    }
    await new Promise((r) => setTimeout(r, 100));
  }
  throw new Error(`${url} does not answer`);
}

const ends = (child) => new Promise((done) => child.once("exit", done));

/** A Prometheus with an empty database: {url, stop}. strategy is how it spells OTLP names; at is where it listens, scrape what it scrapes. */
export async function prometheus({ strategy = "UnderscoreEscapingWithSuffixes", at, scrape } = {}) {
  const binary = required("PROMETHEUS", "", "make test-browser builds it; or set PROMETHEUS");
  const folder = mkdtempSync(join(tmpdir(), "prometheus-"));
  at ??= `127.0.0.1:${await port()}`;
  writeFileSync(join(folder, "prometheus.yml"), `otlp: {translation_strategy: ${strategy}}\nstorage: {tsdb: {out_of_order_time_window: 1d}, exemplars: {max_exemplars: 10000}}\n${scrape ? `scrape_configs: [{job_name: otelcol-llm, scrape_interval: 5s, static_configs: [{targets: [${JSON.stringify(scrape)}]}]}]\n` : ""}`);
  const child = spawn(binary, [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=${at}`, "--web.enable-otlp-receiver", "--enable-feature=exemplar-storage,otlp-deltatocumulative", "--log.level=warn"], { stdio: ["ignore", "inherit", "inherit"] });
  const ended = ends(child);
  await answers(`http://${at}/-/ready`);
  return { url: `http://${at}`, async stop() { child.kill(); await ended; rmSync(folder, { recursive: true }); } };
}

let built;

/** The console in front of a Prometheus: {url, stop}. */
export async function startConsole(queryUrl, traceUrl = "http://localhost:16686/trace/{trace_id}") {
  if (!built) {
    built = join(mkdtempSync(join(tmpdir(), "console-")), "console");
    execFileSync("go", ["build", "-o", built, "./tests/browser/console"], { cwd: root, stdio: "inherit" });
  }
  const at = `127.0.0.1:${await port()}`;
  const child = spawn(built, ["-endpoint", at, "-query-url", queryUrl, "-trace-url", traceUrl], { stdio: ["pipe", "ignore", "inherit"] });
  const ended = ends(child);
  await answers(`http://${at}/config.json`);
  return { url: `http://${at}/`, async stop() { child.stdin.end(); await ended; } };
}

/** The demo, on ports of its own: the shipped Collector, builtin:all-in-one, beside a simulated fleet and its GPUs: {url, stop}. */
export async function collector() {
  for (const name of ["otelcol-llm", "llmsim"]) required("", join(root, "bin", name), "make build");
  const folder = mkdtempSync(join(tmpdir(), "otelcol-llm-")), demo = join(folder, "demo"), env = { ...process.env, TMPDIR: folder };
  execFileSync("go", ["build", "-o", demo, "./demo"], { cwd: root, stdio: "inherit" });
  for (const name of ["SIMULATOR", "CONSOLE", "TSDB", "PROMETHEUS", "OTLP_GRPC", "OTLP_HTTP", "HEALTH", "TELEMETRY"]) env[`DEMO_${name}_PORT`] = await port();
  const log = openSync(join(folder, "log"), "w"), child = spawn(demo, [], { cwd: root, env, stdio: ["ignore", log, log] });
  closeSync(log);
  const ended = ends(child), url = `http://localhost:${env.DEMO_CONSOLE_PORT}/`;
  const stop = async () => {
    child.kill();
    await ended;
    rmSync(folder, { recursive: true });
  };
  try {
    await answers(url);
  } catch (error) {
    console.error(readFileSync(join(folder, "log"), "utf8"));
    await stop();
    throw error;
  }
  return { url, stop };
}

export async function browser() {
  const executablePath = required("CHROMIUM", "/usr/bin/chromium", "apt-get install -y --no-install-recommends chromium");
  return chromium.launch({ executablePath, args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
}

/** Opens a page; what it complains about in its console is gathered in page.complaints. */
export async function open(chrome, url, { dark = false, width = 1360, height = 900 } = {}) {
  const context = await chrome.newContext({ colorScheme: dark ? "dark" : "light", viewport: { width, height }, locale: "en-GB", timezoneId: "UTC" });
  const page = await context.newPage();
  page.complaints = [];
  page.on("console", (m) => { if (["error", "warning"].includes(m.type())) page.complaints.push(m.text()); });
  page.on("pageerror", (e) => page.complaints.push(String(e)));
  page.on("requestfailed", (r) => { if (!r.failure()?.errorText.includes("ABORTED")) page.complaints.push(`${r.url()}: ${r.failure()?.errorText}`); });
  await page.goto(url);
  await loaded(page);
  return page;
}

export const loaded = (page) => page.waitForFunction(() => document.body.dataset.loaded === "yes", null, { timeout: 30_000 });
