// SPDX-License-Identifier: Apache-2.0
// Draws the pictures of docs/images anew: npm run screenshots.

import { join } from "node:path";
import { browser, loaded, open, prometheus, root, startConsole } from "./harness.mjs";
import { story } from "./data.mjs";

const p = await prometheus();
await story(p.url, Math.floor(Date.now() / 60000) * 60);
const c = await startConsole(p.url), chrome = await browser();

async function picture(name, query, options, act) {
  const page = await open(chrome, c.url + query, { width: 1280, height: 800, ...options });
  await act?.(page);
  await page.waitForTimeout(400);
  await page.screenshot({ path: join(root, "docs/images", `console-${name}.png`), fullPage: options?.whole });
  await page.context().close();
}

const hover = async (page) => {
  const box = await page.locator(".heatmap").boundingBox();
  await page.mouse.move(box.x + box.width - 140, box.y + 32);
  await page.locator(".tip dd").nth(4).waitFor();
};
const cell = async (page) => {
  await page.locator(".worst a").first().click();
  await page.locator(".facts").waitFor();
  await loaded(page);
};
await picture("promises", "?");
await picture("heatmap", "?view=heatmap", {}, hover);
await picture("cell", "?view=heatmap", { height: 1180 }, cell);
await picture("dark", "?view=heatmap", { dark: true }, hover);
await picture("phone", "?view=heatmap", { width: 390, height: 844 });
await chrome.close();
await c.stop();
await p.stop();
