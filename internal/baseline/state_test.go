// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

func through(t require.TestingT, in CellState) (out CellState) {
	data, err := checkpoint.Encode(in)
	require.NoError(t, err)
	require.NoError(t, checkpoint.Decode(data, &out))
	return out
}

// drawn is a random window.
func drawn(t *rapid.T) *sketch.Distribution {
	d := new(sketch.Distribution)
	if rapid.Bool().Draw(t, "explicit") {
		counts := rapid.SliceOfN(rapid.Uint64Range(0, 200), 4, 4).Draw(t, "counts")
		d.AddExplicit([]float64{0.1, 0.5, 2}, counts)
	}
	for range rapid.IntRange(0, 30).Draw(t, "values") {
		d.Observe(math.Exp2(rapid.Float64Range(-12, 8).Draw(t, "log2")), rapid.Uint64Range(1, 50).Draw(t, "n"))
	}
	return d
}

// Guarantees: a cell that was restored anywhere goes on as the one that was never interrupted.
func TestARestoredCellIsTheUninterruptedOne(t *testing.T) {
	o := DefaultOptions()
	o.Reference = 3
	rapid.Check(t, func(t *rapid.T) {
		j, err := NewJudge(o, Promise{Quantile: 0.95, Objective: 0.7})
		require.NoError(t, err)
		var whole Cell
		end := int64(0)
		for range rapid.IntRange(0, 8).Draw(t, "before") {
			end += window * rapid.Int64Range(1, 20).Draw(t, "gap")
			j.Close(&whole, end, drawn(t))
		}
		var restored Cell
		require.NoError(t, restored.Restore(through(t, whole.State())))
		for range rapid.IntRange(1, 8).Draw(t, "after") {
			end += window * rapid.Int64Range(1, 20).Draw(t, "gap")
			w := drawn(t)
			same(t, j.Close(&whole, end, w), j.Close(&restored, end, w))
		}
		require.Equal(t, through(t, whole.State()), through(t, restored.State()))
	})
}

func same(t require.TestingT, want, got Result) {
	// NaN is not equal to itself.
	for _, pair := range [][2]*float64{
		{&want.Observed.Value, &got.Observed.Value}, {&want.Dynamic.Value, &got.Dynamic.Value}, {&want.Frozen.Value, &got.Frozen.Value},
		{&want.Deviation, &got.Deviation}, {&want.Drift, &got.Drift},
	} {
		if math.IsNaN(*pair[0]) && math.IsNaN(*pair[1]) {
			*pair[0], *pair[1] = 0, 0
		}
	}
	require.Equal(t, want, got)
}

// near compares what differs by rounding only.
func near(t require.TestingT, want, got *Decayed) {
	require.Equal(t, want.at, got.at)
	require.InDelta(t, want.n, got.n, 1e-9*(1+want.n))
	require.InDelta(t, want.sum, got.sum, 1e-9*(1+want.sum))
	require.InDelta(t, want.sumLog, got.sumLog, 1e-8*(1+want.n))
	if want.n > 1 {
		for _, q := range []float64{0.1, 0.5, 0.95} {
			x := want.hist.quantile(q)
			// A jump of the distribution function may make the quantile jump; the function itself is what is the same.
			require.InDelta(t, want.hist.above(x), got.hist.above(x), 1e-3*(1+want.n))
		}
	}
}

// Guarantees: forgetting is tied to time. Two windows in one step are two steps of one, and a window's place in the order
// of arrival does not matter.
func TestDecayIsTiedToTime(t *testing.T) {
	by := DefaultOptions().Decay
	rapid.Check(t, func(t *rapid.T) {
		first, second := drawn(t), drawn(t)
		at := rapid.Int64Range(0, 100).Draw(t, "at") * window
		gap := rapid.Int64Range(0, 100).Draw(t, "gap")
		var one, many, reversed, w Decayed
		w.set(at, first, false)
		one.Merge(by, &w)
		many.Merge(by, &w)
		for i := range gap {
			many.advance(by, at+i*window)
		}
		w.set(at+gap*window, second, false)
		one.Merge(by, &w)
		many.Merge(by, &w)
		one.advance(by, w.at) // an empty window did not
		many.advance(by, w.at)
		near(t, &one, &many)

		if first.Count() > 0 && second.Count() > 0 {
			reversed.Merge(by, &w)
			w.set(at, first, false)
			reversed.Merge(by, &w)
			near(t, &one, &reversed)
		}
	})
	var d, w Decayed
	w.set(0, constant(1, 1000), false)
	d.Merge(by, &w)
	d.advance(by, 34*window)
	assert.InDelta(t, 500, d.n, 5, "the half-life is 34 windows")
	assert.Equal(t, 34*window, d.at)
}

// Guarantees: what two saw of a cell, merged, is what one would have seen.
func TestMergedBaselinesAreTheWhole(t *testing.T) {
	by := DefaultOptions().Decay
	rapid.Check(t, func(t *rapid.T) {
		var whole, a, b, w Decayed
		for i := range rapid.Int64Range(1, 6).Draw(t, "windows") {
			d := drawn(t)
			if d.Count() == 0 {
				continue
			}
			w.set(i*window, d, false)
			whole.Merge(by, &w)
			if rapid.Bool().Draw(t, "where") {
				a.Merge(by, &w)
			} else {
				b.Merge(by, &w)
			}
		}
		if a.n == 0 {
			a, b = b, a
		}
		a.Merge(by, &b)
		near(t, &whole, &a)
	})
}

func TestADamagedStateIsRefused(t *testing.T) {
	f := func(want string, change func(*CellState)) {
		t.Helper()
		var c Cell
		judge(t, p99).Close(&c, int64(time.Hour), constant(1, 500))
		s := through(t, c.State())
		change(&s)
		assert.ErrorContains(t, c.Restore(s), want)
		assert.Equal(t, Cell{}, c)
	}
	f("4 is not a state", func(s *CellState) { s.State = 4 })
	f("dynamic baseline: sums NaN", func(s *CellState) { s.Dynamic.N = math.NaN() })
	f("frozen baseline: sums", func(s *CellState) { s.Frozen.SumLog = math.Inf(1) })
	f("none below 0", func(s *CellState) { s.Frozen.N = -1 })
	f("scale 6 is not in [-2, 5]", func(s *CellState) { s.Dynamic.Scale = 6 })
	f("641 buckets", func(s *CellState) { s.Dynamic.Weights = make([]float32, 641) })
	f("no float lies there", func(s *CellState) { s.Dynamic.Offset = 1 << 20 })
	f("weight 0 is -1", func(s *CellState) { s.Dynamic.Weights[0] = -1 })
}
