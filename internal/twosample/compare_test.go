// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

var upTo800ms = Promise{Objective: 0.8}

// verdict is that of a single comparison.
func verdict(t testing.TB, bins []Bin, p Promise) Result {
	o := DefaultOptions()
	require.NoError(t, o.Validate())
	results := []Result{Compare(bins, p, o)}
	Decide(results, o)
	return results[0]
}

// population is log-normal around 300 ms.
type population struct {
	sigma  float64
	factor float64
	tail   float64 // the share that takes 3 s instead
}

func (p population) draw(r *rand.Rand) float64 {
	if p.tail > 0 && r.Float64() < p.tail {
		return 3
	}
	return p.factor * 0.3 * math.Exp(p.sigma*r.NormFloat64())
}

func (p population) values(r *rand.Rand, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = p.draw(r)
	}
	return values
}

func distribution(values []float64) *sketch.Distribution {
	d := new(sketch.Distribution)
	for _, v := range values {
		d.Observe(v, 1)
	}
	return d
}

var stable = population{sigma: 0.4, factor: 1}

func TestNoDataNeverPasses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	f := func(reference, candidate int, want Verdict) {
		t.Helper()
		got := verdict(t, Values(nil, stable.values(r, reference), stable.values(r, candidate)), upTo800ms)
		assert.Equal(t, want, got.Verdict)
	}
	f(0, 0, InsufficientData)
	f(1000, 0, InsufficientData)
	f(0, 1000, InsufficientData)
	f(1000, 99, InsufficientData)
	f(99, 1000, InsufficientData)
	f(1000, 1000, NotWorse)
	assert.Equal(t, InsufficientData, Result{}.Verdict, "nor does what was never decided")
}

func TestSignificanceWithoutEffectIsNoDegradation(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	candidate := stable
	candidate.factor = 1.02
	got := verdict(t, Values(nil, stable.values(r, 200_000), candidate.values(r, 200_000)), Promise{Objective: math.NaN()})
	assert.Less(t, got.Adjusted, 1e-6)
	assert.InDelta(t, 0.02, got.Shift.Effect, 0.005)
	assert.Equal(t, NotWorse, got.Verdict)
}

func TestEffectWithoutSignificanceIsNoDegradation(t *testing.T) {
	reference := make([]float64, 100)
	for i := range reference {
		reference[i] = float64(i + 1)
	}
	candidate := make([]float64, 100)
	for i := range candidate {
		candidate[i] = float64(i+1) * 1.06
	}
	got := verdict(t, Values(nil, reference, candidate), Promise{Objective: math.NaN()})
	assert.GreaterOrEqual(t, got.Shift.Effect, 0.05)
	assert.Greater(t, got.P, 0.01)
	assert.Equal(t, NotWorse, got.Verdict)
}

func TestBetterIsNotWorse(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	faster := stable
	faster.factor = 0.5
	got := verdict(t, Values(nil, stable.values(r, 5000), faster.values(r, 500)), upTo800ms)
	assert.InDelta(t, -0.5, got.Shift.Effect, 0.02)
	assert.Equal(t, NotWorse, got.Verdict)
}

// Scenario: tokens a second, where less is worse. Guarantees: the same as for the reciprocal where more is.
func TestThroughputIsWorseWhenItIsLower(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 0))
	slower := stable
	slower.factor, slower.tail = 1.2, 0.02
	reference, candidate := stable.values(r, 5000), slower.values(r, 500)
	latency := verdict(t, Values(nil, reference, candidate), upTo800ms)
	for _, values := range [][]float64{reference, candidate} {
		for i := range values {
			values[i] = 1 / values[i]
		}
	}
	throughput := verdict(t, Values(nil, reference, candidate), Promise{Objective: 1 / 0.8, HigherIsBetter: true})
	assert.InDelta(t, latency.Shift.P, throughput.Shift.P, 1e-12)
	assert.InDelta(t, latency.Objective.P, throughput.Objective.P, 1e-12)
	assert.InDelta(t, 1/0.8, throughput.Objective.Threshold, 1e-12)
	assert.InEpsilon(t, 1-1/(1+latency.Shift.Effect), throughput.Shift.Effect, 0.01)
	assert.Equal(t, Degraded, throughput.Verdict)
}

// Scenario: canary in one of 40 regions and device types. Guarantees: it is found and nobody else is accused.
func TestOnlyTheGuiltyCellIsAccused(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 0))
	o := DefaultOptions()
	var results []Result
	for cell := range 40 {
		candidate := stable
		if cell == 17 {
			candidate.factor = 1.25
		}
		results = append(results, Compare(Distributions(nil, distribution(stable.values(r, 5000)), distribution(candidate.values(r, 500))), upTo800ms, o))
	}
	Decide(results, o)
	for cell, got := range results {
		want := NotWorse
		if cell == 17 {
			want = Degraded
		}
		assert.Equal(t, want, got.Verdict, "cell %d", cell)
	}
}

func TestExplicitBucketsAreComparedAtTheirOwnBoundaries(t *testing.T) {
	bounds := []float64{0.25, 0.5, 0.75, 1, 2.5}
	var reference, candidate sketch.Distribution
	reference.AddExplicit(bounds, []uint64{4000, 5000, 900, 90, 10, 0})
	candidate.AddExplicit(bounds, []uint64{200, 250, 25, 5, 5, 15})
	bins := Distributions(nil, &reference, &candidate)
	require.Len(t, bins, 6)
	assert.Equal(t, Bin{Lo: 0, Hi: 0.25, Reference: 4000, Candidate: 200}, bins[0])
	assert.Equal(t, Bin{Lo: 2.5, Hi: math.Inf(1), Candidate: 15}, bins[5])

	got := verdict(t, bins, upTo800ms)
	// 0.8 lies in (0.75, 1]: what is in there counts for the reference and not for the candidate.
	assert.InDelta(t, 0.01, got.Objective.ReferenceShare, 1e-9)
	assert.InDelta(t, 0.04, got.Objective.CandidateShare, 1e-9)
	assert.Equal(t, Degraded, got.Verdict)
}

// Guarantees: joining loses no value, and bins are in order and apart.
func TestBinsHoldEveryValueOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func() *sketch.Distribution {
			d := new(sketch.Distribution)
			for range rapid.IntRange(0, 30).Draw(t, "values") {
				d.Observe(rapid.OneOf(rapid.Float64Range(-5, 5), rapid.SampledFrom([]float64{0, 1, 2})).Draw(t, "value"), rapid.Uint64Range(1, 9).Draw(t, "n"))
			}
			if rapid.Bool().Draw(t, "explicit") {
				d.AddExplicit([]float64{0.5, 1}, rapid.SliceOfN(rapid.Uint64Range(0, 9), 3, 3).Draw(t, "counts"))
			}
			return d
		}
		a, b := draw(), draw()
		bins := Distributions(nil, a, b)
		nr, nc := sizes(bins)
		require.Equal(t, a.Count(), nr)
		require.Equal(t, b.Count(), nc)
		for i := 1; i < len(bins); i++ {
			require.LessOrEqual(t, bins[i-1].Hi, bins[i].Lo+1e-6)
		}
		_, p := MannWhitney(bins)
		require.True(t, p >= 0 && p <= 1)
	})
}

func TestAnOptionThatIsWrongIsNamed(t *testing.T) {
	f := func(want string, change func(*Options)) {
		t.Helper()
		o := DefaultOptions()
		change(&o)
		assert.ErrorContains(t, o.Validate(), want)
	}
	f("alpha: 1 is not in (0, 1)", func(o *Options) { o.Alpha = 1 })
	f("min samples: 19 is below 20", func(o *Options) { o.MinSamples = 19 })
	f("want numbers not below 0", func(o *Options) { o.MinShift = math.NaN() })
}

// Scenario: 30 of 1,000 requests fail where 5 did. The test for shifts is significant as well, more so than that for
// exceedances, and its effect is none.
// Guarantees: what one test finds is not lost because another finds something that does not matter.
func TestAnEffectIsNotHiddenByAMoreSignificantOneThatDoesNotMatter(t *testing.T) {
	bins := []Bin{{Lo: 1, Hi: 1, Reference: 995, Candidate: 970}, {Lo: 2, Hi: 2, Reference: 5, Candidate: 30}}
	results := []Result{Compare(bins, Promise{Objective: 1.5}, DefaultOptions())}
	Decide(results, DefaultOptions())
	assert.Less(t, results[0].Shift.P/shiftWeight, results[0].Objective.P/objectiveWeight)
	assert.Equal(t, Degraded, results[0].Verdict)
}

// Guarantees: to look for the size of a shift only where it is significant changes no verdict.
func TestOnlySignificantChangesNoVerdict(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 0))
	lazy := DefaultOptions()
	lazy.OnlySignificant = true
	for i := range 200 {
		var reference, candidate []float64
		for range 300 {
			reference = append(reference, math.Exp(0.4*r.NormFloat64()))
			candidate = append(candidate, (1+0.001*float64(i))*math.Exp(0.4*r.NormFloat64()))
		}
		bins := Values(nil, reference, candidate)
		all := []Result{Compare(bins, Promise{Objective: 3}, DefaultOptions())}
		some := []Result{Compare(bins, Promise{Objective: 3}, lazy)}
		Decide(all, DefaultOptions())
		Decide(some, lazy)
		assert.Equal(t, all[0].Verdict, some[0].Verdict)
	}
}
