// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
)

// through brings a state through a checkpoint.
func through[S any](t require.TestingT, in S) (out S) {
	data, err := checkpoint.Encode(in)
	require.NoError(t, err)
	require.NoError(t, checkpoint.Decode(data, &out))
	return out
}

// fill adds random values of all shapes to both distributions.
func fill(t *rapid.T, a, b *Distribution) {
	layouts := [][]float64{vllmTTFT, {0.5, 1, 2}, nil}
	values := rapid.OneOf(rapid.Float64Range(-1e9, 1e9), rapid.Float64Range(1e-9, 1), rapid.SampledFrom([]float64{0, 1e-300, 1e300, math.SmallestNonzeroFloat64}))
	count := rapid.Uint64Range(0, 1000)
	for range rapid.IntRange(0, 20).Draw(t, "steps") {
		switch rapid.SampledFrom([]string{"raw", "explicit", "exponential", "reset"}).Draw(t, "kind") {
		case "raw":
			v, n := values.Draw(t, "value"), count.Draw(t, "n")
			require.Equal(t, a.Observe(v, n), b.Observe(v, n))
		case "explicit":
			bounds := rapid.SampledFrom(layouts).Draw(t, "bounds")
			counts := rapid.SliceOfN(count, len(bounds)+1, len(bounds)+1).Draw(t, "counts")
			require.Equal(t, a.AddExplicit(bounds, counts), b.AddExplicit(bounds, counts))
		case "exponential":
			side := func() Buckets {
				return Buckets{Offset: rapid.Int32Range(-1000, 1000).Draw(t, "offset"), Counts: rapid.SliceOfN(count, 0, 200).Draw(t, "buckets")}
			}
			e := Exponential{
				Scale: rapid.Int32Range(-2, 8).Draw(t, "scale"), Factor: rapid.SampledFrom([]float64{0, 1, 0.001}).Draw(t, "factor"),
				ZeroThreshold: rapid.Float64Range(0, 1).Draw(t, "threshold"), ZeroCount: count.Draw(t, "zeros"), Positive: side(), Negative: side(),
			}
			if e.Normalize() {
				require.Equal(t, a.AddExponential(&e), b.AddExponential(&e))
			}
		default:
			a.Reset()
			b.Reset()
		}
	}
}

// Guarantees: a distribution that was restored anywhere goes on as the one that was never interrupted.
func TestARestoredDistributionIsTheUninterruptedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var whole, restored Distribution
		fill(t, &whole, new(Distribution))
		require.NoError(t, restored.Restore(through(t, whole.State()), nil))
		fill(t, &whole, &restored)
		require.Equal(t, whole.Count(), restored.Count())
		for _, x := range []float64{-1, 0, 1e-6, 0.3, 0.5, 0.8, 1, 7, 1e5} {
			require.Equal(t, whole.AtMost(x), restored.AtMost(x))
		}
		for _, q := range []float64{0, 0.5, 0.95, 0.999, 1} {
			want, got := whole.Quantile(q, 0), restored.Quantile(q, 0)
			if whole.Count() == 0 {
				require.True(t, math.IsNaN(got.Value))
				continue
			}
			require.Equal(t, []float64{want.Lower, want.Upper}, []float64{got.Lower, got.Upper})
			// Empty layouts were not kept, so the layouts may stand in another order, in which sums are rounded otherwise.
			require.InDelta(t, want.Value, got.Value, 1e-9*math.Abs(want.Value))
		}
		if whole.Count() > 0 {
			require.ElementsMatch(t, whole.State().Explicit, restored.State().Explicit)
		}
	})
}

func TestAnEmptyDistributionIsAByte(t *testing.T) {
	d := new(Distribution)
	d.Observe(1, 1)
	d.Reset()
	data, err := checkpoint.Encode(d.State())
	require.NoError(t, err)
	assert.Len(t, data, 1)
}

func TestRestoredBoundariesAreShared(t *testing.T) {
	known := []float64{1, 2}
	intern := func(bounds []float64) []float64 { assert.Equal(t, known, bounds); return known }
	var d, restored Distribution
	d.AddExplicit([]float64{1, 2}, []uint64{1, 2, 3})
	require.NoError(t, restored.Restore(through(t, d.State()), intern))
	assert.Same(t, &known[0], &restored.first.bounds[0])
}

func TestAStateThatIsNoDistributionIsRefused(t *testing.T) {
	f := func(want string, s DistributionState) {
		t.Helper()
		var d Distribution
		d.Observe(1, 1)
		assert.ErrorContains(t, d.Restore(&s, nil), want)
		assert.Zero(t, d.Count())
		assert.Nil(t, d.State())
	}
	explicit := func(bounds []float64, counts ...uint64) DistributionState {
		return DistributionState{Explicit: []ExplicitState{{Bounds: bounds, Counts: counts}}}
	}
	exponential := func(e ExponentialState) DistributionState {
		return DistributionState{Exponential: []ExponentialState{{ZeroCount: 1}, e}}
	}
	f("no histogram", explicit([]float64{1}, 1))
	f("no histogram", explicit([]float64{2, 1}, 1, 1, 1))
	f("no histogram", explicit([]float64{math.NaN()}, 1, 1))
	f("more than can be counted", explicit([]float64{1}, math.MaxUint64, 1))
	f("9 bucket layouts", DistributionState{Explicit: make([]ExplicitState, 9)})
	f("scale 21", exponential(ExponentialState{Scale: 21}))
	f("factor NaN", exponential(ExponentialState{Factor: math.NaN()}))
	f("zero threshold +Inf", exponential(ExponentialState{ZeroThreshold: math.Inf(1)}))
	f("zero threshold -1", exponential(ExponentialState{ZeroThreshold: -1}))
	f("more than can be counted", exponential(ExponentialState{ZeroCount: math.MaxUint64}))
	f("are too many", exponential(ExponentialState{Positive: BucketsState{Offset: math.MaxInt32, Counts: []uint64{1}}}))
	f("are too many", exponential(ExponentialState{Positive: BucketsState{Counts: make([]uint64, MaxInputBuckets+1)}}))
	f("beyond what a float", exponential(ExponentialState{Negative: BucketsState{Offset: 1 << 30, Counts: []uint64{1}}}))
	f("641 exponential buckets", exponential(ExponentialState{Positive: BucketsState{Counts: make([]uint64, MaxBuckets+1)}}))
	f("321 exponential buckets at scale 6", exponential(ExponentialState{Scale: 6, Positive: BucketsState{Counts: make([]uint64, MaxFineBuckets+1)}}))
}
