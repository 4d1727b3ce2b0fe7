// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// anyBounds are boundaries of all kinds, none included.
func anyBounds(t *rapid.T) []float64 {
	bounds := rapid.SliceOfN(rapid.Float64Range(-3, 20), 0, 16).Draw(t, "bounds")
	slices.Sort(bounds)
	return slices.Compact(bounds)
}

// anyCounts are counts of every width.
func anyCounts(t *rapid.T, n int) []uint64 {
	of := rapid.OneOf(rapid.Just[uint64](0), rapid.Uint64Range(0, 20), rapid.Uint64Range(0, 1<<17), rapid.Uint64Range(0, 1<<34))
	return rapid.SliceOfN(of, n, n).Draw(t, "counts")
}

// Guarantees: what one layout says of its quantiles is, to the bit, what joined layouts say.
func TestAQuantileOfOneLayoutIsThatOfJoinedOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := anyBounds(t)
		var one Distribution
		require.True(t, one.AddExplicit(bounds, anyCounts(t, len(bounds)+1)))
		joined := Distribution{first: one.first, more: &layouts{}}
		unknown := rapid.Uint64Range(0, 50).Draw(t, "unknown")
		n := one.Count()
		qs := []float64{0, 0.05, 0.5, 0.95, 0.999, 1, rapid.Float64Range(0, 1).Draw(t, "q")}
		for _, k := range []uint64{1, n / 3, n - min(n, 1)} { // whole ranks
			qs = append(qs, float64(k)/float64(max(n, 1)))
		}
		for _, q := range qs {
			want, got := joined.Quantile(q, unknown), one.Quantile(q, unknown)
			require.Equal(t, text(want), text(got), "%v: %+v, not %+v", q, got, want)
		}
	})
}

func TestAQuantileOfOneLayoutAllocatesNothing(t *testing.T) {
	var d Distribution
	d.AddExplicit(vllmTTFT, explicitOf(vllmTTFT, lognormal(rand.New(rand.NewPCG(9, 10)), 1000)))
	assert.Zero(t, testing.AllocsPerRun(100, func() { d.Quantile(0.95, 3) }))
}

// Scenario: counts of any size are added and merged in any order, and emptied now and then.
// Guarantees: none is lost, however narrow those before it were.
func TestCountsGrowAsWideAsTheyMust(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := anyBounds(t)
		want := make([]uint64, len(bounds)+1)
		var d Distribution
		for range rapid.IntRange(1, 12).Draw(t, "turns") {
			counts := anyCounts(t, len(want))
			for i, n := range counts {
				want[i] += n
			}
			if rapid.Bool().Draw(t, "merged") {
				var o Distribution
				require.True(t, o.AddExplicit(slices.Clone(bounds), counts))
				require.True(t, d.Merge(&o))
			} else {
				require.True(t, d.AddExplicit(bounds, counts))
			}
			var got []uint64
			d.Explicit(func(_ []float64, counts []uint64) { got = append(got, counts...) })
			if d.Count() > 0 {
				require.Equal(t, want, got)
			}
			if rapid.IntRange(0, 3).Draw(t, "reset") == 0 {
				d.Reset()
				clear(want)
				require.Zero(t, d.Count())
			}
		}
	})
}

func TestACountIsAsWideAsItMustBe(t *testing.T) {
	f := func(n uint64, want int) {
		t.Helper()
		var d Distribution
		d.AddExplicit([]float64{1}, []uint64{7, n})
		assert.Len(t, d.first.counts, 2*want)
		assert.Equal(t, 7+n, d.Count())
	}
	f(math.MaxUint16, 2)
	f(math.MaxUint16+1, 4)
	f(math.MaxUint32, 4)
	f(math.MaxUint32+1, 8)
	f(MaxCount, 8)
}

// Scenario: the boundaries that came first are not used any more, while others are.
// Guarantees: those stay, and are merged, judged and forgotten as before.
func TestTheFirstLayoutGoesLikeAnyOther(t *testing.T) {
	var d Distribution
	old, now := []float64{1, 2}, []float64{1, 2, 4}
	for range 3 {
		d.AddExplicit(old, []uint64{1, 0, 0})
		d.AddExplicit(now, []uint64{0, 0, 0, 1})
		assert.Equal(t, Split{1, 1, 1}, d.AtMost(4))
		d.Reset()
		for range 2 {
			d.AddExplicit(now, []uint64{0, 3, 0, 1})
			var merged Distribution
			merged.Merge(&d)
			assert.Equal(t, Split{3, 3, 3}, merged.AtMost(2))
			assert.Equal(t, uint64(4), merged.Count())
			d.Reset()
		}
		assert.Nil(t, d.more)
		assert.True(t, d.first.of(now))
	}
}
