// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/cputest"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// budgeted is ttft by pod, with a budget.
func budgeted() openslo.SLO {
	slo := ttft("pod")
	slo.TimeWindow = rolling("28d")
	return slo
}

// Scenario: a group with an open violation is silent for longer than the TTL, then for longer than its budget.
// Guarantees: at the TTL its violation closes; its books are kept while they hold something of it, and then it is forgotten.
func TestAGroupIsGivenUpFirstAndForgottenWithItsBooks(t *testing.T) {
	slo := budgeted()
	j := New(catalogOf(slo, policyOf(leaf(slo), 1, openslo.NoDataHold)), Options{Window: 5 * time.Minute, MaxSeries: 10, TTL: time.Hour})
	s := j.Series(0, []string{"a"})
	s.AddValue(t0, 2)
	j.Series(0, []string{"b"}).AddValue(t0+29*day, 0.1) // so that time goes on
	j.Advance(t0 + 62*minute)
	events := take(j)
	require.Len(t, events, 2)
	assert.Equal(t, []any{t0 + 62*minute, reasonForgotten}, []any{events[1].Time, events[1].Reason})
	assert.False(t, s.Gone())
	assert.InDelta(t, -19, balanceOf(t, s).Remaining, 1e-9)
	j.Advance(t0 + 27*day)
	assert.False(t, s.Gone())
	j.Advance(t0 + 28*day + 2*minute)
	assert.True(t, s.Gone())
	assert.Equal(t, uint64(1), j.Evicted())
	assert.Empty(t, take(j))
}

// Scenario: a policy takes no data for missed, and a group is no more.
// Guarantees: it opens one violation, which closes when nobody waits for the group any more, and nothing after that while its
// books are kept.
func TestAGroupThatWasGivenUpOpensNothing(t *testing.T) {
	slo := budgeted()
	j := New(catalogOf(slo, policyOf(leaf(slo), 2, openslo.NoDataOpen)), Options{Window: 5 * time.Minute, MaxSeries: 10, TTL: time.Hour})
	run := func(from, to int64) (got []int64) {
		for at := from; at <= to; at += minute {
			j.Advance(t0 + at)
		}
		for _, e := range take(j) {
			at := (e.Time - t0) / minute
			if !e.Opened {
				at = -at
			}
			got = append(got, at)
		}
		return got
	}
	j.Series(0, []string{"a"}).AddValue(t0, 0.1)
	assert.Equal(t, []int64{15, -62}, run(0, day))
	j.Series(0, []string{"a"}).AddValue(t0+day, 0.1)
	assert.Equal(t, []int64{24*60 + 15, -(24*60 + 62)}, run(day, 2*day), "it is back")
}

// Guarantees: a policy does not judge a group before its first input is closed, however early the series was made.
func TestAGroupIsNotJudgedBeforeItsFirstInput(t *testing.T) {
	slo := budgeted()
	j := New(catalogOf(slo, policyOf(leaf(slo), 1, openslo.NoDataOpen)), Options{Window: 5 * time.Minute, MaxSeries: 10, TTL: time.Hour})
	j.Series(0, []string{"early"}).AddValue(t0, 0.1)
	j.Series(0, []string{"late"}).AddValue(t0+20*minute, 0.1)
	for m := int64(0); m <= 20; m += 5 {
		j.Series(0, []string{"early"}).AddValue(t0+m*minute, 0.1)
	}
	j.Advance(t0 + 25*minute)
	assert.Empty(t, take(j))
}

// Scenario: there is no room, and some groups are only remembered for their books.
// Guarantees: those make room, and nobody who is waited for does.
func TestWhoIsThereComesBeforeWhoWas(t *testing.T) {
	f := func(opts Options) {
		t.Helper()
		opts.Window, opts.TTL = 5*time.Minute, time.Hour
		j := New(catalogOf(budgeted()), opts)
		at := func(pod string, t int64) *Series {
			s := j.Series(0, []string{pod})
			s.AddValue(t, 0.1)
			return s
		}
		gone := []*Series{at("x", t0), at("y", t0)}
		at("here", t0)
		j.Advance(t0 + 30*minute)
		here := at("here", t0+31*minute)
		assert.True(t, at("n", t0+31*minute).Overflow(), "x and y are waited for")
		j.Advance(t0 + 70*minute)
		fresh := at("n", t0+70*minute)
		assert.False(t, fresh.Overflow())
		assert.True(t, gone[0].Gone() && gone[1].Gone())
		assert.False(t, here.Gone())
		assert.Same(t, here, j.Series(0, []string{"here"}))
	}
	f(Options{MaxSeries: 3})
	f(Options{MaxSeries: 100, MaxSeriesPerSLO: 3})
}

func TestOneSLODoesNotTakeTheRoomOfTheOthers(t *testing.T) {
	wild, other := budgeted(), budgeted()
	other.ID, other.Name = "other", "other"
	j := New(&openslo.Catalog{SLOs: []openslo.SLO{wild, other}}, Options{Window: 5 * time.Minute, MaxSeries: 20, MaxSeriesPerSLO: 5, TTL: time.Hour})
	for i := range 100 {
		j.Series(0, []string{fmt.Sprint(i)}).AddValue(t0, 2)
	}
	assert.False(t, j.Series(1, []string{"a"}).Overflow())
	assert.Equal(t, 5+1+1, j.Len())
	good, bad, _ := j.Overflow(0).Events()
	assert.Equal(t, []uint64{0, 95}, []uint64{good, bad}, "what has no room is judged together")
}

// Guarantees: with policies and composites, the SLOs of a group are remembered and forgotten together.
func TestKinAreForgottenTogether(t *testing.T) {
	catalog := everything()
	j := New(catalog, Options{Window: 5 * time.Minute, MaxSeries: 1000, TTL: time.Hour})
	addCounts(j.Series(partA, []string{"a"}), t0, []uint64{0, 1, 0, 0, 0, 0, 0})
	assert.Equal(t, 3, j.Len(), "both parts and the whole")
	j.Advance(t0 + minute)
	addCounts(j.Series(explicitSLO, []string{"b"}), t0+29*day, []uint64{0, 1, 0, 0, 0, 0, 0})
	j.Advance(t0 + 29*day)
	j.Each(func(s *Series) { assert.Equal(t, []string{"b"}, s.values, s.slo.ID) })
	assert.Equal(t, uint64(3), j.Evicted())
}

// Scenario: more groups than there is room for events break their promise in the same window, in two judges.
// Guarantees: both tell of the same, and drop the same.
func TestOfTooManyEventsTheSameAreDropped(t *testing.T) {
	const n = maxEvents + 3000
	slo := ttft("pod")
	var told [2][]string
	for i := range told {
		j := New(catalogOf(slo, policyOf(leaf(slo), 1, openslo.NoDataHold)), Options{Window: 5 * time.Minute, MaxSeries: n, TTL: time.Hour})
		for pod := range n {
			j.Series(0, []string{fmt.Sprint(pod)}).AddValue(t0, 2)
		}
		require.Less(t, cputest.Time(t, func() { j.Advance(t0 + 5*minute) }), 5*time.Second)
		events, dropped := j.TakeEvents()
		require.Len(t, events, maxEvents)
		require.Equal(t, uint64(n-maxEvents), dropped)
		for _, e := range events {
			told[i] = append(told[i], e.ID)
		}
	}
	assert.True(t, slices.Equal(told[0], told[1]))
}
