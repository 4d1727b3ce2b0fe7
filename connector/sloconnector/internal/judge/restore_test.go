// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
	"github.com/otelcol-llm/otelcol-llm/internal/cputest"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// atRest is a judge of everything at rest.
type atRest struct {
	_      struct{} `cbor:",toarray"`
	Head   Head
	Series []SeriesState
}

// lived is a judge of everything that has seen something: violations and burn rates are open, panes and windows, too.
func lived(seed int) *Judge {
	j := New(everything(), everyOption())
	inputs := rapid.SliceOfN(anyInput(t0, t0+50*minute), 40, 40).Example(seed)
	for _, in := range inputs {
		in.give(j)
	}
	j.Advance(t0 + 40*minute)
	(&input{t: t0 + 45*minute, pod: "a", n: 3, role: 3}).give(j)
	return j
}

// Guarantees: a state that is taken up is gone on from, whatever it says, and can be taken up again; any other is an error, not a
// panic, nor an endless loop.
func FuzzRestore(f *testing.F) {
	for seed := range 4 {
		h, all := stateOf(lived(seed))
		data, err := checkpoint.Encode(atRest{Head: h, Series: all})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var st atRest
		if checkpoint.Decode(data, &st) != nil {
			return
		}
		goOn(t, st)
	})
}

func goOn(t require.TestingT, st atRest) {
	j := New(everything(), everyOption())
	if _, err := j.Restore(st.Head, st.Series); err != nil {
		return
	}
	before := cputest.Used(t)
	at := max(j.closed, 0)
	for range 3 {
		for slo := range kinds {
			if slo != wholeSLO {
				(&input{t: at + 2*minute, slo: slo, pod: "a", n: 3, bad: 3, v: 1, role: 5, trace: 1}).give(j)
			}
		}
		at += 11 * minute
		j.Advance(at)
		tellAll(j)
		var b Balance
		j.Turned(All)
		j.Changes(math.MaxInt, func(s *Series, _ bool) { s.Result(); s.State(); s.Balance(&b) }, func(x *Tally) { x.Count(); x.Witness() })
	}
	j.Advance(at + 40*day)
	h, all := stateOf(j)
	_, err := New(everything(), everyOption()).Restore(through(t, h, all))
	require.NoError(t, err)
	j.Update(catalogOf(ttft()))
	take(j)
	require.Less(t, cputest.Used(t)-before, 20*time.Second)
}

// Scenario: bytes of a good state are changed here and there.
func TestADamagedStateIsAnErrorOrAState(t *testing.T) {
	h, all := stateOf(lived(1))
	data, err := checkpoint.Encode(atRest{Head: h, Series: all})
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		damaged := append([]byte(nil), data...)
		for range rapid.IntRange(1, 4).Draw(t, "bytes") {
			damaged[rapid.IntRange(0, len(damaged)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		var st atRest
		if checkpoint.Decode(damaged, &st) == nil {
			goOn(t, st)
		}
	})
}

func TestAStateThatIsNoneIsRefused(t *testing.T) {
	f := func(want string, spoil func(*Head, []SeriesState)) {
		t.Helper()
		h, all := stateOf(lived(2))
		spoil(&h, all)
		_, err := New(everything(), everyOption()).Restore(h, all)
		assert.ErrorContains(t, err, want)
	}
	withPane := func(all []SeriesState) *PaneState {
		for i := range all {
			if len(all[i].Panes) > 0 {
				return &all[i].Panes[0]
			}
		}
		t.Fatal("no pane is open")
		return nil
	}
	f("is no event time", func(h *Head, _ []SeriesState) { h.Closed = math.MaxInt64 })
	f("is no event time", func(h *Head, _ []SeriesState) { h.LastData = -5 })
	f("it has begun, and closed", func(h *Head, _ []SeriesState) { h.Closed = window.Unset })
	f("it has begun, and closed", func(h *Head, _ []SeriesState) { h.LastData = h.Closed + 1 })
	f("a pane of 0s", func(h *Head, _ []SeriesState) { h.Classes[0].Pane = 0 })
	f("panes of 1m0s go on with", func(h *Head, _ []SeriesState) { h.Classes[0].Next += 7 })
	f("panes of 1m0s go on with", func(h *Head, _ []SeriesState) { h.Classes[0].Next -= day })
	f("-1 windows in a row", func(h *Head, _ []SeriesState) { h.Policies[1].Tallies[0].Streak = -1 })
	f("stands twice", func(_ *Head, all []SeriesState) { all[1] = all[0] })
	f("NaN is no number of events", func(_ *Head, all []SeriesState) { all[0].Good = math.NaN() })
	f("+Inf is no number of events", func(_ *Head, all []SeriesState) { all[0].Account.Slice[1] = math.Inf(1) })
	f("a window has the state 4", func(_ *Head, all []SeriesState) { all[0].Windows[0].Last.State = 4 })
	f("a window has the state -1", func(_ *Head, all []SeriesState) { all[0].Windows[0].Last.State = -1 })
	f("are good", func(_ *Head, all []SeriesState) { all[0].Windows[0].Sums.Good = [3]uint64{9, 1, 1} })
	f("are no histogram", func(_ *Head, all []SeriesState) {
		all[0].Windows[0].Sums.Values = &sketch.DistributionState{Explicit: []sketch.ExplicitState{{Bounds: []float64{1}, Counts: []uint64{1}}}}
	})
	f("state of a ring", func(_ *Head, all []SeriesState) { all[0].Account.Ring.Slots = []byte{0xff} })
	f("from", func(_ *Head, all []SeriesState) { withPane(all).Start += 7 })
	f("from", func(_ *Head, all []SeriesState) { withPane(all).Start -= day })
}

// Guarantees: what is of no use any more is left, and the rest taken up.
func TestAStateOfAnotherCatalogIsTakenUpInPart(t *testing.T) {
	h, all := stateOf(lived(3))
	catalog := everything()
	catalog.SLOs[explicitSLO].Indicator.Threshold = &openslo.Selector{Metric: "other"}
	want := 0
	for i := range all {
		if all[i].SLO == "explicit" {
			want++
		}
	}
	require.Positive(t, want)
	j := New(catalog, everyOption())
	left, err := j.Restore(h, all)
	require.NoError(t, err)
	assert.Equal(t, want, left)
}

// Guarantees: after a restart, series with the same boundaries share them in memory again.
func TestBoundariesAreSharedAfterARestart(t *testing.T) {
	j := New(catalogOf(ttft("pod")), Options{Window: 5 * time.Minute, MaxSeries: 10, TTL: time.Hour})
	for _, pod := range []string{"a", "b"} {
		addCounts(j.Series(0, []string{pod}), t0, []uint64{0, 1, 0, 0, 0, 0, 0})
	}
	h, all := stateOf(j)
	again := New(catalogOf(ttft("pod")), j.opts)
	_, err := again.Restore(through(t, h, all))
	require.NoError(t, err)
	var shared [][]float64
	for _, pod := range []string{"a", "b"} {
		pane := again.Series(0, []string{pod}).panes.All()[0]
		pane.Acc.values.Explicit(func(bounds []float64, _ []uint64) { shared = append(shared, bounds) })
	}
	require.Len(t, shared, 2)
	assert.Same(t, &shared[0][0], &shared[1][0])
}

// Scenario: panes of 20 seconds are closed, and the first minute, in which all input lies, is not.
// Guarantees: a checkpoint of that moment is taken up.
func TestAStateOfTheFirstMinuteIsTakenUp(t *testing.T) {
	j := New(everything(), everyOption())
	(&input{t: t0 + minute/2, slo: explicitSLO, pod: "a", n: 3, role: 3}).give(j)
	j.Advance(t0 + minute/3)
	require.True(t, j.begun)
	h, all := stateOf(j)
	again := New(everything(), everyOption())
	_, err := again.Restore(through(t, h, all))
	require.NoError(t, err)
	sameJudges(t, j, again, "taken up")
}
