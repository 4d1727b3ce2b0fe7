// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// others says what other implementations find; testdata/reference.py has how it was made.
func others(t *testing.T) (r struct {
	Slopes []struct {
		X, Y                                              []float64
		Slope, Intercept, Low, High, S, Variance, P, Lag1 float64
	}
	HamedRao []struct {
		N           int
		Rho, Factor float64
	}
	Traffic []struct {
		X, Y, Running, Cache, Adjusted []float64
		Left                           float64
	}
	Bends []struct {
		X, Y                             []float64
		Line, Slope, Left, Before, After float64
	}
	Levels []struct{ Y, Left []float64 }
}) {
	data, err := os.ReadFile("testdata/reference.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &r))
	for _, n := range []int{len(r.Slopes), len(r.HamedRao), len(r.Traffic), len(r.Bends), len(r.Levels)} {
		require.NotZero(t, n)
	}
	return r
}

func TestSlopesAreThoseOfOtherImplementations(t *testing.T) {
	var sc scratch
	for _, want := range others(t).Slopes {
		f := sc.theilSen(want.X, want.Y)
		assert.InDelta(t, want.Slope, f.slope, 1e-12)
		assert.InDelta(t, want.Intercept, f.intercept, 1e-9)
		assert.InDelta(t, want.S, f.kendall.s, 0)
		assert.InDelta(t, want.Variance, f.kendall.variance, 1e-9)
		assert.InDelta(t, want.P, f.kendall.p(1), 1e-12)
		low, high := sc.interval(f, 1)
		assert.InDelta(t, want.Low, low, 1e-12)
		assert.InDelta(t, want.High, high, 1e-12)
		sc.inflation(want.X, want.Y, f)
		// What is left of rounded values has ties up to the last digit, which other sums break.
		assert.InDelta(t, want.Lag1, sc.lag1(sc.residuals), 0.01)
	}
	for _, want := range others(t).HamedRao {
		assert.InEpsilon(t, want.Factor, hamedRao(want.N, want.Rho), 1e-12)
	}
}

func TestWhatTrafficExplainsIsWhatAnotherImplementationSays(t *testing.T) {
	var sc scratch
	for _, want := range others(t).Traffic {
		left, used := sc.traffic(want.X, want.Y, &[explanations][]float64{byRunning: want.Running, byCache: want.Cache})
		assert.True(t, used)
		assert.InDelta(t, want.Left, left, 1e-9)
		assert.InDeltaSlice(t, want.Adjusted, want.Y, 1e-8)
	}
}

func TestShapesAreThoseOfOtherImplementations(t *testing.T) {
	var sc scratch
	for _, want := range others(t).Bends {
		line, slope := lineThrough(want.X, want.Y)
		assert.InEpsilon(t, want.Line, line, 1e-9)
		assert.InDelta(t, want.Slope, slope, 1e-9)
		left, before, after, _ := bend(want.X, want.Y, line, slope)
		assert.InEpsilon(t, want.Left, left, 1e-9)
		assert.InDelta(t, want.Before, before, 1e-9)
		assert.InDelta(t, want.After, after, 1e-9)
	}
	for _, want := range others(t).Levels {
		left := sc.levels(want.Y)
		assert.InDeltaSlice(t, want.Left, left[:], 1e-9)
	}
}
