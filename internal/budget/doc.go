// SPDX-License-Identifier: Apache-2.0

// Package budget keeps the books of one judged series: what was good and what was not over days and months, in a few
// hundred bytes, so that error budgets and burn rates are sums of events and never averages of ratios.
//
// A Ring holds counts by event time in slots that grow coarser with age: the far edge of a long window is known to the
// day, that of a short one to the minute. A Layout, shared by all series of an SLO, says how coarse. What a ring holds
// is decided by what was added and by the newest time alone: the order does not matter, and rings merge.
//
// Times are Unix nanoseconds and come in as parameters. Nothing here is safe for concurrent use but Layout.
package budget
