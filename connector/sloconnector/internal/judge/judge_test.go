// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

const (
	minute = int64(time.Minute)
	t0     = 1_700_000_100_000_000_000 / (5 * minute) * (5 * minute)
)

var bounds = []float64{0.1, 0.25, 0.5, 0.8, 1, 2.5}

// ttft promises that 95 % of first tokens come within 0.8 s.
func ttft(groupBy ...string) openslo.SLO {
	return openslo.SLO{
		ID: "llm:chat:ttft:p95", Name: "ttft", Service: "chat", Unit: "seconds", GroupBy: groupBy,
		Indicator: openslo.Indicator{Threshold: &openslo.Selector{}},
		Objective: openslo.Objective{Op: openslo.OpLTE, Value: 0.8, Target: 0.95},
	}
}

func ratio(name string, target float64) openslo.SLO {
	return openslo.SLO{
		ID: "llm:chat:" + name + ":x", Name: name, Unit: "ratio",
		Indicator: openslo.Indicator{Ratio: &openslo.Ratio{}}, Objective: openslo.Objective{Target: target},
	}
}

func leaf(slo openslo.SLO) openslo.Condition {
	return openslo.Condition{SLO: slo.Name, IDs: []string{slo.ID}}
}

func policyOf(when openslo.Condition, consecutive int, onNoData openslo.NoDataAction) openslo.ViolationPolicy {
	return openslo.ViolationPolicy{Name: "p", Window: 5 * time.Minute, ConsecutiveWindows: consecutive, When: when, OnNoData: onNoData}
}

func newJudge(slos []openslo.SLO, policies ...openslo.ViolationPolicy) *Judge {
	return New(&openslo.Catalog{SLOs: slos, Policies: policies}, Options{Window: 5 * time.Minute, MaxSeries: 100, TTL: 24 * time.Hour})
}

// feed puts one window's worth of events into the series: good ones at 0.3 s, bad ones at 2 s.
func feed(j *Judge, s *Series, w int, good, bad uint64) {
	if good+bad > 0 {
		s.AddExplicit(t0+int64(w)*5*minute+minute, bounds, []uint64{0, 0, good, 0, 0, bad, 0})
	}
	j.Advance(t0 + int64(w+1)*5*minute)
}

// story runs windows written as letters: g good, b bad, - no data, and returns the windows in which a violation
// opened (+n) and closed (-n), counted from 1.
func story(windows string, consecutive int, onNoData openslo.NoDataAction) (events []int) {
	slo := ttft()
	j := newJudge([]openslo.SLO{slo}, policyOf(leaf(slo), consecutive, onNoData))
	s := j.Series(0, nil)
	for w, c := range windows {
		switch c {
		case 'g':
			feed(j, s, w, 100, 0)
		case 'b':
			feed(j, s, w, 90, 10)
		default:
			feed(j, s, w, 0, 0)
		}
		for _, e := range j.TakeEvents() {
			n := int((e.Time - t0) / (5 * minute))
			if !e.Opened {
				n = -n
			}
			events = append(events, n)
		}
	}
	return events
}

func TestConsecutiveMissedWindowsOpenOneViolation(t *testing.T) {
	f := func(windows string, want ...int) {
		t.Helper()
		assert.Equal(t, want, story(windows, 3, openslo.NoDataHold), windows)
	}
	f("gggbbbbggggg", 6, -8) // windows 4 to 7: opens when 6 closes, closes when 8 closes
	f("gggbbggggggg")        // two are too few
	f("gbgbgbgbgbgb")        // three or more, never in a row
	f("bbb", 3)
	f("bbbgbbb", 3, -4, 7) // a second violation of its own
	f("bb-bg", 4, -5)      // an empty window neither counts nor resets
	f("bbb--g", 3, -6)     // nor does it close
	f("------------")
}

func TestOnNoData(t *testing.T) {
	assert.Equal(t, []int{4, -6}, story("gb--bg", 3, openslo.NoDataOpen))
	assert.Equal(t, []int(nil), story("gb-bbg", 3, openslo.NoDataClose))
	assert.Equal(t, []int{4, -5}, story("gbbb-", 3, openslo.NoDataClose))
}

func TestAllAndAnyOverRatios(t *testing.T) {
	refusal, hallucination := ratio("refusal", 0.92), ratio("hallucination", 0.95)
	run := func(when openslo.Condition, refused, hallucinated float64) int {
		j := newJudge([]openslo.SLO{refusal, hallucination}, policyOf(when, 1, openslo.NoDataHold))
		j.Series(0, nil).AddRatio(t0, 100-refused, 100)
		j.Series(1, nil).AddRatio(t0, 100-hallucinated, 100)
		j.Advance(t0 + 5*minute)
		return len(j.TakeEvents())
	}
	all := openslo.Condition{All: []openslo.Condition{leaf(refusal), leaf(hallucination)}}
	anyOf := openslo.Condition{Any: []openslo.Condition{leaf(refusal), leaf(hallucination)}}
	nested := openslo.Condition{All: []openslo.Condition{anyOf, leaf(refusal)}}
	assert.Equal(t, 0, run(all, 9, 1))
	assert.Equal(t, 0, run(all, 1, 6))
	assert.Equal(t, 1, run(all, 9, 6))
	assert.Equal(t, 0, run(all, 8, 5), "exactly at the objective is kept")
	assert.Equal(t, 1, run(anyOf, 9, 1))
	assert.Equal(t, 0, run(anyOf, 1, 1))
	assert.Equal(t, 1, run(nested, 9, 1))
	assert.Equal(t, 0, run(nested, 1, 6))
}

func TestAnUnmeasuredSideIsUnknownNotKept(t *testing.T) {
	a, b := ratio("a", 0.9), ratio("b", 0.9)
	for when, want := range map[string]int{"all": 0, "any": 1} {
		cond := openslo.Condition{All: []openslo.Condition{leaf(a), leaf(b)}}
		if when == "any" {
			cond = openslo.Condition{Any: []openslo.Condition{leaf(a), leaf(b)}}
		}
		j := newJudge([]openslo.SLO{a, b}, policyOf(cond, 1, openslo.NoDataHold))
		j.Series(0, nil).AddRatio(t0, 1, 10)
		j.Advance(t0 + 5*minute)
		assert.Len(t, j.TakeEvents(), want, when)
	}
}

func TestVerdictNeedsProof(t *testing.T) {
	slo := ttft()
	f := func(b []float64, counts []uint64, want State) {
		t.Helper()
		j := newJudge([]openslo.SLO{slo})
		s := j.Series(0, nil)
		require.True(t, s.AddExplicit(t0, b, counts))
		j.Advance(t0 + 5*minute)
		assert.Equal(t, want, s.Result().State)
	}
	f(bounds, []uint64{0, 0, 0, 95, 5, 0, 0}, OK)
	f(bounds, []uint64{0, 0, 0, 94, 6, 0, 0}, Violated)
	short := []float64{0.75, 1} // 0.8 is no boundary
	f(short, []uint64{95, 5, 0}, OK)
	f(short, []uint64{94, 6, 0}, AtRisk)
	f(short, []uint64{94, 0, 6}, Violated)
}

func TestAtLeastObjectivesLookAtTheLowerTail(t *testing.T) {
	slo := openslo.SLO{
		ID: "x", Unit: "tokens_per_second", Indicator: openslo.Indicator{Threshold: &openslo.Selector{}},
		Objective: openslo.Objective{Op: openslo.OpGTE, Value: 80, Target: 0.95},
	}
	f := func(slow int, want State) {
		t.Helper()
		j := newJudge([]openslo.SLO{slo})
		s := j.Series(0, nil)
		for i := range 100 {
			v := 100.0
			if i < slow {
				v = 50
			}
			s.AddValue(t0, v)
		}
		j.Advance(t0 + 5*minute)
		assert.Equal(t, want, s.Result().State)
		good, bad := s.Events()
		assert.Equal(t, []uint64{uint64(100 - slow), uint64(slow)}, []uint64{good, bad})
		if slow == 10 {
			assert.InDelta(t, 50, s.Result().Value, 0.1)
		}
	}
	f(0, OK)
	f(5, OK)
	f(6, Violated)
	f(10, Violated)
}

func TestEmptyWindowsAreNoData(t *testing.T) {
	j := newJudge([]openslo.SLO{ttft()})
	s := j.Series(0, nil)
	assert.Equal(t, NoData, s.Result().State)
	feed(j, s, 0, 10, 0)
	assert.Equal(t, OK, s.Result().State)
	feed(j, s, 1, 0, 0)
	assert.Equal(t, NoData, s.Result().State)
	assert.True(t, math.IsNaN(s.Result().Value))
}

func TestGroupsAreJudgedApart(t *testing.T) {
	slo := ttft("region")
	j := newJudge([]openslo.SLO{slo}, policyOf(leaf(slo), 1, openslo.NoDataHold))
	eu, us := j.Series(0, []string{"eu"}), j.Series(0, []string{"us"})
	eu.AddExplicit(t0, bounds, []uint64{0, 0, 0, 0, 0, 9, 0})
	us.AddExplicit(t0, bounds, []uint64{0, 0, 9, 0, 0, 0, 0})
	j.Advance(t0 + 5*minute)
	events := j.TakeEvents()
	require.Len(t, events, 1)
	assert.Same(t, eu, events[0].Series)
}

func TestShortAndLongWindowsSeeTheSameEvents(t *testing.T) {
	slo := ttft()
	hour := policyOf(leaf(slo), 1, openslo.NoDataHold)
	hour.Name, hour.Window = "hour", time.Hour
	j := newJudge([]openslo.SLO{slo}, policyOf(leaf(slo), 1, openslo.NoDataHold), hour)
	s := j.Series(0, nil)
	start := int(12 - t0/(5*minute)%12) // the next full hour
	feed(j, s, start, 0, 10)
	for w := 1; w < 12; w++ {
		feed(j, s, start+w, 10, 0)
	}
	var opened []string
	for _, e := range j.TakeEvents() {
		if e.Opened {
			opened = append(opened, fmt.Sprintf("%s@%d", e.Policy, (e.Time-t0)/(5*minute)-int64(start)))
		}
	}
	// 10 bad of 120 in the hour is more than 5 %.
	assert.Equal(t, []string{"p@1", "hour@12"}, opened)
}

func TestLateDataIsKnown(t *testing.T) {
	j := newJudge([]openslo.SLO{ttft()})
	s := j.Series(0, nil)
	assert.False(t, j.Late(s, t0))
	feed(j, s, 0, 1, 0)
	assert.True(t, j.Late(s, t0+5*minute-1))
	assert.False(t, j.Late(s, t0+5*minute))
}

// Scenario: the first batch comes out of order.
// Guarantees: before any window has closed, none is late.
func TestNothingIsLateBeforeTheFirstWindowCloses(t *testing.T) {
	j := newJudge([]openslo.SLO{ttft()})
	s := j.Series(0, nil)
	s.AddValue(t0+20*minute, 1)
	j.Advance(t0 + 20*minute)
	assert.False(t, j.Late(s, t0))
}

func TestOneBatchOrManyGiveTheSameEvents(t *testing.T) {
	run := func(step int) []Event {
		slo := ttft()
		j := newJudge([]openslo.SLO{slo}, policyOf(leaf(slo), 2, openslo.NoDataHold))
		s := j.Series(0, nil)
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 5000 {
			at := t0 + int64(i)*6*int64(time.Second)
			if !j.Late(s, at) {
				s.AddValue(at, math.Exp(r.NormFloat64()*0.5-1.1)+0.5*math.Abs(math.Sin(float64(i)/700)))
			}
			if i%step == 0 {
				j.Advance(at)
			}
		}
		j.Advance(t0 + 5000*6*int64(time.Second))
		events := j.TakeEvents()
		for i := range events {
			events[i].Series = nil
		}
		return events
	}
	whole := run(5000)
	require.NotEmpty(t, whole)
	assert.Equal(t, whole, run(1))
	assert.Equal(t, whole, run(77))
}

func TestAGapOfYearsIsSkipped(t *testing.T) {
	slo := ttft()
	j := newJudge([]openslo.SLO{slo}, policyOf(leaf(slo), 3, openslo.NoDataOpen))
	s := j.Series(0, nil)
	s.AddValue(0, 0.1) // 1970
	j.Advance(5 * minute)
	begin := time.Now()
	s.AddValue(t0, 0.1)
	j.Advance(t0 + 5*minute)
	assert.Less(t, time.Since(begin), 5*time.Second)
	events := j.TakeEvents()
	require.Len(t, events, 2)
	assert.Equal(t, 4*5*minute, events[0].Time)
	assert.Equal(t, t0+5*minute, events[1].Time)
	assert.Equal(t, OK, s.Result().State)
}

func TestViolationIDIsDeterministic(t *testing.T) {
	ids := map[string]bool{}
	for range 3 {
		slo := ttft("region")
		j := newJudge([]openslo.SLO{slo}, policyOf(leaf(slo), 1, openslo.NoDataHold))
		j.Series(0, []string{"eu"}).AddValue(t0, 2)
		j.Advance(t0 + 5*minute)
		ids[j.TakeEvents()[0].ID] = true
	}
	assert.Len(t, ids, 1)
}

func TestSeriesAreBoundedByAnOverflow(t *testing.T) {
	j := New(&openslo.Catalog{SLOs: []openslo.SLO{ttft("user")}}, Options{Window: 5 * time.Minute, MaxSeries: 3, TTL: time.Hour})
	for i := range 10 {
		s := j.Series(0, []string{fmt.Sprint(i)})
		assert.Equal(t, i >= 3, s.Overflow())
	}
	assert.Equal(t, 4, j.Len())
}

func TestForgottenGroupsCloseTheirViolations(t *testing.T) {
	slo := ttft("pod")
	j := New(&openslo.Catalog{SLOs: []openslo.SLO{slo}, Policies: []openslo.ViolationPolicy{policyOf(leaf(slo), 1, openslo.NoDataHold)}},
		Options{Window: 5 * time.Minute, MaxSeries: 10, TTL: time.Hour})
	j.Series(0, []string{"a"}).AddValue(t0, 2)
	j.Advance(t0 + 2*60*minute)
	events := j.TakeEvents()
	require.Len(t, events, 2)
	assert.True(t, events[0].Opened)
	assert.False(t, events[1].Opened)
	assert.Contains(t, events[1].Reason, "forgotten")
	assert.Zero(t, j.Len())
	assert.Equal(t, uint64(1), j.Evicted())
}

func TestTheWorstExemplarIsKept(t *testing.T) {
	slo := ttft()
	j := newJudge([]openslo.SLO{slo}, policyOf(leaf(slo), 1, openslo.NoDataHold))
	s := j.Series(0, nil)
	s.AddValue(t0, 2)
	s.AddExemplar(t0, Exemplar{TraceID: [16]byte{1}, Value: 1.5})
	s.AddExemplar(t0+minute, Exemplar{TraceID: [16]byte{2}, Value: 2})
	s.AddExemplar(t0+2*minute, Exemplar{TraceID: [16]byte{3}, Value: 0.1})
	j.Advance(t0 + 5*minute)
	assert.Equal(t, [16]byte{2}, j.TakeEvents()[0].Exemplar.TraceID)
}

func TestEventCountersNeverGoBack(t *testing.T) {
	j := newJudge([]openslo.SLO{ratio("r", 0.9)})
	s := j.Series(0, nil)
	s.AddRatio(t0, 0, 10) // the total comes first
	_, bad := s.Events()
	assert.Equal(t, uint64(10), bad)
	s.AddRatio(t0, 9, 0)
	good, after := s.Events()
	assert.Equal(t, uint64(9), good)
	assert.GreaterOrEqual(t, after, bad)
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	j := newJudge([]openslo.SLO{ttft()})
	s := j.Series(0, nil)
	counts := []uint64{0, 0, 9, 1, 0, 0, 0}
	e := &sketch.Exponential{Scale: 3, Positive: sketch.Buckets{Offset: -5, Counts: counts}}
	s.AddExplicit(t0, bounds, counts)
	s.AddExponential(t0, e)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		s.AddExplicit(t0, bounds, counts)
		s.AddExponential(t0, e)
		s.AddValue(t0, 0.3)
	}))
}
