// SPDX-License-Identifier: Apache-2.0

package knee

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func curve(of func(batch float64) float64) (points []Point) {
	for batch := 4.0; batch <= 128; batch += 4 {
		points = append(points, Point{batch, of(batch)})
	}
	return points
}

func TestTheKneeIsWhereMoreBatchStopsPaying(t *testing.T) {
	f := func(want float64, of func(float64) float64) {
		t.Helper()
		got, ok := Find(curve(of))
		require.True(t, ok)
		assert.InDelta(t, want, got.Batch, 1e-9)
	}
	f(48, func(b float64) float64 { return 30 * min(b, 48) })                 // compute-bound from there on
	f(32, func(b float64) float64 { return 30*min(b, 32) + 2*max(b-32, 0) })  // still a little more
	f(64, func(b float64) float64 { return 30*min(b, 64) - 15*max(b-64, 0) }) // preemptions: it falls again
	f(48, func(b float64) float64 { return 2000 * (1 - math.Exp(-b/30)) })    // smooth: where the slope is that of the whole, at 47.1
}

func TestThereIsNoKneeWhereNothingBends(t *testing.T) {
	f := func(points []Point) {
		t.Helper()
		_, ok := Find(points)
		assert.False(t, ok)
	}
	f(nil)
	f([]Point{{1, 10}, {2, 20}, {4, 20}, {8, 20}}) // too few
	f(curve(func(b float64) float64 { return 30 * b }))
	f(curve(func(float64) float64 { return 30 }))
	f(curve(func(b float64) float64 { return -b }))
	f(curve(func(b float64) float64 { return b * b })) // more pays more
	r := rand.New(rand.NewPCG(1, 0))
	for range 200 {
		f(curve(func(b float64) float64 { return 30 * b * (1 + 0.05*r.NormFloat64()) }))
	}
}

// Scenario: 20 measurements of each batch size with noise of 10 %. Guarantees: the knee is found to two steps.
func TestNoiseMovesTheKneeLittle(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	for range 100 {
		var points []Point
		for range 20 {
			points = append(points, curve(func(b float64) float64 { return 30 * min(b, 48) * (1 + 0.1*r.NormFloat64()) })...)
		}
		got, ok := Find(points)
		require.True(t, ok)
		require.InDelta(t, 48, got.Batch, 8)
	}
}

// Guarantees: neither the units nor the order of the points matter, and the points stay as they are.
func TestUnitsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Point {
			return Point{float64(rapid.IntRange(1, 64).Draw(t, "batch")), float64(rapid.IntRange(0, 5000).Draw(t, "throughput"))}
		}), 0, 40).Draw(t, "points")
		before := slices.Clone(points)
		want, ok := Find(points)
		require.Equal(t, before, points)
		scaled := make([]Point, len(points))
		for i, p := range points {
			scaled[len(points)-1-i] = Point{p.Batch * 1024, p.Throughput / 4}
		}
		got, same := Find(scaled)
		require.Equal(t, ok, same)
		require.InDelta(t, want.Batch, got.Batch/1024, 1e-9)
	})
}
