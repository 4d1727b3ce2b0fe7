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

	"github.com/otelcol-llm/otelcol-llm/internal/cputest"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
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

func addCounts(s *Series, t int64, counts []uint64) bool { return addTo(s, t, bounds, counts) }

func addTo(s *Series, t int64, b []float64, counts []uint64) bool {
	n, _ := sketch.Total(counts)
	return s.AddExplicit(t, b, counts, n)
}

// take returns the events since the last call.
func take(j *Judge) []Event {
	events, _ := j.TakeEvents()
	return events
}

// feed puts one window's worth of events into the series: good ones at 0.3 s, bad ones at 2 s.
func feed(j *Judge, s *Series, w int, good, bad uint64) {
	if good+bad > 0 {
		addCounts(s, t0+int64(w)*5*minute+minute, []uint64{0, 0, good, 0, 0, bad, 0})
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
		for _, e := range take(j) {
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
		for i, part := range []float64{refused, hallucinated} {
			j.Series(i, nil).AddGood(t0, 100-part)
			j.Series(i, nil).AddTotal(t0, 100)
		}
		j.Advance(t0 + 5*minute)
		return len(take(j))
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
		j.Series(0, nil).AddGood(t0, 1)
		j.Series(0, nil).AddTotal(t0, 10)
		j.Advance(t0 + 5*minute)
		assert.Len(t, take(j), want, when)
	}
}

func TestVerdictNeedsProof(t *testing.T) {
	slo := ttft()
	f := func(b []float64, counts []uint64, want State) {
		t.Helper()
		j := newJudge([]openslo.SLO{slo})
		s := j.Series(0, nil)
		require.True(t, addTo(s, t0, b, counts))
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
		good, bad, _ := s.Events()
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
	addCounts(eu, t0, []uint64{0, 0, 0, 0, 0, 9, 0})
	addCounts(us, t0, []uint64{0, 0, 9, 0, 0, 0, 0})
	j.Advance(t0 + 5*minute)
	events := take(j)
	require.Len(t, events, 1)
	assert.Same(t, eu.Identity, events[0].Of)
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
	for _, e := range take(j) {
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
		events := take(j)
		for i := range events {
			events[i].Of = nil
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
	took := cputest.Time(t, func() {
		s.AddValue(t0, 0.1)
		j.Advance(t0 + 5*minute)
	})
	assert.Less(t, took, 5*time.Second)
	events := take(j)
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
		ids[take(j)[0].ID] = true
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
	events := take(j)
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
	assert.Equal(t, [16]byte{2}, take(j)[0].Exemplar.TraceID)
}

// Scenario: the parts of a ratio come in requests of their own, in either order, and results are told in between.
// Guarantees: nothing is told that is taken back or stays wrong.
func TestTheOrderOfARatiosPartsHasNoSay(t *testing.T) {
	for _, totalFirst := range []bool{true, false} {
		for _, bad := range []bool{true, false} {
			slo := ratio("r", 0.9)
			if bad {
				slo.Indicator.Ratio.Bad = &openslo.Selector{}
			}
			j := newJudge([]openslo.SLO{slo})
			s := j.Series(0, nil)
			var lastGood, lastBad uint64
			tell := func() {
				g, b, _ := s.Events()
				assert.True(t, g >= lastGood && b >= lastBad)
				lastGood, lastBad = g, b
			}
			for i := range int64(10) {
				at := t0 + i*minute
				part := func() { s.AddGood(at, 99) }
				if bad {
					part = func() { s.AddBad(at, 1) }
				}
				steps := []func(){part, tell, func() { s.AddTotal(at, 100) }, tell}
				if totalFirst {
					steps[0], steps[2] = steps[2], steps[0]
				}
				for _, step := range steps {
					step()
				}
				j.Advance(at)
			}
			assert.Equal(t, []uint64{990, 10}, []uint64{lastGood, lastBad}, "total first %v, bad %v", totalFirst, bad)
		}
	}
}

func TestTheYoungestWindowWithDataIsKnown(t *testing.T) {
	slo := ttft()
	hour := policyOf(leaf(slo), 1, openslo.NoDataHold)
	hour.Window = time.Hour
	j := newJudge([]openslo.SLO{slo}, hour, policyOf(leaf(slo), 1, openslo.NoDataHold))
	assert.Equal(t, window.Unset, j.LastEnd())
	full := t0 / (60 * minute) * 60 * minute
	j.Series(0, nil).AddValue(full+9*minute, 0.1)
	j.Series(0, nil).AddValue(full+2*minute, 0.1)
	assert.Equal(t, full+60*minute, j.LastEnd(), "the longest window over the data")
	j.Advance(full + 30*minute)
	assert.Equal(t, full+60*minute, j.LastEnd(), "closed panes are still in it")
}

func TestASurplusOfGoodDoesNotMakeUpForLaterFailures(t *testing.T) {
	j := newJudge([]openslo.SLO{ratio("r", 0.9)})
	s := j.Series(0, nil)
	for w, good := range []float64{200, 0} {
		s.AddGood(t0+int64(w)*5*minute, good)
		s.AddTotal(t0+int64(w)*5*minute, 100)
		j.Advance(t0 + int64(w+1)*5*minute)
	}
	good, bad, _ := s.Events()
	assert.Equal(t, []uint64{100, 100}, []uint64{good, bad})
}

func TestTwoValuesOfACounterNeverShareATime(t *testing.T) {
	j := newJudge([]openslo.SLO{ttft()})
	s := j.Series(0, nil)
	seen := map[int64]uint64{}
	for range 5 { // five replicas with one timestamp, in batches of their own
		s.AddValue(t0, 0.1)
		good, _, at := s.Events()
		assert.NotContains(t, seen, at)
		seen[at] = good
	}
	_, _, at := s.Events()
	assert.Equal(t, uint64(5), seen[at], "told again, it is the same value at the same time")
}

func TestResultsNeverGoBackInTime(t *testing.T) {
	j := newJudge([]openslo.SLO{ttft()})
	s := j.Series(0, nil)
	s.AddValue(t0+3*minute, 0.1)
	assert.Equal(t, t0, s.Result().End, "before the first window closes, its start is the time of what is told")
	s.AddValue(t0+9*minute, 0.1)
	assert.Equal(t, t0, s.Result().End)
	j.Advance(t0 + 5*minute)
	assert.Equal(t, t0+5*minute, s.Result().End)
}

// Scenario: a group is silent for longer than the TTL, then comes back.
// Guarantees: one batch and many tell the same story.
func TestAGapLongerThanTheTTLIsTheSameInOneBatchOrMany(t *testing.T) {
	run := func(many bool) (story []string) {
		slo := ttft("pod")
		j := New(catalogOf(slo, policyOf(leaf(slo), 3, openslo.NoDataHold)), Options{Window: 5 * time.Minute, MaxSeries: 10, TTL: time.Hour})
		for _, m := range []int64{0, 5, 10, 200, 205, 210, 400} {
			at := t0 + m*minute
			if s := j.Series(0, []string{"a"}); !j.Late(s, at) {
				s.AddValue(at, 2)
			}
			if many {
				j.Advance(at)
			}
		}
		j.Advance(t0 + 500*minute)
		for _, e := range take(j) {
			story = append(story, fmt.Sprintf("%t@%d", e.Opened, (e.Time-t0)/minute))
		}
		return story
	}
	// The last pane with input ends at minute 11: at the end of the one in minute 71, nothing was heard for more than an hour.
	assert.Equal(t, []string{"true@15", "false@72", "true@215", "false@272"}, run(true))
	assert.Equal(t, run(true), run(false))
}

// Scenario: windows that are longer than the TTL.
// Guarantees: a group is remembered for as long as a policy needs to judge it.
func TestTheTTLDoesNotEatLongWindows(t *testing.T) {
	f := func(length time.Duration, consecutive int, windows string, want ...int) {
		t.Helper()
		slo := ttft("model")
		pol := policyOf(leaf(slo), consecutive, openslo.NoDataHold)
		pol.Window = length
		j := New(catalogOf(slo, pol), Options{Window: 5 * time.Minute, MaxSeries: 10, TTL: time.Hour})
		day := t0 / (24 * 60 * minute) * 24 * 60 * minute
		var got []int
		for w, c := range windows {
			start := day + int64(w)*int64(length)
			switch c { // all input is at the beginning of a window
			case 'b':
				j.Series(0, []string{"m"}).AddValue(start, 2)
			case 'g':
				j.Series(0, []string{"m"}).AddValue(start, 0.1)
			}
			j.Series(0, []string{"other"}).AddValue(start, 0.1)
			j.Advance(start + int64(length))
			for _, e := range take(j) {
				n := int((e.Time - day) / int64(length))
				if !e.Opened {
					n = -n
				}
				got = append(got, n)
			}
		}
		assert.Equal(t, want, got, windows)
	}
	f(24*time.Hour, 1, "bg", 1, -2)
	f(time.Hour, 3, "bb-bg", 4, -5)
	f(3*time.Hour, 2, "bbg", 2, -3)
}

func TestWhatCannotBeToldIsNotKeptAgain(t *testing.T) {
	slo := ttft()
	j := newJudge([]openslo.SLO{slo}, policyOf(leaf(slo), 1, openslo.NoDataClose))
	s := j.Series(0, nil)
	short := []float64{0.75, 1}
	for w, counts := range [][]uint64{{0, 0, 10}, {90, 10, 0}, {100, 0, 0}} { // missed, cannot be told, kept
		addTo(s, t0+int64(w)*5*minute, short, counts)
		j.Advance(t0 + int64(w+1)*5*minute)
	}
	events := take(j)
	require.Len(t, events, 2)
	assert.Equal(t, t0+15*minute, events[1].Time)
	assert.True(t, events[1].Kept())
}

func TestReasonsSayWhatWasMissedAndWhy(t *testing.T) {
	a, b := ttft(), ratio("other", 0.9)
	when := openslo.Condition{Any: []openslo.Condition{leaf(a), leaf(b)}}
	j := newJudge([]openslo.SLO{a, b}, policyOf(when, 2, openslo.NoDataClose))
	for w := range int64(2) {
		j.Series(0, nil).AddValue(t0+w*5*minute, 0.1)
		j.Series(1, nil).AddTotal(t0+w*5*minute, 10)
	}
	j.Advance(t0 + 15*minute)
	events := take(j)
	require.Len(t, events, 2)
	assert.Equal(t, "missed in 2 windows of 5m in a row: llm:chat:other:x was 0, promised at least 0.9; not missed: "+
		"llm:chat:ttft:p95 was 0.1 seconds, promised at most 0.8 for 95 % of events", events[0].Reason)
	assert.Contains(t, events[1].Reason, "no data, which the policy takes for kept")
	assert.False(t, events[1].Kept())
}

// Scenario: each window has a layout of its own, more of them over time than are held at once.
// Guarantees: no window is without data for it; too many in one window leave the SLI open, not the verdict.
func TestManyLayouts(t *testing.T) {
	j := newJudge([]openslo.SLO{ttft()})
	s := j.Series(0, nil)
	for w := range int64(50) {
		require.True(t, addTo(s, t0+w*5*minute, []float64{0.1, 0.8, 2 + float64(w)}, []uint64{0, 0, 10, 0}))
		j.Advance(t0 + (w+1)*5*minute)
		require.Equal(t, Violated, s.Result().State)
	}
	hour := policyOf(leaf(ttft()), 1, openslo.NoDataHold)
	hour.Window = time.Hour
	j = newJudge([]openslo.SLO{ttft()}, hour, policyOf(leaf(ttft()), 1, openslo.NoDataHold))
	s = j.Series(0, nil)
	start := (t0/(60*minute) + 1) * 60 * minute
	for w := range int64(12) {
		addTo(s, start+w*5*minute, []float64{0.1, 0.8, 2 + float64(w)}, []uint64{0, 0, 10, 0})
	}
	j.Advance(start + 60*minute)
	assert.Equal(t, Violated, s.resultOf(time.Hour).State)
	assert.True(t, math.IsInf(s.resultOf(time.Hour).Upper, 1))
}

func TestNoValueImitatesAnotherGroup(t *testing.T) {
	assert.NotEqual(t, groupKey([]string{"x\x00y", "z"}), groupKey([]string{"x", "y\x00z"}))
	assert.NotEqual(t, groupKey([]string{"1:a", ""}), groupKey([]string{"", "1:a"}))
	slo := ttft("pod")
	j := New(catalogOf(slo, policyOf(leaf(slo), 1, openslo.NoDataHold)), Options{Window: 5 * time.Minute, MaxSeries: 1, TTL: time.Hour})
	j.Series(0, []string{""}).AddValue(t0, 2)
	j.Series(0, []string{"b"}).AddValue(t0, 2)
	j.Advance(t0 + 5*minute)
	events := take(j)
	require.Len(t, events, 2)
	assert.NotEqual(t, events[0].ID, events[1].ID, "the group of all others is not the group without a name")
}

func TestEventsThatNobodyTakesAreBounded(t *testing.T) {
	l := &ledger{}
	for i := range maxEvents + 10 {
		l.event(Event{Windows: i})
	}
	assert.Len(t, l.events, maxEvents)
	assert.Equal(t, uint64(10), l.dropped)
	assert.Equal(t, 10, l.events[0].Windows, "the oldest go")
}

func TestSilenceOfManyIsCheap(t *testing.T) {
	slo := ttft("pod")
	j := New(catalogOf(slo), Options{Window: time.Second, MaxSeries: 10_000, TTL: time.Hour})
	for i := range 10_000 {
		j.Series(0, []string{fmt.Sprint(i)}).AddValue(t0, 0.1)
	}
	j.Advance(t0 + 2*int64(time.Second))
	j.Series(0, []string{"0"}).AddValue(t0+50*minute, 0.1)
	closes := 0
	for end := j.nextEnd(); end <= t0+50*minute; end = j.nextEnd() {
		j.closeAt(end)
		j.skip(t0 + 50*minute)
		closes++
	}
	assert.Less(t, closes, 10, "fifty minutes of nothing are not judged second by second")
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	j := newJudge([]openslo.SLO{ttft()})
	s := j.Series(0, nil)
	counts := []uint64{0, 0, 9, 1, 0, 0, 0}
	e := &sketch.Exponential{Scale: 3, Positive: sketch.Buckets{Offset: -5, Counts: counts}}
	s.AddExplicit(t0, bounds, counts, 10)
	s.AddExponential(t0, e, 10)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		s.AddExplicit(t0, bounds, counts, 10)
		s.AddExponential(t0, e, 10)
		s.AddValue(t0, 0.3)
	}))
}
