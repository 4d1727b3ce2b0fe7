// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

var wide = []float64{0.1, 0.25, 0.5, 0.75, 1, 2.5}

// bucketed are values in wide buckets.
func bucketed(values ...float64) *sketch.Distribution {
	counts := make([]uint64, len(wide)+1)
	for _, v := range values {
		counts[sort.SearchFloat64s(wide, v)] += 1000 / uint64(len(values))
	}
	d := new(sketch.Distribution)
	d.AddExplicit(wide, counts)
	return d
}

// doubling are values in the buckets of an exponential histogram, each of which ends at twice the one before.
func doubling(v float64) *sketch.Distribution {
	d := new(sketch.Distribution)
	d.AddExponential(&sketch.Exponential{Positive: sketch.Buckets{Offset: int32(math.Ceil(math.Log2(v))) - 1, Counts: []uint64{1000}}})
	return d
}

// Scenario: all values lie in one bucket that the objective cuts, or in two. Guarantees: a promise is not broken by interpolation nor
// kept by it; where some are certainly beyond the objective, it is broken.
func TestWhatBucketsLeaveOpenIsNotJudged(t *testing.T) {
	f := func(want State, p Promise, w *sketch.Distribution) (last Result) {
		t.Helper()
		j, c := judge(t, p), new(Cell)
		for i := range int64(10) {
			last = j.Close(c, i*window, w)
		}
		assert.Equal(t, want, last.State)
		assert.Equal(t, want == InsufficientData, math.IsNaN(last.Deviation), "how far it is from the objective is as open")
		assert.Equal(t, want == InsufficientData, last.Open != Span{})
		return last
	}
	p95 := func(objective float64) Promise { return Promise{Quantile: 0.95, Objective: objective} }
	p5 := func(objective float64) Promise {
		return Promise{Quantile: 0.05, Objective: objective, HigherIsBetter: true}
	}

	got := f(InsufficientData, p95(0.6), bucketed(0.51))
	assert.InDelta(t, 0.7375, got.Observed.Value, 1e-9, "what slo tells")
	assert.Equal(t, Span{0.5, 0.75}, got.Open)
	f(InsufficientData, p95(0.74), bucketed(0.51))
	f(OK, p95(0.75), bucketed(0.51))
	f(OK, p95(0.6), bucketed(0.3))
	f(OK, p95(0.6), bucketed(0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.51))
	f(Degraded, p95(0.6), bucketed(0.3, 0.8))

	// The last bucket has no end.
	assert.Equal(t, Span{2.5, math.Inf(1)}, f(InsufficientData, p95(5), bucketed(100)).Open)
	f(Drifting, p95(2.5), bucketed(100)) // missed, by who knows how much
	f(Degraded, p95(2), bucketed(100))
	f(InsufficientData, p5(5), bucketed(100))
	f(OK, p5(2.5), bucketed(100))

	f(InsufficientData, p5(0.6), bucketed(0.51))
	f(Degraded, p5(0.6), bucketed(0.3))
	f(OK, p5(0.6), bucketed(0.8))

	// An exponential histogram may be as wide.
	f(InsufficientData, p95(3), doubling(3))
	f(OK, p95(4), doubling(3))
	f(Degraded, p95(4), doubling(5))

	// A value is no bucket: one that is the objective keeps it.
	f(OK, p95(0.2), constant(0.2, 1000))
	f(OK, p5(4), constant(4, 1000))
	f(OK, p5(0.3), constant(0.3, 1000))
}

// Scenario: what was degraded for certain falls into a bucket that the objective cuts. Guarantees: it is degraded until it is known for
// long enough that it is not known any more; and as long, what is worse than normal is no more part of what is normal than before.
func TestWhatCannotBeToldAnyMoreIsNotHeldForever(t *testing.T) {
	j, c := judge(t, Promise{Quantile: 0.95, Objective: 0.6}), new(Cell)
	var states []State
	for i := range int64(12) {
		v := 0.3
		if i >= 4 {
			v = 0.8
		}
		if i >= 8 {
			v = 0.51
		}
		states = append(states, j.Close(c, i*window, bucketed(v)).State)
	}
	assert.Equal(t, []State{OK, OK, OK, OK, OK, Degraded, Degraded, Degraded, Degraded, Degraded}, states[:10])
	assert.Equal(t, uint16(4), c.windows, "the reference is of the windows that kept the promise")
	assert.NotEqual(t, Degraded, states[11])
}

// Guarantees: however values lie in buckets, a promise that they keep is never degraded nor drifts, and one that they break is never ok.
func TestNoVerdictContradictsTheValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Promise{Quantile: 0.95, Objective: rapid.Float64Range(0.05, 6).Draw(t, "objective")}
		if rapid.Bool().Draw(t, "higher") {
			p.Quantile, p.HigherIsBetter = 0.05, true
		}
		v := rapid.Float64Range(0.01, 10).Filter(func(v float64) bool { return v != p.Objective }).Draw(t, "value")
		j, err := NewJudge(DefaultOptions(), p)
		require.NoError(t, err)
		var c Cell
		var state State
		for i := range int64(4) {
			state = j.Close(&c, i*window, bucketed(v)).State
		}
		kept := v < p.Objective == !p.HigherIsBetter
		if kept {
			require.LessOrEqual(t, state, OK)
		} else {
			require.NotEqual(t, OK, state)
		}
	})
}

// Guarantees: counting by index is counting by boundaries, but for the bucket that ends at one: that holds it.
func TestWhatLiesBeyondIsCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d sketch.Distribution
		for range rapid.IntRange(1, 40).Draw(t, "values") {
			d.Observe(rapid.Float64Range(-50, 50).Draw(t, "value"), 1)
		}
		x := rapid.Float64Range(-60, 60).Filter(func(x float64) bool { return x != 0 && math.Abs(math.Remainder(math.Log2(math.Abs(x)), 1.0/32)) > 1e-6 }).Draw(t, "x")
		d.Exponential(func(e *sketch.Exponential) {
			split, n := e.AtMost(x), e.Count()
			require.Equal(t, n-split.Possible, beyond(e, x, false))
			require.Equal(t, split.Certain, beyond(e, x, true))
		})
	})
	d := constant(4, 1)
	d.Observe(-4, 2)
	d.Observe(0, 4)
	d.Exponential(func(e *sketch.Exponential) {
		for x, want := range map[float64][2]uint64{4: {0, 6}, 0: {1, 2}, -4: {5, 0}} {
			assert.Equal(t, want, [2]uint64{beyond(e, x, false), beyond(e, x, true)}, "beyond %v", x)
		}
	})
}

// Scenario: a promise is missed for hours by a share that no window is certain of, but for what buckets that the objective cuts may
// hold. Guarantees: what those hold is no evidence, however long it lasts.
func TestWhatBucketsLeaveOpenDoesNotAddUp(t *testing.T) {
	f := func(want State, certain, open uint64) {
		t.Helper()
		j, c := judge(t, Promise{Quantile: 0.95, Objective: 0.6}), new(Cell)
		var got Result
		for i := range int64(100) {
			d := new(sketch.Distribution)
			d.AddExplicit(wide, []uint64{0, 0, 1000 - certain - open, open, certain, 0, 0})
			got = j.Close(c, i*window, d)
		}
		require.Equal(t, want, got.State)
	}
	f(OK, 48, 14)
	f(OK, 51, 14)
	f(Drifting, 61, 4)
	f(OK, 45, 17)
}

// Scenario: nothing is promised, or less. Guarantees: a promise that is broken is degraded, and one that is kept is ok.
func TestAPromiseOfNothingOrLessIsKeptOrBroken(t *testing.T) {
	f := func(want State, p Promise, values ...float64) (last Result) {
		t.Helper()
		j, c := judge(t, p), new(Cell)
		for i := range int64(4) {
			d := new(sketch.Distribution)
			for _, v := range values {
				d.Observe(v, 1000/uint64(len(values)))
			}
			last = j.Close(c, i*window, d)
		}
		assert.Equal(t, want, last.State)
		return last
	}
	none := Promise{Quantile: 0.95}
	f(OK, none, 0)
	f(OK, none, -3, 0)
	f(Degraded, none, 0, 0, 5)
	f(Degraded, none, 0.001)
	f(OK, Promise{Quantile: 0.05, HigherIsBetter: true}, 0)
	f(OK, Promise{Quantile: 0.05, HigherIsBetter: true}, 0, 7)
	f(Degraded, Promise{Quantile: 0.05, HigherIsBetter: true}, -5, 7)

	margin := Promise{Quantile: 0.05, Objective: -10, HigherIsBetter: true}
	f(OK, margin, -1, -10)
	f(OK, margin, 5, -3)
	f(Degraded, margin, -1, -50)
	got := f(Drifting, margin, -1, -10.5)
	assert.InDelta(t, -0.05, got.Deviation, 0.012)
	assert.InEpsilon(t, -10.5, got.Dynamic.Value, 0.022, "what is normal is below zero, too")
	f(Degraded, Promise{Quantile: 0.95, Objective: -10}, -20, -5)
	f(OK, Promise{Quantile: 0.95, Objective: -10}, -20, -10)
}

// Scenario: what was always 0 is more than 0, where much more is promised. Guarantees: it drifts by a share of what is promised.
func TestWhatWasNothingDriftsByAShareOfWhatIsPromised(t *testing.T) {
	f := func(want State, v float64) {
		t.Helper()
		j, c := judge(t, Promise{Quantile: 0.95, Objective: 1}), new(Cell)
		for i := range int64(60) {
			require.Equal(t, OK, j.Close(c, i*window, constant(0, 1000)).State)
		}
		j.Close(c, 60*window, constant(v, 1000))
		assert.Equal(t, want, j.Close(c, 61*window, constant(v, 1000)).State)
	}
	f(OK, 0.001)
	f(Drifting, 0.5)
}

// Scenario: the share that a promise is about is edited, from 99 % of requests to 95 %, and back. Guarantees: the reference goes on, and
// what is slower than ever before drifts as in a cell that was never edited; a steady one does not.
func TestAnEditedTargetKeepsWhatIsKnown(t *testing.T) {
	f := func(from, to float64) {
		t.Helper()
		r := rand.New(rand.NewPCG(3, 3))
		promise := func(q float64) *Judge {
			j, err := NewJudge(hourly(), Promise{Quantile: q, Objective: 2})
			require.NoError(t, err)
			return j
		}
		old, j := promise(from), promise(to)
		c, never := new(Cell), new(Cell)
		var got, want Result
		both := func(i int64, p99 float64) {
			w := traffic(r, 2000, p99, 0.8)
			want = j.Close(never, i*window, w)
			if i < 15 {
				old.Close(c, i*window, w)
				return
			}
			got = j.Close(c, i*window, w)
		}
		for i := range int64(15) {
			both(i, 0.5)
		}
		j.Adopt(c, old.promise)
		require.InEpsilon(t, never.worst, c.worst, 0.15)
		for i := int64(15); i < 25; i++ {
			both(i, 0.5)
			require.Equal(t, OK, got.State, "window %d", i)
		}
		for i := int64(25); i < 30; i++ {
			both(i, 0.8)
			if i > 25 {
				assert.Equal(t, Drifting, got.State, "window %d", i)
			}
		}
		assert.Equal(t, want.State, got.State)
		assert.Equal(t, want.Frozen, got.Frozen)
	}
	f(0.99, 0.95)
	f(0.95, 0.99)
}

// Guarantees: a promise that is turned around begins a new reference, since what was the worst was the best.
func TestAPromiseThatIsTurnedAroundHasNoReference(t *testing.T) {
	of := Promise{Quantile: 0.95, Objective: 1}
	j, c := judge(t, of), new(Cell)
	j.Close(c, window, constant(0.5, 1000))
	require.Equal(t, uint16(1), c.windows)
	judge(t, Promise{Quantile: 0.05, Objective: 0.1, HigherIsBetter: true}).Adopt(c, of)
	assert.Zero(t, c.windows)
	assert.Zero(t, c.frozen.n)
	assert.InDelta(t, 1000, c.dynamic.n, 0)
}

// Scenario: a cell that keeps its promise is accused by a comparison from the beginning, and acquitted later. Guarantees: what it was
// until then is no part of what was normal once; and what becomes worse than normal while it is degraded is not normal.
func TestWhatIsAccusedIsNotNormal(t *testing.T) {
	j, err := NewJudge(hourly(), Promise{Quantile: 0.95, Objective: 2})
	require.NoError(t, err)
	c := new(Cell)
	i := int64(0)
	f := func(accused bool, v float64, windows int) {
		for range windows {
			c.Accuse(accused)
			j.Close(c, i*window, constant(v, 1000))
			i++
		}
	}
	f(true, 0.3, 20)
	assert.Zero(t, c.windows)
	assert.InEpsilon(t, 0.3, c.dynamic.hist.quantile(0.95), 0.02, "what a cell begins with is what is normal for it now")
	f(true, 0.9, 20)
	assert.InEpsilon(t, 0.3, c.dynamic.hist.quantile(0.95), 0.02)
	f(false, 0.2, 12)
	assert.Equal(t, uint16(12), c.windows)
	assert.InEpsilon(t, 0.2, c.frozen.hist.quantile(0.95), 0.02)
}
