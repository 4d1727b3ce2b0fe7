// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// reference is what scipy says; testdata/reference.py has how it was made.
type reference struct {
	Fits []struct {
		N                               int
		Mean, MeanLog, Shape, Scale, KS float64
		Q, Quantiles, CDF, Values       []float64
	}
	Minimum []struct {
		Q float64
		N int
	}
}

func scipy(t *testing.T) (r reference) {
	data, err := os.ReadFile("testdata/reference.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &r))
	require.NotEmpty(t, r.Fits)
	return r
}

func TestTheFitIsThatOfAnotherImplementation(t *testing.T) {
	for _, want := range scipy(t).Fits {
		got, ok := FitGamma(want.Mean, want.MeanLog)
		require.True(t, ok)
		assert.InEpsilon(t, want.Shape, got.Shape, 1e-7)
		assert.InEpsilon(t, want.Scale, got.Scale, 1e-7)
		for i, q := range want.Q {
			assert.InEpsilon(t, want.Quantiles[i], got.Quantile(q), 1e-6, "shape %v, quantile %v", want.Shape, q)
		}
		for i, x := range []float64{0.01, 0.1, 0.3, 1, 3} {
			assert.InDelta(t, want.CDF[i], got.CDF(x), 1e-7)
		}
	}
}

// Guarantees: the sums and the distance that come from buckets are those of the values, to the width of a bucket.
func TestAFitOfBucketsIsThatOfTheValues(t *testing.T) {
	for _, want := range scipy(t).Fits {
		if len(want.Values) == 0 {
			continue
		}
		var raw sketch.Distribution
		for _, v := range want.Values {
			raw.Observe(v, 1)
		}
		var d Decayed
		d.set(0, &raw, false)
		require.InDelta(t, want.N, d.n, 0)
		assert.InEpsilon(t, want.Mean, d.sum/d.n, 5e-3)
		assert.InDelta(t, want.MeanLog, d.sumLog/d.n, 1e-2)
		g, ok := FitGamma(d.sum/d.n, d.sumLog/d.n)
		require.True(t, ok)
		assert.InEpsilon(t, want.Shape, g.Shape, 0.01)
		assert.InDelta(t, want.KS, g.distance(&d.hist), 0.02)
	}
}

func TestNoGammaFitsWhatIsNoneOfItsKind(t *testing.T) {
	f := func(mean, meanLog float64) {
		t.Helper()
		_, ok := FitGamma(mean, meanLog)
		assert.False(t, ok)
	}
	f(1, 0) // all the same
	f(0, 0)
	f(-1, 1)
	f(1, 1) // the mean of logarithms is never above the logarithm of the mean
	f(math.NaN(), 0)
	f(1, math.Inf(-1))
	f(math.Inf(1), 0)
}

func TestTheMinimumOfSamplesFollowsFromTheQuantile(t *testing.T) {
	for _, want := range scipy(t).Minimum {
		assert.Equal(t, want.N, MinimumSamples(want.Q))
	}
	assert.Equal(t, 59, MinimumSamples(0.95))
	assert.Equal(t, 59, MinimumSamples(0.05))
	assert.Equal(t, 299, MinimumSamples(0.99))
}
