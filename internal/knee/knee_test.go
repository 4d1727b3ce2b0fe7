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

// measured are steps of 9 % between two batch sizes, each with so many samples of a throughput with a relative noise.
func measured(r *rand.Rand, from, to float64, samples int, noise float64, of func(batch float64) float64) (steps []Step) {
	for batch := from; batch <= to*1.0001; batch *= math.Exp2(0.125) {
		s := Step{Batch: batch, Samples: float64(samples)}
		var squares float64
		for range samples {
			v := of(batch) * (1 + noise*r.NormFloat64())
			s.Throughput += v / s.Samples
			squares += v * v / s.Samples
		}
		s.Variance = squares - s.Throughput*s.Throughput
		steps = append(steps, s)
	}
	return steps
}

// served is the throughput by the step model of the simulator: each step of a batch costs a base, and so much for each request.
func served(base, perRequest float64) func(float64) float64 {
	return func(b float64) float64 { return b / (base + perRequest*b) }
}

func full(batch, rate float64) func(float64) float64 {
	return func(b float64) float64 { return rate * min(b, batch) }
}

var curves = []struct {
	name     string
	to       float64
	of       func(float64) float64
	from, at float64 // the knee lies between; 0 for none
}{
	{"compute-bound from 48 on", 128, full(48, 30), 43, 53},
	{"a little more from 32 on", 128, func(b float64) float64 { return 30*min(b, 32) + 2*max(b-32, 0) }, 28, 37},
	{"preemptions: it falls again from 64 on", 128, func(b float64) float64 { return 30*min(b, 64) - 15*max(b-64, 0) }, 57, 71},
	{"slowly, to nearly nothing", 128, func(b float64) float64 { return 2000 * (1 - math.Exp(-b/30)) }, 20, 42},
	{"the simulator's H100, far beyond", 512, served(0.015, 0.00015), 40, 100},
	{"an engine that bends at 10, far beyond", 128, served(0.01, 0.001), 4.1, 15},

	{"the simulator's H100, to a tenth of the bend", 16, served(0.015, 0.00015), 0, 0},
	{"the simulator's H100, to the bend", 100, served(0.015, 0.00015), 0, 0},
	{"the simulator's A100, to half of the bend", 50, served(0.02, 0.0002), 0, 0},
	{"linear", 128, func(b float64) float64 { return 30 * b }, 0, 0},
	{"linear beside what is always there", 128, func(b float64) float64 { return 100 + 30*b }, 0, 0},
	{"half as much from 48 on", 128, func(b float64) float64 { return 30*min(b, 48) + 15*max(b-48, 0) }, 0, 0},
	{"more pays more", 128, func(b float64) float64 { return b * b }, 0, 0},
	{"flat from the beginning", 128, func(float64) float64 { return 1000 }, 0, 0},
	{"falling from the beginning", 128, func(b float64) float64 { return 1000 - 2*b }, 0, 0},
	{"a dent", 128, func(b float64) float64 { return 30*min(b, 40) + 30*max(b-56, 0) }, 0, 0},
	{"flat, then it rises again", 128, func(b float64) float64 { return 30*min(b, 32) + 30*max(b-80, 0) }, 0, 0},
	{"flat only at the very end", 56, full(48, 30), 0, 0},
}

// Scenario: curves of all shapes, with noise from none to 30 % a sample.
// Guarantees: the knee is where it is, and there is none where nothing certainly bends: in none of so many measurements.
func TestTheKneeIsWhereMoreBatchStopsPaying(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for _, c := range curves {
		for _, noise := range []float64{0, 0.05, 0.1, 0.3} {
			found := 0
			const times = 200
			for range times {
				got, ok := Find(measured(r, 1, c.to, 20, noise, c.of))
				if !ok {
					continue
				}
				found++
				if c.at > 0 && noise <= 0.1 {
					assert.GreaterOrEqual(t, got, c.from, "%s, noise %g", c.name, noise)
					assert.LessOrEqual(t, got, c.at, "%s, noise %g", c.name, noise)
				}
			}
			switch {
			case c.at == 0:
				assert.Zero(t, found, "%s, noise %g", c.name, noise)
			case noise <= 0.1:
				assert.GreaterOrEqual(t, found, times*9/10, "%s, noise %g", c.name, noise)
			}
		}
	}
}

// Scenario: what an engine was measured at that serves each further request with hardly less than those before: 63, 106, 164, 283 and
// 400 tokens a second with 1, 2, 4, 8 and 16 at once, with samples from one a step to many.
// Guarantees: no knee, whatever chance makes of single samples.
func TestANearlyLinearCurveHasNoKnee(t *testing.T) {
	batches, throughputs := []float64{1, 2, 4, 8, 16}, []float64{63, 106, 164, 283, 400}
	of := func(b float64) float64 {
		i := min(max(int(math.Log2(b)), 0), 3)
		return throughputs[i] + (throughputs[i+1]-throughputs[i])*(b-batches[i])/(batches[i+1]-batches[i])
	}
	r := rand.New(rand.NewPCG(2, 0))
	for _, noise := range []float64{0, 0.1, 0.3, 0.6} {
		for _, samples := range []int{1, 5, 50, 1000} {
			for range 50 {
				got, ok := Find(measured(r, 1, 16, samples, noise, of))
				require.False(t, ok, "%d samples with noise %g: %g", samples, noise, got)
			}
		}
	}
}

// Guarantees: steps of few samples show no knee, however clear it looks, nor do few steps.
func TestWhatWasMeasuredTooRarelyHasNoKnee(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	f := func(want bool, steps []Step) {
		t.Helper()
		_, ok := Find(steps)
		assert.Equal(t, want, ok)
	}
	f(false, nil)
	f(true, measured(r, 1, 128, MinSamples, 0.1, full(48, 30)))
	f(false, measured(r, 1, 128, MinSamples-1, 0.1, full(48, 30)))
	f(false, []Step{{1, 30, 0, 99}, {8, 240, 0, 99}, {16, 480, 0, 99}, {48, 1440, 0, 99}, {96, 1440, 0, 99}, {128, 1440, 0, 99}})
	f(false, []Step{{1, math.NaN(), 0, 99}, {2, 1, 0, math.NaN()}})
}

// Guarantees: neither the units nor the order of the steps matter, and the steps stay as they are.
func TestUnitsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		to := rapid.Float64Range(8, 500).Draw(t, "to")
		steps := measured(r, 1, to, rapid.IntRange(4, 20).Draw(t, "samples"), rapid.Float64Range(0, 0.3).Draw(t, "noise"), full(rapid.Float64Range(1, 500).Draw(t, "full"), 30))
		before := slices.Clone(steps)
		want, ok := Find(steps)
		require.Equal(t, before, steps)
		scaled := make([]Step, len(steps))
		for i, s := range steps {
			scaled[len(steps)-1-i] = Step{s.Batch * 1024, s.Throughput / 4, s.Variance / 16, s.Samples}
		}
		got, same := Find(scaled)
		require.Equal(t, ok, same)
		require.InDelta(t, want, got/1024, 1e-9)
	})
}

func BenchmarkFind(b *testing.B) {
	steps := measured(rand.New(rand.NewPCG(4, 0)), 1, 128, 20, 0.1, full(48, 30))
	b.ReportAllocs()
	for b.Loop() {
		Find(steps)
	}
}
