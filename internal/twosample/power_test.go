// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// found is how often something was found in so many repetitions, by each test at 1 % and by the verdict, whose level the
// tests share.
type found struct {
	shift, objective, tail, degraded int
}

// power compares candidates of several kinds with the same reference, many times.
func power(t *testing.T, r *rand.Rand, repetitions, reference, candidate int, before population, after []population) []found {
	draw := func(p population, n int) *sketch.Distribution {
		d := new(sketch.Distribution)
		for range n {
			d.Observe(p.draw(r), 1)
		}
		return d
	}
	f := make([]found, len(after))
	var bins []Bin
	for range repetitions {
		of := draw(before, reference)
		for i, p := range after {
			bins = Distributions(bins[:0], of, draw(p, candidate))
			got := verdict(t, bins, upTo800ms)
			for _, by := range []struct {
				n  *int
				is bool
			}{
				{&f[i].shift, got.Shift.P <= 0.01}, {&f[i].objective, got.Objective.P <= 0.01}, {&f[i].tail, got.Tail.P <= 0.01},
				{&f[i].degraded, got.Verdict == Degraded},
			} {
				if by.is {
					*by.n++
				}
			}
		}
	}
	return f
}

// Scenario: a canary with 500 requests against 20,000 of the version that it is to replace, log-normal around 300 ms with an
// objective of 800 ms, at α = 1 %, from histograms. Guarantees: 10 % more at the median are found 95 times in 100, 1 % of
// requests delayed to 3 s 90 times; where nothing has changed, something is found once in 100.
//
// testdata/power.txt has other spreads and sizes, and shows the limits: against only 500, no test finds 5 delayed requests, and
// 10 % more at the median are found 85 times in 100; 3 % delayed are found 87 times in 100, and 1 % 90 times when both have 2,000.
// Of the objective alone 1 % is not to be seen, when the old version misses it nearly as often.
func TestACanaryIsFound(t *testing.T) {
	const repetitions = 1000
	var table strings.Builder
	fmt.Fprintf(&table, "share found, alpha = 1 %%; the verdict's level is shared by its three tests\n\n")
	fmt.Fprintf(&table, "%-6s %10s %10s  %-18s %8s %10s %8s %9s\n", "sigma", "reference", "candidate", "change", "shift", "objective", "tail", "degraded")
	changes := []struct {
		name         string
		factor, tail float64
	}{{"none", 1, 0}, {"median +10 %", 1.1, 0}, {"1 % to 3 s", 1, 0.01}, {"3 % to 3 s", 1, 0.03}}
	for _, size := range []struct {
		sigma                             float64
		reference, candidate, repetitions int
	}{
		{0.4, 20_000, 500, repetitions}, {0.5, 20_000, 500, repetitions}, {0.6, 20_000, 500, 200},
		{0.4, 5000, 500, repetitions}, {0.4, 500, 500, repetitions}, {0.4, 1000, 1000, repetitions}, {0.4, 2000, 2000, repetitions},
	} {
		r := rand.New(rand.NewPCG(1, uint64(size.reference)))
		var after []population
		for _, c := range changes {
			after = append(after, population{sigma: size.sigma, factor: c.factor, tail: c.tail})
		}
		all := power(t, r, size.repetitions, size.reference, size.candidate, after[0], after)
		for i, c := range changes {
			f := all[i]
			share := func(n int) float64 { return float64(n) / float64(size.repetitions) }
			fmt.Fprintf(&table, "%-6v %10d %10d  %-18s %8.3f %10.3f %8.3f %9.3f\n", size.sigma, size.reference, size.candidate, c.name, share(f.shift), share(f.objective), share(f.tail), share(f.degraded))
			if c.name == "none" {
				assert.LessOrEqual(t, share(f.degraded), 0.016, "1 %% and two standard errors of %d repetitions", repetitions)
			}
			if least, stated := map[string]map[int]float64{
				"median +10 %": {500: 0.85, 1000: 0.95, 2000: 0.99, 5000: 0.95},
				"1 % to 3 s":   {500: 0, 1000: 0.4, 2000: 0.9, 5000: 0.7},
				"3 % to 3 s":   {500: 0.87, 1000: 0.99, 2000: 0.99, 5000: 0.99},
			}[c.name][size.reference]; stated {
				assert.GreaterOrEqual(t, share(f.degraded), least, "%d against %d, %s", size.candidate, size.reference, c.name)
			}
			if size.reference == 500 && c.name == "1 % to 3 s" {
				assert.LessOrEqual(t, share(f.degraded), 0.15, "what the README says cannot be seen")
			}
			if size.reference == 20_000 && size.sigma <= 0.5 {
				switch c.name {
				case "median +10 %":
					assert.GreaterOrEqual(t, share(f.shift), 0.95)
					assert.GreaterOrEqual(t, share(f.degraded), 0.95)
				case "1 % to 3 s":
					assert.GreaterOrEqual(t, share(f.tail), 0.90)
					assert.GreaterOrEqual(t, share(f.degraded), 0.90)
				case "3 % to 3 s":
					assert.GreaterOrEqual(t, share(f.degraded), 0.99)
				}
			}
		}
	}
	golden(t, "testdata/power.txt", table.String())
}

// drawn is a population of which many are drawn quickly: each of 65,536 values with the same probability, by its bucket.
type drawn struct {
	scale, offset int32
	at            [1 << 16]uint16
	buckets       int
}

func drawnFrom(p population) *drawn {
	d := &drawn{scale: 6}
	index := func(i int) int32 {
		v := p.factor * 0.3 * math.Exp(p.sigma*math.Sqrt2*math.Erfinv(2*(float64(i)+0.5)/float64(len(d.at))-1))
		return int32(math.Ceil(math.Ldexp(math.Log2(v), int(d.scale)))) - 1
	}
	d.offset = index(0)
	for i := range d.at {
		d.at[i] = uint16(index(i) - d.offset)
	}
	d.buckets = int(d.at[len(d.at)-1]) + 1
	return d
}

// draw adds n values, a multiple of four, to an empty distribution.
func (d *drawn) draw(r *rand.Rand, n int, counts []uint64, to *sketch.Distribution) {
	clear(counts)
	for range n / 4 {
		x := r.Uint64()
		counts[d.at[uint16(x)]]++
		counts[d.at[uint16(x>>16)]]++
		counts[d.at[uint16(x>>32)]]++
		counts[d.at[uint16(x>>48)]]++
	}
	to.Reset()
	to.AddExponential(&sketch.Exponential{Scale: d.scale, Positive: sketch.Buckets{Offset: d.offset, Counts: counts}})
}

// Scenario: 200 cells in which nothing has changed, 1,000 times; canaries of 500 requests. Guarantees: after the correction, in no
// more than one of a hundred times there is an alarm in any of them, so that one cell in 20,000 is accused.
func TestTwoHundredCellsWithoutAChangeAreQuiet(t *testing.T) {
	const cells, times = 200, 1000
	o := DefaultOptions()
	o.OnlySignificant = true // the same verdicts, sooner
	r := rand.New(rand.NewPCG(2, 0))
	population := drawnFrom(stable)
	counts := make([]uint64, population.buckets)
	alarms, accused := 0, 0
	results := make([]Result, cells)
	var reference, candidate sketch.Distribution
	var bins []Bin
	for range times {
		for i := range results {
			population.draw(r, 2000, counts, &reference)
			population.draw(r, 500, counts, &candidate)
			bins = Distributions(bins[:0], &reference, &candidate)
			results[i] = Compare(bins, upTo800ms, o)
			require.Equal(t, uint64(500), results[i].Candidate)
		}
		Decide(results, o)
		before := accused
		for i := range results {
			if results[i].Verdict == Degraded {
				accused++
			}
		}
		if accused > before {
			alarms++
		}
	}
	t.Logf("%d of %d times an alarm, %d of %d cells", alarms, times, accused, cells*times)
	assert.LessOrEqual(t, alarms, times/100)
	assert.LessOrEqual(t, accused, cells*times/20_000)
}

// Guarantees: what histograms lose against the values themselves is nothing that matters for the power.
func TestHistogramsLoseLittleAgainstValues(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	slower := stable
	slower.factor, slower.tail = 1.1, 0.005
	const times = 300
	var byValues, byBins, most float64
	for range times {
		a, b := stable.values(r, 5000), slower.values(r, 500)
		raw := verdict(t, Values(nil, a, b), upTo800ms)
		binned := verdict(t, Distributions(nil, distribution(a), distribution(b)), upTo800ms)
		if raw.Shift.P <= 0.001 {
			byValues++
		}
		if binned.Shift.P <= 0.001 {
			byBins++
		}
		most = max(most, binned.Shift.Effect-raw.Shift.Effect, raw.Shift.Effect-binned.Shift.Effect)
	}
	t.Logf("found at 0.1 %%: %.1f %% by values, %.1f %% by histograms; effects differ by %.4f at most", 100*byValues/times, 100*byBins/times, most)
	assert.InDelta(t, byValues/times, byBins/times, 0.01)
	assert.LessOrEqual(t, most, 0.005)
}

func BenchmarkCompare(b *testing.B) {
	r := rand.New(rand.NewPCG(4, 0))
	reference, candidate := distribution(stable.values(r, 20_000)), distribution(stable.values(r, 500))
	var bins []Bin
	o := DefaultOptions()
	b.ReportAllocs()
	for b.Loop() {
		bins = Distributions(bins[:0], reference, candidate)
		Compare(bins, upTo800ms, o)
	}
}

// golden holds got against a file; UPDATE=1 writes it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}
