// SPDX-License-Identifier: Apache-2.0
// Draws the pictures of docs/images anew, of the demo as it runs: npm run screenshots.

import { join } from "node:path";
import { browser, collector, loaded, open, root } from "./harness.mjs";

const [shipped, chrome] = await Promise.all([collector(), browser()]);
const range = "from=now-1m&refresh=10s";

async function picture(name, query, options, act) {
  const page = await open(chrome, `${shipped.url}?${query}${options?.range ?? range}`, { width: 1280, height: 760, ...options });
  await act?.(page);
  await page.waitForTimeout(400);
  await page.screenshot({ path: join(root, "docs/images", `console-${name}.png`), fullPage: options?.whole });
  await page.context().close();
}

/** Waits until a page says something. */
async function until(query, wanted) {
  const page = await open(chrome, `${shipped.url}?${query}${range}`);
  while (!wanted.test((await page.locator("h1, h2").allInnerTexts()).join())) {
    await page.waitForTimeout(1000);
    await page.keyboard.press("r");
    await loaded(page);
  }
  await page.context().close();
}

const hover = async (page) => {
  const box = await page.locator(".heatmap").boundingBox();
  await page.mouse.move(box.x + box.width - 90, box.y + 32);
  await page.locator(".tip dd").nth(2).waitFor();
};
await until("view=heatmap&", /1 cell of 16 is degraded/);
await picture("promises", "", { height: 480 }, (page) => page.locator("tr.promise button").first().click());
await new Promise((r) => setTimeout(r, 12_000)); // a window more
await picture("heatmap", "view=heatmap&", {}, hover);
const degraded = await open(chrome, `${shipped.url}?view=heatmap&${range}`);
const cell = new URLSearchParams(await degraded.locator(".worst a").first().getAttribute("href")); // as it was then
await degraded.context().close();
await picture("dark", "view=heatmap&", { dark: true }, hover);
await picture("phone", "view=heatmap&", { width: 390, height: 844, whole: true });
await until("view=memory&", /1 leak of GPU memory/);
await picture("memory", "view=memory&", { height: 1000 });
await until("view=heatmap&", /No cell drifts/);
cell.set("from", "now-2m");
cell.delete("refresh");
await picture("cell", `${cell}&`, { whole: true, range: "refresh=0" });
await until("view=coupling&", /at once stops paying|No knee is known/);
await picture("throughput", "view=coupling&", { whole: true });
await chrome.close();
await shipped.stop();
