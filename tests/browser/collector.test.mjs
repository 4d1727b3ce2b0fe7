// SPDX-License-Identifier: Apache-2.0
// The page of the shipped binary: builtin:all-in-one, its own database, and a fleet of which one model version becomes slower
// in one region after twenty seconds.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browser, collector, loaded, open } from "./harness.mjs";

let shipped, chrome, page;

before(async () => {
  [shipped, chrome] = await Promise.all([collector(), browser()]);
  page = await open(chrome, `${shipped.url}?from=now-15m&refresh=0`);
});

after(async () => {
  await chrome?.close();
  await shipped?.stop();
});

const text = async (selector) => (await page.locator(selector).first().innerText()).replace(/\s+/g, " ");

/** Refreshes until the page says something. */
async function until(selector, wanted, seconds) {
  for (const end = Date.now() + seconds * 1000; ; ) {
    await page.keyboard.press("r");
    await page.waitForTimeout(500);
    await loaded(page);
    const said = (await page.locator(selector).count()) > 0 ? await text(selector) : "";
    if (wanted.test(said)) return said;
    assert.ok(Date.now() < end, `after ${seconds} s ${selector} says ${JSON.stringify(said)}, not ${wanted}: ${await text("main")}`);
  }
}

const goTo = async (view) => {
  await page.locator(`#views [data-key=${view}]`).click();
  await loaded(page);
};

test("promises appear, and all are kept", async () => {
  await until("h1", /^All promises kept$/, 30);
  for (const name of ["availability 99", "ttft p95"]) assert.match(await text(`tr.promise:has-text("${name}")`), /✓ ?ok chat .* ▸ 4 groups/);
  assert.equal(await page.locator(".banner, .error").count(), 0);
});

test("the one that breaks stands first, with the group that breaks it", async () => {
  await until("h1", /^1 promise of 2 violated$/, 60);
  assert.match(await text("tr.promise"), /✕ ?violated chat ttft p95 latency ▸ 1 of 4 groups [1-9][\d.]* s \d+ % over objective ≤ 750 ms/);
  await page.getByRole("button", { name: "1 of 4 groups" }).click();
  assert.match(await text("tr.group"), /violated cloud_region eu-west-1 model_version v2/);
});

test("the heatmap names the guilty cell, and a click opens it", async () => {
  await goTo("heatmap");
  assert.equal(await text("h1"), "1 cell of 8 is worse than promised");
  assert.match(await text(".worst"), /^chat ttft p95 cloud_region eu-west-1 model_version v2 \d+ % worse since \d\d:\d\d$/);
  await page.locator(".worst a").click();
  await page.locator(".facts").waitFor();
  await loaded(page);
  assert.match(await text(".facts"), /observed [1-9][\d.]* s ✕ ?violated objective ≤ 750 ms/);
  assert.equal(await page.locator(".uplot canvas").count(), 1);
});

test("the violation stands under violations, with its policy", async () => {
  await goTo("violations");
  await until("tbody tr", /chat ttft p95 cloud_region eu-west-1 model_version v2 ttft-2x5s/, 30);
});

test("it is kept again, and no view has had a complaint", async () => {
  await goTo("promises");
  await until("h1", /^All promises kept$/, 60);
  await until("tr.promise:has-text('ttft')", /overspent by \d+ % of the under 1 % that was observed [\d.]+ × 1$/, 90);
  assert.deepEqual(page.complaints, []);
});
