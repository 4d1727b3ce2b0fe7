// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// anyValues are raw values of both signs, and zero.
func anyValues(t *rapid.T, label string) []float64 {
	return rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(-50, 50), rapid.Float64Range(0.1, 2), rapid.Just(0.0)), 0, 60).Draw(t, label)
}

func ofValues(values []float64) *Exponential {
	e := &Exponential{Scale: MaxScale}
	for _, v := range values {
		e.observe(v, 1)
	}
	return e
}

// Guarantees: the k smallest values and the others are the whole, bucket by bucket, and none of the first is above one of the
// others but within a bucket.
func TestTheTwoSidesOfACutAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := anyValues(t, "values")
		e := ofValues(values)
		k := rapid.Uint64Range(0, uint64(len(values))+2).Draw(t, "k")
		var before Exponential
		before.Copy(e)
		low, high := e.Cut(k)
		require.Equal(t, &before, e, "the whole stays as it is")
		require.Equal(t, min(k, e.Count()), low.Count())
		require.Equal(t, e.Count()-low.Count(), high.Count())

		var whole, joined Distribution
		whole.AddExponential(e)
		joined.AddExponential(high)
		joined.AddExponential(low)
		for _, q := range []float64{0, 0.1, 0.5, 0.95, 1} {
			require.Equal(t, text(whole.Quantile(q, 0)), text(joined.Quantile(q, 0)))
		}
		top, bottom := math.Inf(-1), math.Inf(1)
		low.each(func(lo, _ float64, _ uint64) { top = math.Max(top, lo) })
		high.each(func(_, hi float64, _ uint64) { bottom = math.Min(bottom, hi) })
		require.True(t, low.Count() == 0 || high.Count() == 0 || top <= bottom)
	})
}

// text compares estimates in which NaN is NaN.
func text(e Estimate) [3]uint64 {
	return [3]uint64{math.Float64bits(e.Value), math.Float64bits(e.Lower), math.Float64bits(e.Upper)}
}

// Guarantees: whatever the values are of which nothing is known, the true quantile of all lies within the bounds.
func TestUnknownValuesWidenTheBoundsOfAQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		known, unknown := anyValues(t, "known"), anyValues(t, "unknown")
		if len(known) == 0 {
			known = append(known, 1)
		}
		var d Distribution
		d.AddExponential(ofValues(known))
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		e := d.Quantile(q, uint64(len(unknown)))
		all := append(slices.Clone(known), unknown...)
		slices.Sort(all)
		kth := all[kthOf(q, uint64(len(all)))-1]
		require.True(t, kth >= e.Lower-1e-9 && kth <= e.Upper+1e-9, "%v of %v is %v, not in [%v, %v]", q, all, kth, e.Lower, e.Upper)
		require.InDelta(t, d.Quantile(q, 0).Value, e.Value, 0, "the estimate is that of the known")
	})
	var d Distribution
	d.AddExplicit([]float64{1, 2}, []uint64{90, 0, 0})
	f := func(q float64, unknown uint64, lower, upper float64) {
		t.Helper()
		e := d.Quantile(q, unknown)
		assert.InDelta(t, lower, e.Lower, 0)
		assert.InDelta(t, upper, e.Upper, 0)
	}
	f(0.9, 0, 0, 1)
	f(0.9, 10, 0, 1) // the 90th of 100 is known, if all others are above
	f(0.9, 11, 0, math.Inf(1))
	f(0.05, 10, math.Inf(-1), 1)
}

func TestASumFitsItsBuckets(t *testing.T) {
	f := func(bounds []float64, counts []uint64, sum float64, want bool) {
		t.Helper()
		assert.Equal(t, want, SumFits(bounds, counts, sum))
	}
	b := []float64{0.1, 1, 10}
	f(b, []uint64{0, 0, 8060, 0}, 0.59, false) // vllm#8115
	f(b, []uint64{0, 0, 8060, 0}, 8060, true)
	f(b, []uint64{0, 0, 8060, 0}, 80_600, true)
	f(b, []uint64{0, 0, 8060, 0}, 80_700, false)
	f(b, []uint64{10, 0, 0, 0}, 0, true)
	f(b, []uint64{10, 0, 0, 0}, 1.1, false)
	f(b, []uint64{10, 0, 0, 0}, -1, false) // a first boundary above zero says that nothing is below it
	f(b, []uint64{0, 0, 0, 1}, 1e9, true)
	f(b, []uint64{0, 0, 0, 1}, 9, false)
	f([]float64{-1, 1}, []uint64{5, 0, 0}, -1e9, true)
	f([]float64{-1, 1}, []uint64{5, 0, 0}, 0, false)
	f(nil, []uint64{3}, -7, true)
	f(b, []uint64{0, 0, 0, 0}, 0, true)
	f(b, []uint64{0, 0, 0, 0}, 5, false)
	f(b, []uint64{1, 0, 0, 0}, math.NaN(), false)
	f(b, []uint64{1, 0, 0, 0}, math.Inf(1), false)
	f(b, []uint64{1, 0, 0, 1}, math.Inf(1), true)
	f(b, []uint64{1, 0, 0, 1}, math.Inf(-1), false)
}

// Guarantees: of values that are in their buckets, no sum is refused.
func TestATrueSumAlwaysFits(t *testing.T) {
	bounds := []float64{-5, 0, 0.1, 0.8, 3}
	rapid.Check(t, func(t *rapid.T) {
		counts := make([]uint64, len(bounds)+1)
		var sum float64
		for _, v := range rapid.SliceOf(rapid.Float64Range(-20, 20)).Draw(t, "values") {
			counts[slices.IndexFunc(append(slices.Clone(bounds), math.Inf(1)), func(b float64) bool { return v <= b })]++
			sum += v
		}
		require.True(t, SumFits(bounds, counts, sum))
	})
}
