// SPDX-License-Identifier: Apache-2.0
// The first minutes, when events are counted and no window has closed: that is no fault, and it is said when it ends.

import * as format from "./format.js";
import { selector } from "./names.js";

const usual = 300, late = 30; // seconds: the length of a window unless a policy says otherwise, and how late data may be
const young = 900; // seconds for which a promise without a verdict is waited for

/** Promises whose events have come for a short time only: slo_id → since when. */
export async function counting({ names, evaluated }, client) {
  if (!names.events) return new Map();
  const heard = `timestamp(${selector(names, "events")})`;
  const begun = await client.instant(`min by (slo_id) (min_over_time(${heard}[${young}s:15s]) or ${heard})`, evaluated);
  return new Map(begun.filter((x) => evaluated - x.value < young - 60).map((x) => [x.metric.slo_id, x.value]));
}

/** When the window that holds a time has closed, if it is as long as usual. */
export const closes = (t) => (Math.floor(t / usual) + 1) * usual + late;

/** What is told of promises that wait since a time. */
export function sentence(since, now) {
  const end = closes(since), begun = `Events are counted since ${format.clockTime(since)}; the first verdict comes when their window closes`;
  return end > now
    ? `${begun}: at ${format.clockTime(end)}, in ${format.duration(end - now)}, where windows are five minutes long as usual, and sooner or later where a ViolationPolicy says so.`
    : `${begun}. That takes longer than the usual five minutes here: a ViolationPolicy has longer windows, or data is late.`;
}
