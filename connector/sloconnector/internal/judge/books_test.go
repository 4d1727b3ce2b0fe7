// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/budget"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// kept is a ratio with a target and a time window.
func kept(target float64, w openslo.TimeWindow) openslo.SLO {
	slo := ratio("kept", target)
	slo.TimeWindow = w
	return slo
}

// count adds events of a ratio.
func count(s *Series, t int64, good, bad float64) {
	s.AddGood(t, good)
	s.AddTotal(t, good+bad)
}

// balanceOf is what the books say as of now.
func balanceOf(t require.TestingT, s *Series) Balance {
	var b Balance
	require.True(t, s.Balance(&b))
	return b
}

// Scenario (sloth#241): a busy minute without errors, then a quiet one of nothing else.
// Guarantees: what is spent is bad events of all events; the ratios of the minutes are not averaged.
func TestReport1UnevenTrafficIsWeightedByEvents(t *testing.T) {
	j := newJudge([]openslo.SLO{kept(0.99, rolling("28d"))})
	s := j.Series(0, nil)
	count(s, t0, 1000, 0)
	count(s, t0+minute, 0, 10)
	j.Advance(t0 + 2*minute)
	b := balanceOf(t, s)
	assert.Equal(t, t0+2*minute, b.At)
	assert.InDelta(t, 1-10.0/1010/0.01, b.Remaining, 1e-9)
	for i, w := range BurnWindows {
		assert.InDelta(t, 10.0/1010/0.01, b.Burn[i], 1e-9, w)
	}
}

// Scenario (kibana#181577, #197064): slices of five minutes: 95 of 100, 80 of 100, none at all, 9 of 10.
// Guarantees: a slice is good or bad as a whole, and one without events is neither.
func TestReport6SlicesWithoutEventsAreNeitherGoodNorBad(t *testing.T) {
	f := func(method openslo.BudgetingMethod, want float64) {
		t.Helper()
		slo := kept(0.5, rolling("28d"))
		slo.Budgeting, slo.Objective.TimeSliceWindow, slo.Objective.TimeSliceTarget = method, 5*time.Minute, 0.9
		j := newJudge([]openslo.SLO{slo})
		s := j.Series(0, nil)
		for i, counts := range [][2]float64{{95, 5}, {80, 20}, {}, {9, 1}} {
			at := t0 + int64(i)*5*minute
			if counts[0] > 0 { // spread over minutes: the slice is what is judged
				count(s, at, counts[0], 0)
				count(s, at+4*minute, 0, counts[1])
			}
		}
		j.Advance(t0 + 20*minute)
		assert.InDelta(t, want, balanceOf(t, s).Remaining, 1e-9, method)
	}
	f(openslo.Timeslices, 1-(1.0/3)/0.5)
	f(openslo.RatioTimeslices, 1-((0.05+0.2+0.1)/3)/0.5)
}

func TestAnOpenSliceIsNotCounted(t *testing.T) {
	slo := kept(0.5, rolling("28d"))
	slo.Budgeting, slo.Objective.TimeSliceWindow, slo.Objective.TimeSliceTarget = openslo.Timeslices, 5*time.Minute, 0.9
	j := newJudge([]openslo.SLO{slo})
	s := j.Series(0, nil)
	count(s, t0, 1, 9)
	j.Advance(t0 + 4*minute)
	assert.InDelta(t, 1, balanceOf(t, s).Remaining, 0)
	j.Advance(t0 + 5*minute)
	assert.InDelta(t, -1, balanceOf(t, s).Remaining, 1e-9)
}

// Scenario: slices as long as the short window of a burn rate, all bad.
// Guarantees: between the ends of two slices, the burn rate does not look as if there were no slice.
func TestAWindowAsLongAsASliceAlwaysHoldsOne(t *testing.T) {
	slo := kept(0.5, rolling("28d"))
	slo.Budgeting, slo.Objective.TimeSliceWindow, slo.Objective.TimeSliceTarget = openslo.Timeslices, 5*time.Minute, 0.9
	j := New(catalogOf(slo), Options{Window: 5 * time.Minute, MaxSeries: 1, TTL: time.Hour, BurnRates: []BurnRate{
		{Long: time.Hour, Short: 5 * time.Minute, Factor: 2, Severity: "page"},
	}})
	s := j.Series(0, nil)
	for m := range int64(60) {
		count(s, t0+m*minute, 0, 10)
		j.Advance(t0 + (m+1)*minute)
		if m >= 5 {
			assert.InDelta(t, 2, balanceOf(t, s).Burn[0], 1e-9, "minute %d", m)
		}
	}
	events := take(j)
	require.Len(t, events, 1, "it opens once, and stays")
	assert.Equal(t, t0+5*minute, events[0].Time)
}

// Scenario: a budget for each day in Berlin, where the clocks change.
// Guarantees: a day begins and ends at midnight there, after 24, 23 or 25 hours, and a new day is a new budget.
func TestADayInBerlinHas23Or25HoursWhenTheClocksChange(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	f := func(day time.Time, hours int64) {
		t.Helper()
		j := newJudge([]openslo.SLO{kept(0.9, calendar("1d", time.Date(2026, 1, 1, 0, 0, 0, 0, berlin)))})
		s := j.Series(0, nil)
		begin := day.UnixNano()
		end := begin + hours*hour
		remaining := func(at int64) float64 { j.Advance(at); return balanceOf(t, s).Remaining }
		count(s, begin-2*minute, 0, 5) // yesterday
		assert.InDelta(t, -9, remaining(begin-minute), 1e-9)
		count(s, begin-minute, 0, 5)
		count(s, begin, 9, 1)
		assert.InDelta(t, 0, remaining(begin+minute), 1e-9, "yesterday is over")
		count(s, end-2*minute, 10, 0)
		assert.InDelta(t, 0.5, remaining(end-minute), 1e-9, "the last minutes are today's")
		count(s, end-minute, 0, 10)
		count(s, end, 10, 0)
		assert.InDelta(t, 1, remaining(end+minute), 1e-9, "tomorrow")
	}
	f(time.Date(2026, 3, 28, 0, 0, 0, 0, berlin), 24)
	f(time.Date(2026, 3, 29, 0, 0, 0, 0, berlin), 23)
	f(time.Date(2026, 10, 25, 0, 0, 0, 0, berlin), 25)
}

func TestAMonthEndsByItsTimeZone(t *testing.T) {
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	require.NoError(t, err)
	j := newJudge([]openslo.SLO{kept(0.9, calendar("1M", time.Date(2026, 1, 1, 0, 0, 0, 0, tokyo)))})
	s := j.Series(0, nil)
	count(s, time.Date(2026, 1, 31, 14, 59, 0, 0, time.UTC).UnixNano(), 0, 10) // 23:59 in Tokyo
	february := time.Date(2026, 1, 31, 15, 0, 0, 0, time.UTC).UnixNano()
	j.Advance(february)
	assert.InDelta(t, 1, balanceOf(t, s).Remaining, 0, "of February there is nothing yet")
	count(s, february, 10, 0)
	j.Advance(february + minute)
	b := balanceOf(t, s)
	assert.InDelta(t, 1, b.Remaining, 1e-9)
	assert.InDelta(t, 1, b.Coverage, 1e-9, "the minute before, and with it all of February, is heard of")
}

func TestARollingWindowForgets(t *testing.T) {
	j := newJudge([]openslo.SLO{kept(0.9, rolling("28d"))})
	s := j.Series(0, nil)
	count(s, t0, 0, 10)
	for d := int64(1); d <= 30; d++ {
		count(s, t0+d*day, 10, 0)
		j.Advance(t0 + d*day + minute)
		b := balanceOf(t, s)
		switch {
		case d < 28:
			assert.InDelta(t, 1-10/(10+10*float64(d))/0.1, b.Remaining, 1e-9, "day %d", d)
		case d >= 29: // the far edge is known to the day
			assert.InDelta(t, 1, b.Remaining, 1e-9, "day %d", d)
		}
	}
}

// Scenario: input each minute; then none for an hour; then again.
// Guarantees: coverage begins at 0 and grows; what nobody told of is not observed.
func TestCoverageIsWhatWasHeardOf(t *testing.T) {
	j := newJudge([]openslo.SLO{kept(0.9, rolling("1d"))})
	s := j.Series(0, nil)
	coverage := func(at int64) float64 { j.Advance(at); return balanceOf(t, s).Coverage * 24 * 60 }
	count(s, t0, 1, 0)
	assert.InDelta(t, 0, coverage(t0+minute), 1e-9)
	for m := int64(1); m <= 60; m++ {
		count(s, t0+m*minute, 1, 0)
	}
	assert.InDelta(t, 60, coverage(t0+61*minute), 1e-9)
	count(s, t0+120*minute, 1, 0)
	count(s, t0+124*minute, 1, 0) // no further apart than the evaluation window
	assert.InDelta(t, 64, coverage(t0+125*minute), 1e-9)
}

// Scenario: a cumulative series is scraped, then the Collector is away for three hours.
// Guarantees: the point after it tells of the time in between, once, whoever else was heard.
func TestAPointThatSaysSinceWhenItCountsCoversTheTime(t *testing.T) {
	j := newJudge([]openslo.SLO{kept(0.9, rolling("1d"))})
	s := j.Series(0, nil)
	coverage := func(at int64) float64 { j.Advance(at); return balanceOf(t, s).Coverage * 24 * 60 }
	count(s, t0, 1, 0)
	s.Cover(t0-2*minute, t0)
	assert.InDelta(t, 2, coverage(t0+minute), 1e-9)
	count(s, t0+180*minute, 1, 0)
	s.Cover(t0, t0+180*minute)
	count(s, t0+180*minute+1, 1, 0)
	s.Cover(t0-minute, t0+180*minute+1) // another input series
	assert.InDelta(t, 182, coverage(t0+181*minute), 1e-9)
}

// Scenario: a backend knows of the last ten days, and the series has had input for five minutes of them already.
// Guarantees: the past is in the books; what both know is counted once.
func TestABackfillIsNotCountedTwice(t *testing.T) {
	j := newJudge([]openslo.SLO{kept(0.9, rolling("28d"))})
	s := j.Series(0, nil)
	for m := range int64(5) {
		count(s, t0+m*minute, 10, 0)
	}
	j.Advance(t0 + 3*minute)
	var fills []Fill
	for d := int64(10); d > 0; d-- {
		fills = append(fills, Fill{t0 - d*day, budget.Counts{Good: 99, Total: 100, Observed: 24 * time.Hour}})
	}
	fills = append(fills, Fill{t0, budget.Counts{Good: 0, Total: 1000}}) // heard already
	assert.Equal(t, 10, j.Backfill(0, nil, t0+4*minute, fills))
	j.Advance(t0 + 5*minute)
	b := balanceOf(t, s)
	assert.InDelta(t, 1-10.0/1050/0.1, b.Remaining, 1e-9)
	assert.InDelta(t, 10.0/28, b.Coverage, 0.001)
}

func TestABackfillOfAGroupThatIsNoMoreOpensNothing(t *testing.T) {
	slo := kept(0.9, rolling("28d"))
	slo.GroupBy = []string{"pod"}
	j := newJudge([]openslo.SLO{slo}, policyOf(leaf(slo), 1, openslo.NoDataOpen))
	count(j.Series(0, []string{"here"}), t0, 10, 0)
	j.Backfill(0, []string{"gone"}, t0, []Fill{{t0 - day, budget.Counts{Good: 1, Total: 2, Observed: time.Hour}}})
	count(j.Series(0, []string{"here"}), t0+5*minute, 10, 0)
	j.Advance(t0 + 10*minute)
	assert.Empty(t, take(j))
	b := balanceOf(t, j.Series(0, []string{"gone"}))
	assert.InDelta(t, -4, b.Remaining, 1e-9)
}

// Guarantees: budget and burn rates are what a model finds that keeps every event, at the resolution of the ring: all events
// of the window, and at most those of one slot before it more.
func TestTheBooksAreRecomputedFromRawEvents(t *testing.T) {
	windows := append([]time.Duration{28 * 24 * time.Hour}, BurnWindows...)
	rapid.Check(t, func(t *rapid.T) {
		slo := kept(0.9, rolling("28d"))
		j := newJudge([]openslo.SLO{slo})
		s := j.Series(0, nil)
		type event struct {
			t         int64
			good, bad float64
		}
		var raw []event
		at := t0
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			at += rapid.SampledFrom([]int64{1, minute / 2, 4 * minute, 20 * minute, 7 * hour, 3 * day}).Draw(t, "step")
			e := event{at, float64(rapid.IntRange(0, 50).Draw(t, "good")), float64(rapid.IntRange(0, 9).Draw(t, "bad"))}
			raw = append(raw, e)
			count(s, e.t, e.good, e.bad)
			if rapid.Bool().Draw(t, "advance") {
				j.Advance(at)
			}
		}
		j.Advance(at + 2*minute)
		now := j.ledger.balanced
		of := func(w time.Duration) (good, total float64) {
			for _, e := range raw {
				if e.t >= now-int64(w) && e.t < now {
					good, total = good+e.good, total+e.good+e.bad
				}
			}
			return good, total
		}
		for _, w := range windows {
			c := s.account.ring.Sum(s.promise.books.layout, now-int64(w), now)
			good, total := of(w)
			mostGood, most := of(w + s.promise.books.layout.Resolution(w))
			require.True(t, total <= c.Total && c.Total <= most, "%s: %v of [%v, %v]", w, c.Total, total, most)
			require.True(t, good <= c.Good && c.Good <= mostGood, "%s: %v of [%v, %v]", w, c.Good, good, mostGood)
		}
		b := balanceOf(t, s)
		for i, w := range BurnWindows[:2] { // to the minute, and now is one
			good, total := of(w)
			if total == 0 {
				require.True(t, math.IsNaN(b.Burn[i]))
				continue
			}
			require.InDelta(t, (total-good)/total/(1-0.9), b.Burn[i], 1e-9, w)
		}
	})
}
