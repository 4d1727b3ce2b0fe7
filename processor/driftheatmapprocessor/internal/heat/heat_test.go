// SPDX-License-Identifier: Apache-2.0

package heat

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
	"github.com/otelcol-llm/otelcol-llm/internal/cputest"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/twosample"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

const minute = int64(time.Minute)

// catalog promises something of every kind.
func catalog() *openslo.Catalog {
	source := &openslo.Selector{Type: openslo.TypeOpenTelemetry, Signal: openslo.SignalMetrics, Metric: "m", Scale: 1}
	rated := *source
	rated.Rate = 20 * time.Second
	objective := openslo.Objective{Op: openslo.OpLTE, Value: 1, Target: 0.9}
	return &openslo.Catalog{SLOs: []openslo.SLO{
		{ID: "values", Name: "values", Unit: "seconds", Indicator: openslo.Indicator{Threshold: source}, Objective: objective},
		{ID: "ratio", Name: "ratio", Unit: "ratio", Indicator: openslo.Indicator{Ratio: &openslo.Ratio{Bad: source, Total: source}}, Objective: objective},
		{ID: "composite", Name: "composite", Unit: "ratio", Indicator: openslo.Indicator{Parts: []openslo.Part{{ID: "values", Share: 0.75}, {ID: "ratio", Share: 0.25}}}, Objective: objective},
		{ID: "rate", Name: "rate", Unit: "tokens", Indicator: openslo.Indicator{Threshold: &rated}, Objective: objective},
	}}
}

// event is something that is added.
type event struct {
	slo    int
	values []string
	at     int64
	v      float64
}

func (m *Map) take(e event) {
	if m.Late(e.at) {
		return
	}
	c := m.Cell(e.slo, e.values)
	switch e.slo {
	case 0:
		c.AddValue(e.at, e.v)
	case 1:
		c.AddTotal(e.at, 10)
		c.AddBad(e.at, math.Floor(e.v))
	default:
		c.AddAmount(e.at, e.v)
	}
}

// story draws the events of an hour, minute by minute.
func story(t *rapid.T) (minutes [][]event) {
	for i := range int64(12) {
		var all []event
		for range rapid.IntRange(0, 3).Draw(t, "cells") {
			slo := rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "slo") // the composite has no events of its own
			values := []string{rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "region"), rapid.SampledFrom([]string{"v1", "v2"}).Draw(t, "version")}
			for range rapid.IntRange(1, 40).Draw(t, "n") {
				all = append(all, event{slo, values, i*minute + rapid.Int64Range(0, minute-1).Draw(t, "at"), rapid.Float64Range(0.1, 9).Draw(t, "v")})
			}
		}
		minutes = append(minutes, all)
	}
	return minutes
}

// mapOf makes a map that concludes from little, and writes down what it tells.
func mapOf(t require.TestingT, told *[]string) *Map {
	o := baseline.DefaultOptions()
	o.Decay.Window, o.MinSamples, o.Reference = time.Minute, 20, 2
	pair := twosample.DefaultOptions()
	pair.MinSamples = 20
	m, err := New(catalog(), Options{
		Baseline: o, Dimensions: []string{"region", "version"}, MaxCells: 100, TTL: 5 * time.Minute,
		Canary: &Canary{Dimension: 1, Reference: "v1", Candidate: "v2", Options: pair},
		Closed: func(c *Cell) {
			r := c.Result()
			*told = append(*told, fmt.Sprint(c.SLO.ID, c.Values, r.End, r.State, r.Empty, rounded(r.Observed.Value), rounded(r.Dynamic.Value), rounded(r.Frozen.Value)))
		},
		Explained: func(x *Explanation) {
			*told = append(*told, fmt.Sprint("explained", x.SLO.ID, x.End, x.Dimension, x.Value, rounded(x.Share)))
		},
	})
	require.NoError(t, err)
	return m
}

// rounded is without what sums of floats in another order make of it.
func rounded(v float64) string { return fmt.Sprintf("%.5g", v) }

// Guarantees: neither the order of events within a minute nor into how many steps time is cut has a say in what is told.
func TestTheOrderWithinAWindowHasNoSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var one, other []string
		a, b := mapOf(t, &one), mapOf(t, &other)
		for i, events := range story(t) {
			for _, e := range events {
				a.take(e)
			}
			for _, k := range rapid.Permutation(indexes(len(events))).Draw(t, "order") {
				b.take(events[k])
			}
			end := int64(i+1) * minute
			for at := end - minute; at <= end; at += minute / 4 {
				a.Advance(at)
			}
			b.Advance(end)
		}
		a.Advance(60 * minute)
		b.Advance(60 * minute)
		slices.Sort(one)
		slices.Sort(other)
		require.Equal(t, one, other)
		require.Zero(t, a.Len(), "all are idle")
	})
}

func indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// Guarantees: a map that was restored anywhere goes on as the one that was never interrupted.
func TestARestoredMapIsTheUninterruptedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var one, other []string
		whole, cut := mapOf(t, &one), mapOf(t, &other)
		for i, events := range story(t) {
			for k, e := range events {
				if rapid.IntRange(0, 200).Draw(t, "restart") == 0 || k == 0 && i == 6 {
					cut.Touch()
					var cells []CellState
					for _, some := range cut.TakeTouched() {
						cells = append(cells, some...)
					}
					head := through(t, cut.Head())
					cells = through(t, cells)
					promised := through(t, cut.Promised())
					cut = mapOf(t, &other)
					left, err := cut.Restore(head, promised, cells, nil)
					require.NoError(t, err)
					require.Zero(t, left)
				}
				whole.take(e)
				cut.take(e)
			}
			whole.Advance(int64(i+1) * minute)
			cut.Advance(int64(i+1) * minute)
		}
		slices.Sort(one)
		slices.Sort(other)
		require.Equal(t, one, other)
	})
}

// through brings a state through a checkpoint.
func through[S any](t require.TestingT, in S) (out S) {
	data, err := checkpoint.Encode(in)
	require.NoError(t, err)
	require.NoError(t, checkpoint.Decode(data, &out))
	return out
}

func TestWindowsWithoutEventsArePassedOver(t *testing.T) {
	var told []string
	m := mapOf(t, &told)
	m.Advance(window.Unset)
	m.take(event{0, []string{"eu", "v1"}, 10, 1})
	assert.Less(t, cputest.Time(t, func() { m.Advance(100_000_000 * minute) }), time.Second)
	assert.Len(t, told, 2, "that of the event, and that there was nothing")
	assert.True(t, m.Late(20))
	assert.Zero(t, m.Len())
	assert.Len(t, m.TakeRetired(), 1)
}

func TestAStateThatIsNoMapIsRefused(t *testing.T) {
	f := func(want string, change func(*CellState)) {
		t.Helper()
		var told []string
		m := mapOf(t, &told)
		m.take(event{0, []string{"eu", "v1"}, 10, 1})
		var cells []CellState
		for _, some := range m.TakeTouched() {
			cells = append(cells, some...)
		}
		change(&cells[0])
		_, err := mapOf(t, &told).Restore(m.Head(), nil, cells, nil)
		require.ErrorContains(t, err, want)
	}
	f("1 values of 2 dimensions", func(c *CellState) { c.Values = c.Values[:1] })
	f("state 9 is none", func(c *CellState) { c.Result.State = 9 })
	f("no window of 1m0s begins at 7", func(c *CellState) { c.Panes[0].Start = 7 })
	f("9 is not a state", func(c *CellState) { c.Normal.State = 9 })
}
