// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

const window = int64(5 * time.Minute)

var p99 = Promise{Quantile: 0.99, Objective: 0.2}

func judge(t testing.TB, p Promise) *Judge {
	j, err := NewJudge(DefaultOptions(), p)
	require.NoError(t, err)
	return j
}

// hourly has a reference of an hour.
func hourly() Options {
	o := DefaultOptions()
	o.Reference = 12
	return o
}

// traffic is n log-normal values of which the P99 is the given one.
func traffic(r *rand.Rand, n int, p99, sigma float64) *sketch.Distribution {
	d := new(sketch.Distribution)
	for range n {
		d.Observe(p99*math.Exp(sigma*(r.NormFloat64()-2.326348)), 1)
	}
	return d
}

// constant is n equal values.
func constant(v float64, n uint64) *sketch.Distribution {
	d := new(sketch.Distribution)
	d.Observe(v, n)
	return d
}

func TestTheNumbersOfTheHeatmap(t *testing.T) {
	f := func(observed, objective, deviation float64) {
		t.Helper()
		r := judge(t, Promise{Quantile: 0.99, Objective: objective}).Close(new(Cell), window, constant(observed, 300))
		assert.InDelta(t, deviation, r.Deviation, 0.005)
	}
	f(0.238, 0.2, 0.19)
	f(0.182, 0.2, -0.09)

	// The baseline is that of before the window, so it takes two.
	var c Cell
	j := judge(t, Promise{Quantile: 0.99, Objective: 0.286})
	first := j.Close(&c, window, constant(0.392, 500))
	assert.True(t, math.IsNaN(first.Drift), "nothing was normal before")
	second := j.Close(&c, 2*window, constant(0.392, 500))
	assert.InDelta(t, 0.37, second.Drift, 0.03)
	assert.InEpsilon(t, 0.392, second.Dynamic.Value, 0.022)
}

func TestACellThatKeepsItsPromiseIsOK(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	j, c := judge(t, p99), new(Cell)
	for i := range int64(500) {
		got := j.Close(c, i*window, traffic(r, 400, 0.15, 0.4))
		require.Equal(t, OK, got.State, "window %d", i)
	}
}

func TestAJumpIsFoundInThreeWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	j, c := judge(t, p99), new(Cell)
	for i := range int64(50) {
		j.Close(c, i*window, traffic(r, 400, 0.15, 0.4))
	}
	var states []State
	for i := range int64(3) {
		states = append(states, j.Close(c, (50+i)*window, traffic(r, 400, 0.3, 0.4)).State)
	}
	assert.Equal(t, []State{OK, Degraded, Degraded}, states)
}

// Scenario: every window is half a percent slower than the one before it. Guarantees: the dynamic baseline follows, the
// frozen one does not, and that is what shows before the objective is missed.
func TestASlowRampShowsAgainstTheFrozenBaseline(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	j, err := NewJudge(hourly(), Promise{Quantile: 0.99, Objective: 1})
	require.NoError(t, err)
	c := new(Cell)
	var last Result
	speed := 0.2
	for i := range int64(120) {
		last = j.Close(c, i*window, traffic(r, 2000, speed, 0.4))
		speed *= 1.005
	}
	require.InDelta(t, 0.2, last.Frozen.Value, 0.02)
	assert.Greater(t, last.Dynamic.Value, 1.25*last.Frozen.Value)
	assert.Less(t, last.Observed.Value, 1.0)
	assert.Equal(t, Drifting, last.State)

	// It was wanted.
	o := hourly()
	o.Since = 121 * window
	j, err = NewJudge(o, Promise{Quantile: 0.99, Objective: 1})
	require.NoError(t, err)
	for i := range int64(20) {
		last = j.Close(c, (120+i)*window, traffic(r, 2000, speed, 0.4))
		assert.Equal(t, i < 2 || i >= 14, last.Frozen.Known(), "window %d", i)
	}
	assert.InDelta(t, speed, last.Frozen.Value, 0.02)
	assert.Equal(t, OK, last.State)
}

// Scenario: two equal cells become slower by 0.4 % a window, and one had three times the latency in the first hour.
// Guarantees: the incident is degraded and no part of what is normal; so the ramp shows in both.
func TestAnIncidentIsNoPartOfWhatIsNormal(t *testing.T) {
	f := func(from, to int64) (found int64, drifting int) {
		t.Helper()
		r := rand.New(rand.NewPCG(9, 1))
		j, err := NewJudge(hourly(), Promise{Quantile: 0.95, Objective: 0.25})
		require.NoError(t, err)
		c := new(Cell)
		found = -1
		for i := range int64(240) {
			p99 := 0.127 * math.Pow(1.004, float64(max(i-24, 0)))
			incident := i >= from && i < to
			if incident {
				p99 *= 3
			}
			got := j.Close(c, i*window, traffic(r, 600, p99, 0.4))
			if incident && i > from {
				require.Equal(t, Degraded, got.State, "window %d", i)
			}
			if i >= 3 && i < 30 {
				require.Less(t, got.Dynamic.Value, 0.115, "window %d", i)
			}
			if i > 40 && got.State >= Drifting {
				drifting++
				if found < 0 {
					found = i
				}
			}
		}
		require.InDelta(t, 0.097, c.frozen.hist.quantile(0.95), 0.005)
		return found, drifting
	}
	clean, all := f(0, 0)
	found, drifting := f(4, 8)
	t.Logf("found in windows %d and %d, drifting in %d and %d", clean, found, all, drifting)
	assert.InDelta(t, clean, found, 5)
	assert.InDelta(t, all, drifting, 10)
	assert.Greater(t, all, 130)
}

// Guarantees: what a cell began with is normal for it, whatever was promised; and what stays becomes normal, in the end.
func TestWhatStaysBecomesNormal(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 1))
	j, c := judge(t, p99), new(Cell)
	close := func(i int64, p99 float64) Result { return j.Close(c, i*window, traffic(r, 400, p99, 0.4)) }
	for i := range int64(50) {
		close(i, 0.15)
	}
	for i := range int64(288) {
		close(50+i, 0.45)
	}
	got := close(338, 0.45)
	assert.InEpsilon(t, 0.45, got.Dynamic.Value, 0.1)
	assert.Equal(t, Degraded, got.State)
}

// Scenario: a promise is missed by 10 % for hours, in windows of 300 values, each of which is too few to be certain; or it is kept, but
// only just. Guarantees: the miss is drifting in most of the windows from two hours on; what is kept only just is OK in 99 of 100.
func TestEvidenceAddsUpOverWindows(t *testing.T) {
	f := func(factor float64, least, most float64) {
		t.Helper()
		var drifting, all float64
		for seed := range uint64(10) {
			r := rand.New(rand.NewPCG(seed, 12))
			j, c := judge(t, Promise{Quantile: 0.95, Objective: 1}), new(Cell)
			for i := range int64(600) {
				state := j.Close(c, i*window, traffic(r, 300, factor*math.Exp(0.7*(2.326348-1.644854)), 0.7)).State
				if i >= 24 {
					all++
					if state >= Drifting {
						drifting++
					}
				}
			}
		}
		t.Logf("%v of what is promised: not ok in %.2f %% of windows", factor, 100*drifting/all)
		assert.GreaterOrEqual(t, drifting/all, least)
		assert.LessOrEqual(t, drifting/all, most)
	}
	f(1.1, 0.9, 1)
	f(1, 0, 0.01)
	f(0.98, 0, 0.01)
	f(0.9, 0, 0.001)

	g := func(bad float64) (state State) {
		j, c := judge(t, Promise{Objective: 0.99, HigherIsBetter: true}), new(Cell)
		for i := range int64(100) {
			state = j.CloseShare(c, i*window, 1000-bad, 1000).State
		}
		return state
	}
	assert.Equal(t, OK, g(10))
	assert.Equal(t, Drifting, g(13), "which of 1,000 may be by chance")
}

// rhythm goes to and fro with the hour by 25 %, and is never beyond 66 % of the promise.
func rhythm(i int64) float64 {
	return 0.5 * (1 - 0.25*math.Cos(2*math.Pi*float64(i)/288))
}

// Scenario: latency goes with the hour for a week. Guarantees: once frozen knows the rhythm it is no drift: no more than one
// window in a hundred; and what is a third slower than ever before is found in three windows, at any hour when that is slower
// than it mostly is.
func TestARhythmIsNoDrift(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	j, c := judge(t, Promise{Quantile: 0.95, Objective: 1}), new(Cell)
	quantile := 2.326348 - 1.644854
	close := func(i int64, factor float64) Result {
		return j.Close(c, i*window, traffic(r, 600, factor*rhythm(i)*math.Exp(0.4*quantile), 0.4))
	}
	var drifting [7]int
	for i := range int64(7 * 288) {
		if close(i, 1).State != OK {
			drifting[i/288]++
		}
	}
	t.Logf("%d windows of each day", drifting)
	for day := 1; day < 7; day++ {
		assert.LessOrEqual(t, drifting[day], 2, "day %d", day)
	}
	for i := int64(7 * 288); i < 7*288+144; i++ {
		close(i, 1)
	}
	var states []State
	for i := range int64(3) {
		states = append(states, close(7*288+144+i, 1.33).State)
	}
	assert.Equal(t, []State{OK, Drifting, Drifting}, states)
}

// Scenario: an engine with wide buckets, of which 0.75 to 1 s holds the P99. Guarantees: steady traffic is OK for hundreds of
// windows, though its quantile is interpolated; the observed value is that of the distribution itself, as slo tells it; and
// twice the latency is found.
func TestWideBucketsNeitherDriftNorHide(t *testing.T) {
	bounds := []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10} // vLLM's TTFT
	r := rand.New(rand.NewPCG(8, 1))
	observe := func(factor float64) *sketch.Distribution {
		counts := make([]uint64, len(bounds)+1)
		for range 1000 {
			counts[sort.SearchFloat64s(bounds, factor*0.85*math.Exp(0.5*(r.NormFloat64()-2.326348)))]++
		}
		d := new(sketch.Distribution)
		d.AddExplicit(bounds, counts)
		return d
	}
	j, c := judge(t, Promise{Quantile: 0.99, Objective: 1}), new(Cell)
	for i := range int64(300) {
		w := observe(1)
		got := j.Close(c, i*window, w)
		require.Equal(t, OK, got.State, "window %d", i)
		require.InDelta(t, w.Quantile(0.99, 0).Value, got.Observed.Value, 0)
	}
	j.Close(c, 300*window, observe(2))
	assert.Equal(t, Degraded, j.Close(c, 301*window, observe(2)).State)
}

func TestAnOptionThatIsWrongIsNamed(t *testing.T) {
	f := func(want string, change func(*Options, *Promise)) {
		t.Helper()
		o, p := DefaultOptions(), p99
		change(&o, &p)
		_, err := NewJudge(o, p)
		assert.EqualError(t, err, want)
	}
	f("decay: 0 is not in (0, 1]", func(o *Options, _ *Promise) { o.Decay.Factor = 0 })
	f("window: 0s is not above 0", func(o *Options, _ *Promise) { o.Decay.Window = 0 })
	f("min samples: 0 is not above 0", func(o *Options, _ *Promise) { o.MinSamples = 0 })
	f("reference: 0 is not in [1, 65535]", func(o *Options, _ *Promise) { o.Reference = 0 })
	f("quantile: 1 is not in [0, 1)", func(_ *Options, p *Promise) { p.Quantile = 1 })
	f("objective: NaN is not a finite number", func(_ *Options, p *Promise) { p.Objective = math.NaN() })
}

func TestAShareThatIsAlwaysGoodIsNotMissed(t *testing.T) {
	j, c := judge(t, Promise{Objective: 0.999, HigherIsBetter: true}), new(Cell)
	for i := range int64(30) {
		require.Equal(t, OK, j.CloseShare(c, i*window, 1000, 1000).State)
	}
	// One bad event where there never was one is no certainty; thirty are.
	assert.Equal(t, OK, j.CloseShare(c, 30*window, 999, 1000).State)
	j.CloseShare(c, 31*window, 970, 1000)
	assert.Equal(t, Degraded, j.CloseShare(c, 32*window, 970, 1000).State)
}

func TestAnEmptyWindowIsNeitherGoodNorForgotten(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	j, c := judge(t, p99), new(Cell)
	for i := range int64(20) {
		j.Close(c, i*window, traffic(r, 400, 0.3, 0.4))
	}
	require.Equal(t, Degraded, c.verdict.state)
	got := j.Close(c, 20*window, new(sketch.Distribution))
	assert.Equal(t, InsufficientData, got.State)
	assert.True(t, math.IsNaN(got.Observed.Value))
	assert.True(t, math.IsNaN(got.Deviation))
	assert.Equal(t, Degraded, j.Close(c, 21*window, traffic(r, 400, 0.3, 0.4)).State)
}

func TestABaselineThatNobodyFeedsIsNone(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	j, c := judge(t, p99), new(Cell)
	for i := range int64(50) {
		j.Close(c, i*window, traffic(r, 400, 0.15, 0.4))
	}
	require.True(t, j.Close(c, 50*window, new(sketch.Distribution)).Dynamic.Known())
	assert.False(t, j.Close(c, 50*window+int64(48*time.Hour), new(sketch.Distribution)).Dynamic.Known())
}

// Scenario: a P99 that hovers about the threshold. Guarantees: the state does not go to and fro with it.
func TestTheStateDoesNotFlap(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	j, c := judge(t, p99), new(Cell)
	var changes int
	last := OK
	for i := range int64(1000) {
		got := j.Close(c, i*window, traffic(r, 1000, 0.22, 0.4)).State
		if got != last {
			changes++
		}
		last = got
	}
	assert.LessOrEqual(t, changes, 20)
	t.Logf("%d changes in 1,000 windows", changes)
}

func TestThroughputIsWorseWhenItIsLower(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	j, c := judge(t, Promise{Quantile: 0.05, Objective: 20, HigherIsBetter: true}), new(Cell)
	tokens := func(median float64) *sketch.Distribution {
		d := new(sketch.Distribution)
		for range 400 {
			d.Observe(median*math.Exp(0.2*r.NormFloat64()), 1)
		}
		return d
	}
	for i := range int64(20) {
		require.Equal(t, OK, j.Close(c, i*window, tokens(40)).State)
	}
	j.Close(c, 20*window, tokens(20))
	assert.Equal(t, Degraded, j.Close(c, 21*window, tokens(20)).State)
}

func TestAShareIsJudgedByWhatIsBad(t *testing.T) {
	j, c := judge(t, Promise{Objective: 0.99, HigherIsBetter: true}), new(Cell)
	for i := range int64(20) {
		r := j.CloseShare(c, i*window, 997, 1000)
		require.Equal(t, OK, r.State)
	}
	r := j.CloseShare(c, 20*window, 970, 1000)
	assert.InDelta(t, -0.02, r.Deviation, 0.001)
	assert.InDelta(t, 0.997, r.Dynamic.Value, 1e-9)
	r = j.CloseShare(c, 21*window, 970, 1000)
	assert.Equal(t, Degraded, r.State)
	assert.Equal(t, InsufficientData, j.CloseShare(c, 22*window, 0, 0).State)
}

// Scenario: values at the end of floats, which somebody's mistake has sent.
// Guarantees: the state stays one that can be read again.
func TestValuesAtTheEndOfFloatsLeaveAStateThatCanBeRead(t *testing.T) {
	j, c := judge(t, p99), new(Cell)
	for i := range int64(3) {
		w := constant(math.MaxFloat64, 500)
		require.True(t, w.AddExplicit([]float64{1e300, 1e308}, []uint64{5, 5, 5}))
		j.Close(c, i*window, w)
	}
	var restored Cell
	require.NoError(t, restored.Restore(through(t, c.State())))
}
