// SPDX-License-Identifier: Apache-2.0

package openslo

import "time"

// Bounds are the time window [start, end) that the moment at belongs to: of a rolling window the one that ends there, of
// a calendar window the one that holds it. It is false before a calendar's Start, when no budget has begun.
//
// Days, weeks, months, quarters and years follow the calendar of Location, so a day in which the clocks change has 23 or
// 25 hours. A window that begins on the 31st begins on the last day of months that are shorter.
func (w TimeWindow) Bounds(at time.Time) (start, end time.Time, ok bool) {
	if w.Rolling || w.Location == nil {
		return w.shifted(at, -1), at, true
	}
	if at.Before(w.Start) {
		return time.Time{}, time.Time{}, false
	}
	// The estimate is right but for the days by which months and years differ from Approx.
	n := int(at.Sub(w.Start) / w.Duration.Approx())
	for n > 0 && w.shifted(w.Start, n).After(at) {
		n--
	}
	for !w.shifted(w.Start, n+1).After(at) {
		n++
	}
	return w.shifted(w.Start, n), w.shifted(w.Start, n+1), true
}

// shifted is t and n windows.
func (w TimeWindow) shifted(t time.Time, n int) time.Time {
	if w.Location != nil {
		t = t.In(w.Location)
	}
	n *= w.Duration.Count
	switch w.Duration.Unit {
	case 'M':
		return addMonths(t, n)
	case 'Q':
		return addMonths(t, 3*n)
	case 'Y':
		return addMonths(t, 12*n)
	}
	if w.Location == nil { // no calendar has a say: a rolling day has 24 hours
		return t.Add(time.Duration(n) * Duration{Count: 1, Unit: w.Duration.Unit}.Approx())
	}
	days := n
	if w.Duration.Unit == 'w' {
		days = 7 * n
	}
	return t.AddDate(0, 0, days)
}

// addMonths is AddDate that stays in the month: a month after 31 January is 28 February, not 3 March.
func addMonths(t time.Time, n int) time.Time {
	moved := t.AddDate(0, n, 0)
	if moved.Day() != t.Day() {
		return moved.AddDate(0, 0, -moved.Day())
	}
	return moved
}
