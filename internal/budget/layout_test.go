// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-llm/otelcol-llm/internal/budget"
)

// resolutions are what the far edge of each window is known to.
var resolutions = map[time.Duration]time.Duration{
	time.Minute:      time.Minute,
	5 * time.Minute:  time.Minute,
	30 * time.Minute: time.Minute,
	time.Hour:        5 * time.Minute,
	2 * time.Hour:    5 * time.Minute,
	6 * time.Hour:    30 * time.Minute,
	day:              2 * time.Hour,
	3 * day:          6 * time.Hour,
	7 * day:          6 * time.Hour,
	28 * day:         day,
	90 * day:         3 * day,
	365 * day:        9 * day,
}

func TestTheFarEdgeOfAWindowIsKnownToATwelfthOrBetter(t *testing.T) {
	all := make([]time.Duration, 0, len(resolutions))
	for w, want := range resolutions {
		assert.Equal(t, want, budget.NewLayout(w).Resolution(w), w)
		all = append(all, w)
	}
	l := budget.NewLayout(all...)
	for w, want := range resolutions {
		assert.Equal(t, want, l.Resolution(w), "%v among all", w)
	}
	assert.Equal(t, 365*day, l.Span())
	assert.Equal(t, time.Minute, l.Resolution(time.Second))
	assert.Equal(t, 9*day, l.Resolution(1000*day))
}

func TestALayoutWithoutWindowsKeepsMinutes(t *testing.T) {
	l := budget.NewLayout(0, -time.Hour)
	assert.Equal(t, time.Minute, l.Resolution(time.Hour))
	assert.Equal(t, time.Minute, l.Span())
}

// Scenario: one event every minute, for longer than is kept; windows are asked for at every minute of half a day, at the
// newest event and at a watermark up to two minutes behind it. Guarantees: a window holds all of its events, and at most those
// of its resolution more.
func TestAWindowHoldsItsEventsAndAtMostItsResolutionMore(t *testing.T) {
	l := budget.NewLayout(burn...)
	one := budget.Counts{Good: 1, Total: 1, Observed: time.Minute}
	r := full(l, func(int64) budget.Counts { return one })
	var sums []budget.Counts
	for i := range int64(12 * 60) {
		now := start + i*minute
		r.Add(l, now, one)
		for behind := range int64(4) {
			end := (now/minute + 1 - behind) * minute // of the newest minute, or up to two before that minute
			sums = r.Sums(l, end, burn, sums)
			for k, c := range sums {
				want := burn[k].Minutes()
				assert.GreaterOrEqual(t, c.Total, want, burn[k])
				assert.Less(t, c.Total, want+resolutions[burn[k]].Minutes(), burn[k])
				assert.Equal(t, time.Duration(c.Total)*time.Minute, c.Observed)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// Guarantees: what is kept is bounded by the windows, not by the traffic, and by few windows of very different length too.
func TestARingIsBounded(t *testing.T) {
	f := func(limit int, windows ...time.Duration) {
		t.Helper()
		l := budget.NewLayout(windows...)
		var r budget.Ring
		most := 0
		for i := range int64(l.Span()/time.Minute) * 3 / 2 {
			r.Add(l, start+i*minute, traffic(i))
			most = max(most, r.Len())
		}
		assert.LessOrEqual(t, most, limit)
		assert.Greater(t, most, limit*9/10, "the limit says nothing")
	}
	f(112, burn...)
	f(30, 28*day)
	f(56, 5*time.Minute, 28*day)
	f(7, 5*time.Minute)
}
