// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vllmTTFT holds the first boundaries of vLLM's time to first token; 0.8 is none of them.
var vllmTTFT = []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

func explicitOf(bounds, values []float64) []uint64 {
	counts := make([]uint64, len(bounds)+1)
	for _, v := range values {
		counts[countBelow(bounds, v)]++
	}
	return counts
}

// countBelow is the index of the bucket (lo, hi] that holds v.
func countBelow(bounds []float64, v float64) int {
	i := 0
	for i < len(bounds) && bounds[i] < v {
		i++
	}
	return i
}

func lognormal(r *rand.Rand, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = math.Exp(r.NormFloat64() - 1.5)
	}
	return values
}

func TestSplitAtABoundaryIsExact(t *testing.T) {
	f := func(x float64, want Split) {
		t.Helper()
		counts := explicitOf(vllmTTFT, []float64{0.3, 0.5, 0.6, 0.9, 0.9, 20})
		assert.Equal(t, want, ExplicitAtMost(vllmTTFT, counts, x))
	}
	f(0.5, Split{2, 2, 2})
	f(0.75, Split{3, 3, 3})
	f(750*0.001, Split{3, 3, 3}) // a boundary that a unit conversion moved by the last bit
	f(0.8, Split{3, 3, 5})       // 0.8 is nearer to 0.75: the whole bucket counts as above
	f(0.9, Split{3, 5, 5})       // nearer to 1
	f(10, Split{5, 5, 5})
	f(100, Split{5, 5, 6}) // beyond the last boundary nothing is known
	f(-1, Split{0, 0, 0})
}

func TestSplitAlwaysBoundsTheTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		values := lognormal(r, 1+r.IntN(500))
		x := math.Exp(r.NormFloat64() - 1)
		var d Distribution
		require.True(t, d.AddExplicit(vllmTTFT, explicitOf(vllmTTFT, values)))
		var raw Distribution
		var truth uint64
		for _, v := range values {
			require.True(t, raw.Observe(v, 1))
			if v <= x {
				truth++
			}
		}
		for _, s := range []Split{d.AtMost(x), raw.AtMost(x)} {
			assert.LessOrEqual(t, s.Certain, truth)
			assert.GreaterOrEqual(t, s.Possible, truth)
			assert.True(t, s.Certain <= s.Rounded && s.Rounded <= s.Possible)
		}
	}
}

func TestQuantileAlwaysBoundsTheTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		values := lognormal(r, 1+r.IntN(500))
		q := r.Float64()
		var bucketed, raw Distribution
		bucketed.AddExplicit(vllmTTFT, explicitOf(vllmTTFT, values))
		for _, v := range values {
			raw.Observe(v, 1)
		}
		slices.Sort(values)
		truth := values[max(int(math.Ceil(q*float64(len(values))-1e-6)), 1)-1]
		for name, d := range map[string]*Distribution{"bucketed": &bucketed, "raw": &raw} {
			e := d.Quantile(q, 0)
			assert.LessOrEqual(t, e.Lower, truth*(1+1e-9), name)
			assert.GreaterOrEqual(t, e.Upper, truth*(1-1e-9), name)
			assert.True(t, e.Lower <= e.Value && e.Value <= e.Upper, "%s: %+v", name, e)
		}
		if e := raw.Quantile(q, 0); e.Upper > 0 {
			assert.LessOrEqual(t, (e.Upper-e.Lower)/e.Upper, 0.1, "raw values keep a resolution of 10 % or better")
		}
	}
}

func TestQuantileInterpolatesAsPrometheusDoes(t *testing.T) {
	var d Distribution
	d.AddExplicit([]float64{0.1, 0.2, 0.4}, []uint64{10, 10, 20, 0})
	f := func(q, value, lower, upper float64) {
		t.Helper()
		e := d.Quantile(q, 0)
		assert.InDelta(t, value, e.Value, 1e-9)
		assert.InDelta(t, lower, e.Lower, 1e-12)
		assert.InDelta(t, upper, e.Upper, 1e-12)
	}
	f(0.25, 0.1, 0, 0.1)
	f(0.5, 0.2, 0.1, 0.2)
	f(0.75, 0.3, 0.2, 0.4)
	f(1, 0.4, 0.2, 0.4)
}

func TestQuantileAtAWholeRankDoesNotJumpOverAGap(t *testing.T) {
	var d Distribution
	d.AddExplicit([]float64{0.1, 0.2, 5, 10}, []uint64{0, 19, 0, 1, 0})
	assert.Equal(t, Estimate{Value: 0.2, Lower: 0.1, Upper: 0.2}, d.Quantile(0.95, 0)) // 0.95 · 20 = 19
}

func TestQuantileBeyondTheLastBoundarySaysAtLeast(t *testing.T) {
	var d Distribution
	d.AddExplicit([]float64{1, 2}, []uint64{1, 1, 98})
	e := d.Quantile(0.99, 0)
	assert.Equal(t, 2.0, e.Value)
	assert.Equal(t, 2.0, e.Lower)
	assert.True(t, math.IsInf(e.Upper, 1))
}

func TestQuantileOfNothingIsNotANumber(t *testing.T) {
	assert.True(t, math.IsNaN(new(Distribution).Quantile(0.5, 0).Value))
}

func TestMergeOfPartsIsTheWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		var whole Distribution
		parts := make([]Distribution, 2+r.IntN(3))
		other := []float64{0.5, 1, 2} // a replica of another version, with boundaries of its own
		for i := range parts {
			for range r.IntN(5) {
				bounds := vllmTTFT
				if r.IntN(2) == 0 {
					bounds = other
				}
				counts := explicitOf(bounds, lognormal(r, r.IntN(100)))
				whole.AddExplicit(bounds, counts)
				parts[i].AddExplicit(bounds, counts)
				v := math.Exp(r.NormFloat64()*float64(r.IntN(20))) * float64(1-2*r.IntN(2))
				whole.Observe(v, 3)
				parts[i].Observe(v, 3)
			}
		}
		var merged Distribution
		for i := range parts {
			require.True(t, merged.Merge(&parts[i]))
		}
		assert.Equal(t, whole.Count(), merged.Count())
		for range 20 {
			x := math.Exp(r.NormFloat64() * 3)
			assert.Equal(t, whole.AtMost(x), merged.AtMost(x))
			q := r.Float64()
			if whole.Count() > 0 {
				assert.Equal(t, whole.Quantile(q, 0), merged.Quantile(q, 0))
			}
		}
	}
}

// Guarantees: values that span less than six decades are told apart by 2.2 %, however they came together; more than
// MaxFineBuckets are only taken for that.
func TestSixDecadesKeepTheirResolution(t *testing.T) {
	f := func(octaves float64, scale int32, buckets int) {
		t.Helper()
		var whole, merged Distribution
		parts := make([]Distribution, 3)
		r := rand.New(rand.NewPCG(7, 8))
		for i := range 3000 {
			v := 0.001 * math.Exp2(octaves*r.Float64())
			if i < 2 {
				v = 0.001 * math.Exp2(octaves*float64(i))
			}
			whole.Observe(v, 1)
			parts[r.IntN(3)].Observe(v, 1)
		}
		for i := range parts {
			require.True(t, merged.Merge(&parts[i]))
		}
		assert.Equal(t, scale, whole.exponential()[0].Scale, "%v octaves", octaves)
		assert.LessOrEqual(t, len(whole.exponential()[0].Positive.Counts), buckets, "%v octaves", octaves)
		assert.Equal(t, whole.exponential(), merged.exponential())
	}
	f(4.9, 6, MaxFineBuckets)
	f(5.1, 5, MaxFineBuckets)
	f(9.9, 5, MaxFineBuckets)
	f(10.1, 5, MaxBuckets)
	f(19.9, 5, MaxBuckets)
	f(20.1, 4, MaxFineBuckets+10)
}

func TestExponentialHistogramsOfDifferentScalesMergeExactly(t *testing.T) {
	var d Distribution
	require.True(t, d.AddExponential(&Exponential{Scale: 1, ZeroCount: 2, Positive: Buckets{Offset: 0, Counts: []uint64{1, 2, 3, 4}}}))
	require.True(t, d.AddExponential(&Exponential{Scale: 0, Positive: Buckets{Offset: 0, Counts: []uint64{10, 20}}}))
	// At scale 0 the buckets are (1, 2] and (2, 4]: the finer ones fall into them in pairs.
	assert.Equal(t, Split{2 + 3 + 10, 2 + 3 + 10, 2 + 3 + 10}, d.AtMost(2))
	assert.Equal(t, uint64(42), d.Count())
}

func TestExponentialMillisecondsKeepTheirBoundaries(t *testing.T) {
	var d Distribution
	require.True(t, d.AddExponential(&Exponential{Scale: 0, Factor: 0.001, Positive: Buckets{Offset: 9, Counts: []uint64{5, 7}}}))
	assert.Equal(t, Split{5, 5, 5}, d.AtMost(1.024))
}

func TestRangeCostsResolutionNotMemory(t *testing.T) {
	var d Distribution
	for e := -300; e <= 300; e++ {
		require.True(t, d.Observe(math.Pow(10, float64(e)), 1))
	}
	assert.LessOrEqual(t, len(d.exponential()[0].Positive.Counts), MaxBuckets)
	assert.Equal(t, uint64(601), d.Count())
	assert.Equal(t, uint64(601), d.exponential()[0].Count())
}

func TestTooManyLayoutsAreRefused(t *testing.T) {
	var d Distribution
	for i := range MaxLayouts {
		require.True(t, d.AddExplicit([]float64{float64(i + 1)}, []uint64{1, 0}))
	}
	assert.False(t, d.AddExplicit([]float64{100}, []uint64{1, 0}))
	assert.False(t, d.Observe(1, 1))
	assert.Equal(t, uint64(MaxLayouts), d.Count())
}

func TestResetKeepsMemory(t *testing.T) {
	var d Distribution
	counts := explicitOf(vllmTTFT, []float64{0.3, 2})
	fill := func() {
		d.AddExplicit(vllmTTFT, counts)
		d.Observe(0.92, 1)
		d.Reset()
	}
	fill()
	assert.Zero(t, d.Count())
	assert.Zero(t, d.AtMost(100).Possible)
	assert.Zero(t, testing.AllocsPerRun(100, fill))
}

func TestValid(t *testing.T) {
	assert.True(t, Valid([]float64{1, 2}, []uint64{0, 0, 0}))
	assert.True(t, Valid(nil, []uint64{3}))
	assert.False(t, Valid([]float64{1, 2}, []uint64{0, 0}))
	assert.False(t, Valid([]float64{2, 1}, []uint64{0, 0, 0}))
	assert.False(t, Valid([]float64{1, 1}, []uint64{0, 0, 0}))
	assert.False(t, Valid([]float64{math.NaN()}, []uint64{0, 0}))
	assert.False(t, Valid([]float64{1, math.Inf(1)}, []uint64{0, 0, 0}))
}

func TestNormalize(t *testing.T) {
	f := func(e Exponential, want bool) {
		t.Helper()
		assert.Equal(t, want, e.Normalize())
	}
	one := func(offset int32, counts ...uint64) Buckets { return Buckets{Offset: offset, Counts: counts} }
	f(Exponential{Scale: 3, Positive: one(-5, 1)}, true)
	f(Exponential{Scale: 21}, false)
	f(Exponential{Scale: -11}, false)
	f(Exponential{Scale: -10, Positive: one(1<<30, 1)}, false)
	f(Exponential{Scale: 0, Positive: one(math.MaxInt32, 1, 1)}, false)
	f(Exponential{Scale: 0, Positive: one(math.MaxInt32, 0, 0)}, true) // no value, so no index
	f(Exponential{ZeroThreshold: math.NaN()}, false)
	f(Exponential{Positive: one(0, 1<<60)}, false)
	f(Exponential{Positive: one(0, MaxCount), ZeroCount: 1}, false)
	f(Exponential{Positive: Buckets{Counts: make([]uint64, 1<<20)}}, true)
	long := make([]uint64, MaxInputBuckets+1)
	long[0], long[MaxInputBuckets] = 1, 1
	f(Exponential{Scale: 20, Positive: Buckets{Counts: long}}, false)

	e := Exponential{Positive: one(3, 0, 0, 7, 0)}
	assert.True(t, e.Normalize())
	assert.Equal(t, one(5, 7), e.Positive)
}

// Scenario: a source changes its boundaries with every release.
// Guarantees: boundaries that are no longer used do not count against the limit.
func TestUnusedLayoutsAreForgotten(t *testing.T) {
	var d Distribution
	for i := range 10 * MaxLayouts {
		require.True(t, d.AddExplicit([]float64{float64(i + 1)}, []uint64{1, 0}))
		require.True(t, d.AddExponential(&Exponential{Factor: float64(i + 1), ZeroCount: 1}))
		d.Reset()
	}
}

func TestAZeroBucketWithoutNegativeValuesIsNotNegative(t *testing.T) {
	var d Distribution
	d.AddExponential(&Exponential{ZeroCount: 10, ZeroThreshold: 0.01})
	e := d.Quantile(0.5, 0)
	assert.True(t, e.Lower == 0 && e.Value >= 0 && e.Upper == 0.01, "%+v", e)
}

func FuzzExponentialMergeNeverLosesACount(f *testing.F) {
	f.Add(int32(20), int32(5), uint8(3), int32(-10), int32(0), uint8(1))
	f.Add(int32(1), int32(math.MaxInt32), uint8(1), int32(0), int32(math.MaxInt32), uint8(1)) // empty buckets, far out
	f.Add(int32(0), int32(5), uint8(1), int32(3), int32(5), uint8(9))
	f.Fuzz(func(t *testing.T, scaleA, offsetA int32, lenA uint8, scaleB, offsetB int32, lenB uint8) {
		var d Distribution
		var want uint64
		var last Exponential
		for _, in := range []struct {
			scale, offset int32
			n             uint8
		}{{scaleA, offsetA, lenA}, {scaleB, offsetB, lenB}} {
			e := Exponential{Scale: in.scale, Positive: Buckets{Offset: in.offset}}
			for i := range in.n {
				e.Positive.Counts = append(e.Positive.Counts, uint64(i))
			}
			if e.Normalize() {
				want += e.Count()
				d.AddExponential(&e)
				var diff Exponential
				diff.Copy(&e)
				before := last.Count()
				if diff.Sub(&last) && diff.Count() != e.Count()-before {
					t.Fatalf("%d less %d is not %d", e.Count(), before, diff.Count())
				}
				last.Copy(&e)
			}
		}
		if d.Count() != want || (len(d.exponential()) > 0 && d.exponential()[0].Count() != want) {
			t.Fatalf("want %d values, have %d", want, d.Count())
		}
	})
}

func BenchmarkAddExplicit(b *testing.B) {
	var d Distribution
	counts := explicitOf(vllmTTFT, []float64{0.3, 2})
	b.ReportAllocs()
	for b.Loop() {
		d.AddExplicit(vllmTTFT, counts)
	}
}

func BenchmarkObserve(b *testing.B) {
	var d Distribution
	r := rand.New(rand.NewPCG(7, 8))
	values := lognormal(r, 1024)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Observe(values[i%len(values)], 1)
	}
}

func BenchmarkQuantile(b *testing.B) {
	var d Distribution
	d.AddExplicit(vllmTTFT, explicitOf(vllmTTFT, lognormal(rand.New(rand.NewPCG(9, 10)), 1000)))
	b.ReportAllocs()
	for b.Loop() {
		d.Quantile(0.95, 0)
	}
}
