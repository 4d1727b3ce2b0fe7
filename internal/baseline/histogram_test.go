// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAWideBucketKeepsItsDistributionFunction(t *testing.T) {
	var h histogram
	h.add(0.5, 1, 100) // as an explicit bucket has it: even inside
	for _, q := range []float64{0.01, 0.25, 0.5, 0.9, 1} {
		assert.InEpsilon(t, 0.5+0.5*q, h.quantile(q), 0.011)
		assert.InDelta(t, 100*(1-q), h.above(0.5+0.5*q), 1e-3)
	}
}

func TestAnOpenEndCountsJustBeyondItsBoundary(t *testing.T) {
	for _, bound := range []float64{2.5, 8, 10} { // 8 is one of the histogram's own
		var h histogram
		h.add(bound, math.Inf(1), 1)
		assert.InDelta(t, 1, h.above(bound), 0, "all of it is above")
		assert.InEpsilon(t, bound, h.quantile(1), 0.033, "by no more than one and a half buckets")
	}
	var h histogram
	h.add(math.Inf(-1), 0, 1)
	assert.Zero(t, h.quantile(1))
}

// Guarantees: whatever comes in, the weight is there, in at most maxBuckets, and a quantile is off by no more than the
// width of a bucket.
func TestAHistogramLosesNoWeightWhateverTheRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h histogram
		var total float64
		var least, most float64 = math.Inf(1), 0
		for range rapid.IntRange(1, 50).Draw(t, "values") {
			v := math.Exp2(rapid.Float64Range(-1000, 1000).Draw(t, "log2"))
			w := float64(rapid.IntRange(1, 100).Draw(t, "weight"))
			h.add(v, v, w)
			total += w
			least, most = min(least, v), max(most, v)
			require.LessOrEqual(t, len(h.weights), maxBuckets)
			require.GreaterOrEqual(t, h.scale, int32(minScale))
		}
		require.InEpsilon(t, total, h.total(), 1e-6)
		width := math.Exp2(math.Ldexp(1, -int(h.scale))) * (1 + 1e-6)
		require.LessOrEqual(t, h.quantile(1), most*width)
		require.GreaterOrEqual(t, h.quantile(1), most/width)
		require.GreaterOrEqual(t, h.quantile(0), least/width)
	})
}

func TestMergedHistogramsAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var whole, a, b histogram
		values := rapid.SliceOfN(rapid.Float64Range(-30, 30), 1, 60).Draw(t, "log2")
		for i, l := range values {
			v := math.Exp2(l)
			whole.add(v, v, 1)
			if i%2 == 0 {
				a.add(v, v, 1)
			} else {
				b.add(v, v, 1)
			}
		}
		a.merge(&b, 1)
		require.Equal(t, whole.scale, a.scale)
		require.InEpsilon(t, whole.total(), a.total(), 1e-6)
		// A value within a rounding error of a boundary may fall to either side of it, by the scale at which it came.
		width := math.Exp2(math.Ldexp(1, -int(a.scale))) - 1
		for _, q := range []float64{0, 0.5, 0.9, 1} {
			require.InEpsilon(t, whole.quantile(q), a.quantile(q), width+1e-5)
		}
	})
}
