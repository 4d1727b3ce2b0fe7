// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

func TestTheFirstPointIsABaselineUnlessItsStartIsInTheSameWindow(t *testing.T) {
	f := func(p Point, want Outcome) {
		t.Helper()
		var n Number
		_, outcome := n.Add(p, 5)
		assert.Equal(t, want, outcome)
	}
	f(Point{Start: 0, Time: 100}, Baseline)               // scraped, no start known
	f(Point{Start: 100, Time: 100, Since: 50}, Baseline)  // scraped, start set to the first scrape
	f(Point{Start: 20, Time: 100, Since: 50}, Baseline)   // began long ago
	f(Point{Start: 60, Time: 100, Since: 50}, Added)      // began in this window
	f(Point{Start: 1000, Time: 100, Since: 50}, Baseline) // nonsense
}

func TestNumber(t *testing.T) {
	var n Number
	f := func(start, time int64, value, added float64, want Outcome) {
		t.Helper()
		d, outcome := n.Add(Point{Start: start, Time: time, Since: 1000}, value)
		assert.Equal(t, want, outcome)
		if want == Added {
			assert.InDelta(t, added, d, 0)
		}
	}
	f(1, 10, 5, 0, Baseline)
	f(1, 20, 7, 2, Added)
	f(1, 20, 9, 0, Stale)
	f(1, 15, 9, 0, Stale)
	f(1, 30, 7, 0, Added)
	f(1, 40, 3, 0, Reset) // by value
	f(1, 50, 4, 1, Added)
	f(50, 60, 100, 0, Reset) // by start, though the value grew
	f(50, 70, 101, 1, Added)
}

func TestAWobblingStartIsNoReset(t *testing.T) {
	var n Number
	n.Add(Point{Start: 1000, Time: 5000}, 5)
	d, outcome := n.Add(Point{Start: 1001, Time: 6000}, 8) // derived from an uptime, off by a little
	assert.Equal(t, Added, outcome)
	assert.InDelta(t, 3, d, 0)
}

func TestExplicit(t *testing.T) {
	var e Explicit
	bounds := []float64{1, 2}
	var scratch []uint64
	f := func(time int64, bounds []float64, counts, added []uint64, want Outcome) {
		t.Helper()
		var outcome Outcome
		scratch, outcome = e.Add(Point{Start: 1, Time: time, Since: 1000}, bounds, counts, scratch)
		assert.Equal(t, want, outcome)
		if want == Added {
			assert.Equal(t, added, scratch)
		}
	}
	f(10, bounds, []uint64{1, 2, 3}, nil, Baseline)
	f(20, bounds, []uint64{2, 2, 5}, []uint64{1, 0, 2}, Added)
	f(20, bounds, []uint64{9, 9, 9}, nil, Stale)
	f(30, bounds, []uint64{3, 1, 9}, nil, Reset) // one bucket only
	f(40, bounds, []uint64{3, 2, 9}, []uint64{0, 1, 0}, Added)
	f(50, []float64{1, 3}, []uint64{4, 4, 10}, nil, Reset)
	f(60, []float64{1, 3}, []uint64{5, 4, 10}, []uint64{1, 0, 0}, Added)
	f(70, nil, []uint64{30}, nil, Reset)
	f(80, nil, []uint64{31}, []uint64{1}, Added)
}

func TestExplicitWithoutBoundariesFromTheStart(t *testing.T) {
	var e Explicit
	_, outcome := e.Add(Point{Time: 10}, nil, []uint64{5}, nil)
	assert.Equal(t, Baseline, outcome)
	d, outcome := e.Add(Point{Time: 20}, nil, []uint64{7}, nil)
	assert.Equal(t, Added, outcome)
	assert.Equal(t, []uint64{2}, d)
}

func TestExponential(t *testing.T) {
	var e Exponential
	var d sketch.Exponential
	f := func(time int64, h sketch.Exponential, want Outcome, added uint64) {
		t.Helper()
		require.Equal(t, want, e.Add(Point{Time: time}, &h, &d))
		if want == Added {
			assert.Equal(t, added, d.Count())
		}
	}
	b := func(offset int32, counts ...uint64) sketch.Buckets {
		return sketch.Buckets{Offset: offset, Counts: counts}
	}
	f(10, sketch.Exponential{Scale: 1, Positive: b(0, 1, 2, 3, 4)}, Baseline, 0)
	f(20, sketch.Exponential{Scale: 1, Positive: b(0, 1, 2, 3, 9), ZeroCount: 1}, Added, 6)
	f(30, sketch.Exponential{Scale: 0, Positive: b(0, 4, 12), ZeroCount: 1}, Added, 1) // the source became coarser
	f(40, sketch.Exponential{Scale: 0, Positive: b(0, 3, 20), ZeroCount: 1}, Reset, 0)
	f(50, sketch.Exponential{Scale: 3, Positive: b(0, 1)}, Reset, 0)
	f(60, sketch.Exponential{Scale: 3, Positive: b(-1, 5, 1)}, Added, 5)
}

// Guarantees: what was added over any run of points is the difference of its ends, and no reset adds anything.
func TestDeltasAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var e Explicit
		counts := []uint64{0, 0, 0}
		var sum, base uint64
		for i := range int64(50) {
			if r.IntN(20) == 0 {
				counts = []uint64{0, 0, 0}
			}
			for b := range counts {
				counts[b] += r.Uint64N(4)
			}
			total := counts[0] + counts[1] + counts[2]
			d, outcome := e.Add(Point{Time: i + 1}, []float64{1, 2}, counts, nil)
			switch outcome {
			case Added:
				sum += d[0] + d[1] + d[2]
				require.Equal(t, total, base+sum)
			default:
				base, sum = total, 0
			}
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	var n Number
	var e Explicit
	var x Exponential
	bounds, counts := []float64{1, 2}, []uint64{1, 2, 3}
	h := &sketch.Exponential{Scale: 2, Positive: sketch.Buckets{Counts: counts}}
	var o Once
	var added []uint64
	var scratch sketch.Exponential
	p := Point{Time: 1}
	turn := func() {
		p.Time++
		n.Add(p, 1)
		added, _ = e.Add(p, bounds, counts, added)
		x.Add(p, h, &scratch)
		o.Seen(p.Time, p.Time+1, p.Time-10)
	}
	for range 20 {
		turn()
	}
	assert.Zero(t, testing.AllocsPerRun(100, turn))
}

func BenchmarkExplicit(b *testing.B) {
	var e Explicit
	bounds, counts := make([]float64, 16), make([]uint64, 17)
	for i := range bounds {
		bounds[i] = float64(i)
	}
	var added []uint64
	b.ReportAllocs()
	for i := int64(1); b.Loop(); i++ {
		added, _ = e.Add(Point{Time: i}, bounds, counts, added)
	}
}
