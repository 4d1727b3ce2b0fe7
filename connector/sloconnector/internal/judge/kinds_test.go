// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// composite is a catalog of a latency that weighs three quarters, a ratio that weighs one, and the whole that promises target.
func composite(target float64, group ...string) *openslo.Catalog {
	latency, errors := ttft(group...), kept(0.9, rolling("28d"))
	latency.TimeWindow, errors.GroupBy = rolling("28d"), group
	whole := openslo.SLO{
		ID: "whole", Name: "whole", Unit: "ratio", GroupBy: group, TimeWindow: rolling("28d"), Objective: openslo.Objective{Target: target},
		Indicator: openslo.Indicator{Parts: []openslo.Part{{ID: latency.ID, Share: 0.75}, {ID: errors.ID, Share: 0.25}}},
	}
	return &openslo.Catalog{SLOs: []openslo.SLO{latency, errors, whole}, Policies: []openslo.ViolationPolicy{policyOf(leaf(whole), 1, openslo.NoDataHold)}}
}

func compositeJudge(c *openslo.Catalog, rates ...BurnRate) *Judge {
	return New(c, Options{Window: 5 * time.Minute, MaxSeries: 100, TTL: time.Hour, BurnRates: rates})
}

// Guarantees: the SLI is the sum of the parts' ratios by their shares, whatever their traffic; a part without data could have any,
// and only what is proven is violated.
func TestACompositeIsTheSumOfItsParts(t *testing.T) {
	f := func(target float64, latency []uint64, good, total float64, want State, bounds ...float64) {
		t.Helper()
		j := compositeJudge(composite(target))
		if latency != nil {
			addCounts(j.Series(0, nil), t0, latency)
		}
		if total > 0 {
			count(j.Series(1, nil), t0, good, total-good)
		}
		j.Advance(t0 + 5*minute)
		r := j.Series(2, nil).Result()
		assert.Equal(t, want, r.State)
		got := []float64{r.Value, r.Lower, r.Upper}
		for i := range bounds {
			assert.InDelta(t, bounds[i], got[i], 1e-9)
		}
		opened := 0
		if want == Violated {
			opened = 1
		}
		assert.Len(t, take(j), opened)
	}
	half := []uint64{0, 0, 5, 0, 0, 5, 0}
	f(0.6, half, 1000, 1000, OK, 0.625, 0.625, 0.625)
	f(0.63, half, 1000, 1000, Violated, 0.625, 0.625, 0.625)
	f(0.6, half, 0, 0, AtRisk, 0.5, 0.375, 0.625)
	f(0.63, half, 0, 0, Violated, 0.5, 0.375, 0.625) // even if the other part were all good
	f(0.37, half, 0, 0, OK, 0.5, 0.375, 0.625)       // even if it were all bad
	f(0.9, nil, 1, 2, Violated, 0.5, 0.125, 0.875)
	f(0.87, nil, 1, 2, AtRisk, 0.5, 0.125, 0.875)
	f(0.9, nil, 0, 0, NoData)
}

func TestACompositeIsJudgedByGroup(t *testing.T) {
	j := compositeJudge(composite(0.9, "region"))
	for region, bad := range map[string]uint64{"eu": 0, "us": 50} {
		addCounts(j.Series(0, []string{region}), t0, []uint64{0, 0, 100 - bad, 0, 0, bad, 0})
		count(j.Series(1, []string{region}), t0, 10, 0)
	}
	j.Advance(t0 + 5*minute)
	events := take(j)
	require.Len(t, events, 1)
	assert.Equal(t, []any{"whole", []string{"us"}}, []any{events[0].Of.SLO().ID, events[0].Of.values})
	assert.Contains(t, events[0].Reason, "whole was 0.625, promised at least 0.9")
}

// Guarantees: the budget of a composite is spent by its ratio, and parts without events are left out.
func TestTheBudgetOfAComposite(t *testing.T) {
	j := compositeJudge(composite(0.5), BurnRate{Long: time.Hour, Short: 5 * time.Minute, Factor: 1.2, Severity: "page"})
	latency, errors, whole := j.Series(0, nil), j.Series(1, nil), j.Series(2, nil)
	for m := range int64(5) {
		addCounts(latency, t0+m*minute, []uint64{0, 0, 1, 0, 0, 3, 0})
	}
	j.Advance(t0 + 5*minute)
	assert.InDelta(t, 1-0.75/0.5, balanceOf(t, whole).Remaining, 1e-9)
	assert.InDelta(t, 0, balanceOf(t, whole).Coverage, 1e-9, "of a part nothing was heard")
	var opened []string
	for _, e := range take(j) {
		opened = append(opened, e.Of.SLO().ID)
	}
	assert.Contains(t, opened, "whole")
	for m := int64(5); m < 10; m++ {
		addCounts(latency, t0+m*minute, []uint64{0, 0, 4, 0, 0, 0, 0})
		count(errors, t0+m*minute, 1000, 0)
	}
	j.Advance(t0 + 10*minute)
	// 25 of 40 good at 0.75, and 5000 of 5000 at 0.25
	assert.InDelta(t, 1-(1-(0.75*25.0/40+0.25))/0.5, balanceOf(t, whole).Remaining, 1e-9)
	assert.Greater(t, balanceOf(t, whole).Coverage, 0.0)
	j.Advance(t0 + 16*minute)
	closed := 0
	for _, e := range take(j) {
		if e.Kind == BurnAlert && !e.Opened && e.Of.SLO().ID == "whole" {
			closed++
		}
	}
	assert.Equal(t, 1, closed)
}

// Scenario: at least 100 tokens a second, in intervals of two minutes; in one of them nothing counts, in one there is no input.
// Guarantees: an interval is one event, at its end; without input it is none.
func TestARateIsOneEventAnInterval(t *testing.T) {
	slo := ttft()
	slo.Unit, slo.TimeWindow = "tokens_per_second", rolling("28d")
	slo.Indicator.Threshold = &openslo.Selector{Rate: 2 * time.Minute}
	slo.Objective = openslo.Objective{Op: openslo.OpGTE, Value: 100, Target: 0.5}
	j := newJudge([]openslo.SLO{slo})
	s := j.Series(0, nil)
	start := t0 / (2 * minute) * 2 * minute
	told := func(m int64) []int64 {
		j.Advance(start + m*minute)
		good, bad, at := s.Events()
		return []int64{int64(good), int64(bad), (at - start) / minute}
	}
	s.AddAmount(start, 6000)
	s.AddAmount(start+119*int64(time.Second), 6000)
	assert.Equal(t, []int64{0, 0, 1}, told(1))
	assert.Equal(t, []int64{1, 0, 2}, told(2), "100 a second")
	s.AddAmount(start+3*minute, 11_999)
	assert.Equal(t, []int64{1, 1, 4}, told(4))
	s.AddAmount(start+5*minute, 0) // input, of which nothing counts
	assert.Equal(t, []int64{1, 2, 6}, told(6))
	assert.Equal(t, []int64{1, 2, 6}, told(8), "without input there is no event")
	assert.InDelta(t, 1-(2.0/3)/0.5, balanceOf(t, s).Remaining, 1e-9)
	assert.InDelta(t, 2, balanceOf(t, s).Burn[0], 1e-9, "of five minutes, the two that were missed")
	assert.InDelta(t, (2.0/3)/0.5, balanceOf(t, s).Burn[1], 1e-9)
}

// Scenario: of 100 requests, some were measured, some have no value, and some are only known to have been expected.
// Guarantees: what was not measured widens the bounds; violated is only what is missed whatever it was.
func TestWhatWasNotMeasuredWidensTheBounds(t *testing.T) {
	f := func(good, bad, unknown uint64, expected float64, want State, unmeasured uint64, lower, upper float64) {
		t.Helper()
		j := newJudge([]openslo.SLO{ttft()})
		s := j.Series(0, nil)
		addCounts(s, t0, []uint64{0, 0, good, 0, 0, bad, 0})
		s.AddUnknown(t0, unknown)
		s.AddExpected(t0, expected)
		j.Advance(t0 + 5*minute)
		r := s.Result()
		assert.Equal(t, want, r.State)
		assert.Equal(t, unmeasured, r.Unmeasured)
		assert.InDelta(t, lower, r.GoodLower, 1e-9)
		assert.InDelta(t, upper, r.GoodUpper, 1e-9)
	}
	f(100, 0, 0, 0, OK, 0, 1, 1)
	f(96, 0, 4, 0, OK, 4, 0.96, 1)
	f(94, 0, 6, 0, AtRisk, 6, 0.94, 1)
	f(90, 4, 6, 0, AtRisk, 6, 0.90, 0.96)
	f(88, 6, 6, 0, Violated, 6, 0.88, 0.94)
	f(90, 0, 0, 100, AtRisk, 10, 0.9, 1)    // vllm#55634: the aborted are in no histogram
	f(90, 0, 4, 100, AtRisk, 10, 0.9, 1)    // those without a value were expected, too
	f(90, 10, 0, 50, Violated, 0, 0.9, 0.9) // more than expected
}

// Scenario: no values at all, though a hundred were expected.
// Guarantees: it is without data, and the value is not made up.
func TestNothingMeasuredIsNoData(t *testing.T) {
	j := newJudge([]openslo.SLO{ttft()})
	s := j.Series(0, nil)
	s.AddExpected(t0, 100)
	s.AddUnknown(t0, 3)
	j.Advance(t0 + 5*minute)
	assert.Equal(t, NoData, s.Result().State)
	assert.True(t, math.IsNaN(s.Result().Value))
}

// Scenario: the parts of a ratio come from sources whose clocks differ a little, so good events and the total of the same requests
// lie in different minutes.
// Guarantees: nothing is counted bad for that, whichever comes first; what is missing when the window closes is.
func TestPartsOfARatioInDifferentMinutesAreOneRatio(t *testing.T) {
	for _, goodFirst := range []bool{true, false} {
		j := newJudge([]openslo.SLO{kept(0.9, rolling("28d"))})
		s := j.Series(0, nil)
		first, second := s.AddGood, s.AddTotal
		if !goodFirst {
			first, second = second, first
		}
		for m := range int64(4) {
			n := float64(100 + 10*m)
			first(t0+(m+1)*minute-1, n)
			second(t0+(m+1)*minute+1, n)
			j.Advance(t0 + m*minute)
		}
		j.Advance(t0 + 5*minute)
		assert.InDelta(t, 1, balanceOf(t, s).Remaining, 1e-9, goodFirst)
		good, bad, _ := s.Events()
		assert.Equal(t, []uint64{460, 0}, []uint64{good, bad}, goodFirst)

		s.AddTotal(t0+5*minute, 100)
		s.AddGood(t0+6*minute, 40)
		j.Advance(t0 + 9*minute)
		good, bad, _ = s.Events()
		assert.Equal(t, []uint64{460, 0}, []uint64{good, bad}, "its window is open")
		j.Advance(t0 + 10*minute)
		good, bad, _ = s.Events()
		assert.Equal(t, []uint64{500, 60}, []uint64{good, bad})
		assert.InDelta(t, 1-60.0/560/0.1, balanceOf(t, s).Remaining, 1e-9)
	}
}
