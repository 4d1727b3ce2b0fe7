// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// between rises from one amount to another within so many hours, and goes on as steeply for as long as it goes on at all.
func between(from, to, hours, until float64) process {
	return func(*rand.Rand) func(float64) moment {
		return func(h float64) moment { return moment{from + (to-from)*min(h, until)/hours, untold, 0} }
	}
}

// serving has so many requests finished an hour, of which so many run at once.
func serving(p process, perHour, running float64) process {
	return func(r *rand.Rand) func(float64) moment {
		of := p(r)
		return func(h float64) moment {
			m := of(h)
			m.running, m.served = max(running+r.NormFloat64(), 0), perHour/360
			return m
		}
	}
}

// Scenario: triton-inference-server/server#4372: 20,958 MiB become 80,342 in a day.
func TestTritonThatGrewFourfoldInADayLeaks(t *testing.T) {
	w := watch(DefaultOptions(), noisy(50*mib, 0.5, between(20958*mib, 80342*mib, 24, 24)), 1, 24, 81559*mib)
	assert.Less(t, w.first[Leaking], 3.5)
	assert.Less(t, w.gone, 0.2)
	assert.Equal(t, Leaking, w.last.State)
	assert.InEpsilon(t, (80342-20958)*mib/86400.0, w.last.Rate.Value, 0.02)
	assert.LessOrEqual(t, w.last.Rate.Low, (80342-20958)*mib/86400.0)
	assert.GreaterOrEqual(t, w.last.Rate.High, (80342-20958)*mib/86400.0)
	assert.InEpsilon(t, (81559-80342)/((80342-20958)/86400.0), w.last.Exhaustion.Value, 0.2)
}

// Scenario: sgl-project/sglang#5375: 500 MB more within 3 hours and 2,000 requests, at 60 GB.
func TestSGLangThatGrewAQuarterOfAMegabyteARequestLeaks(t *testing.T) {
	w := watch(DefaultOptions(), serving(noisy(20e6, 0.5, between(60e9, 60.5e9, 3, 99)), 2000/3.0, 6), 1, 8, 80e9)
	assert.Less(t, w.first[Leaking], 4.0)
	assert.Equal(t, Leaking, w.last.State)
	assert.InEpsilon(t, 250e3, w.last.PerServed, 0.05)
}

// Scenario: triton-inference-server/server#6961: 5,520 MiB become 5,680, and stay.
func TestTritonThatGrewOnceDoesNotLeak(t *testing.T) {
	for _, within := range []float64{0.1, 0.5, 1, 2} {
		w := watch(DefaultOptions(), noisy(5*mib, 0.5, between(5520*mib, 5680*mib, within, within)), 1, 48, 24*gib)
		assert.Greater(t, w.first[Leaking], 48.0, within)
		assert.Equal(t, OK, w.last.State, within)
	}
}

// Scenario: 1.23 GiB a request become 2.89 and then 4.71 within 1,200 requests, one at a time.
func TestARequestThatTakesMoreAndMoreLeaks(t *testing.T) {
	grows := func(*rand.Rand) func(float64) moment {
		return func(h float64) moment {
			served := min(h*300, 1200) // 4 hours
			bytes := 1.23 + (2.89-1.23)*min(served, 600)/600 + (4.71-2.89)*max(served-600, 0)/600
			return moment{bytes * gib, 1, 300.0 / 360}
		}
	}
	w := watch(DefaultOptions(), noisy(20*mib, 0.5, grows), 1, 4, 24*gib)
	assert.Less(t, w.first[Leaking], 3.5)
	assert.Equal(t, Leaking, w.last.State)
	assert.Less(t, w.gone, 0.2)
	assert.InDelta(t, 1.23+(2.89-1.23)*0.25, w.last.PerRequestFirst/gib, 0.05, "of the first hour, on average")
	assert.InDelta(t, 4.25, w.last.PerRequest/gib, 0.1, "of the last")
}

// Scenario: a process fills a GPU within two hours. Guarantees: that is not awaited; three hours are for what has the time.
func TestMemoryThatEndsSoonerIsALeakSooner(t *testing.T) {
	w := watch(DefaultOptions(), noisy(20*mib, 0.5, between(20*gib, 80*gib, 2, 2)), 1, 2, 80*gib)
	assert.Less(t, w.first[Leaking], 0.7)
	assert.False(t, w.last.Exhaustion.High > 600, "%v", w.last.Exhaustion)
}

// Scenario: a cache grows to its size within an hour, to nearly all there is. Guarantees: it may be taken for the end, but not
// for long.
func TestACacheThatFillsNearlyAllIsSoonNoLeak(t *testing.T) {
	w := watch(DefaultOptions(), noisy(20*mib, 0.5, fills(20*gib, 50*gib, 0.3)), 1, 8, 80*gib)
	assert.NotEqual(t, Leaking, w.last.State)
	assert.NotEqual(t, Suspect, w.last.State)
}

// Scenario: each request leaves 0.2 MiB behind, and there are requests by day only, for nine hours, or more and fewer of them. Guarantees: the
// leak is found on the first day, and is one leak for three days, also where requests take memory while they run: it rests by night. When it is mended, though the process goes on, it is over
// within a day's work.
func TestALeakThatRestsByNightIsOneLeak(t *testing.T) {
	office := func(r *rand.Rand, h float64) float64 {
		if math.Mod(h, 24) < 9 {
			return 20 + r.NormFloat64()
		}
		return 0
	}
	f := func(traffic func(*rand.Rand, float64) float64, perRequest float64) {
		t.Helper()
		r := rand.New(rand.NewPCG(1, 1))
		j, s, leaked, changes, last := NewJudge(DefaultOptions()), new(Series), 0.0, 0, OK
		for tick := range 96 * 360 {
			at, h := t0+int64(tick)*int64(10*time.Second), float64(tick)/360
			n := traffic(r, h)
			if h < 72 {
				leaked += n / 2 * 0.2 * mib
			}
			j.Add(s, at, 40*gib+leaked+n*perRequest+r.NormFloat64()*small)
			j.Running(s, at, n)
			if tick%6 != 0 {
				continue
			}
			if state := j.Judge(s, at, Alone(40*gib-leaked)).State; (state == Leaking) != (last == Leaking) {
				changes++
				if last = state; changes == 1 {
					assert.Less(t, h, 12.0)
				} else {
					assert.Greater(t, h, 72.0)
				}
			}
		}
		assert.Equal(t, 2, changes)
	}
	daily := func(r *rand.Rand, h float64) float64 { return math.Round(day(r, h, 6)) }
	f(office, 0)
	f(daily, 0)
	f(office, 0.2*gib)
	f(daily, 0.2*gib) // which comes and goes faster than the leak grows
}

// Scenario: a process leaks 1 % an hour for a day, and then no more, though it goes on; nothing is known of its traffic. Guarantees: that is one leak, and it is over within
// five hours.
func TestALeakThatStopsIsOver(t *testing.T) {
	for _, rho := range []float64{0, 0.9} {
		for seed := range uint64(3) {
			of := noisy(large, rho, between(40*gib, 49.6*gib, 24, 24))(rand.New(rand.NewPCG(seed, 1)))
			j, s, last := NewJudge(DefaultOptions()), new(Series), OK
			var changes []float64
			for tick := range 48 * 120 {
				at, h := t0+int64(tick)*int64(30*time.Second), float64(tick)/120
				m := of(h)
				if j.Add(s, at, m.bytes); tick%2 != 0 {
					continue
				}
				if state := j.Judge(s, at, Alone(80*gib-m.bytes)).State; (state == Leaking) != (last == Leaking) {
					changes, last = append(changes, h), state
				}
			}
			assert.Len(t, changes, 2)
			assert.Less(t, changes[0], 10.0)
			assert.InDelta(t, 26.5, changes[1], 2.5)
		}
	}
}

// Scenario: a process that leaks begins anew, with the same process id. Guarantees: so does the verdict.
func TestAProcessThatBeginsAnewDoesNotLeakYet(t *testing.T) {
	w := watch(DefaultOptions(), noisy(small, 0.5, restarts(20*gib, 0.02, 5)), 1, 5.2, 80*gib)
	assert.Less(t, w.first[Leaking], 4.0)
	assert.Equal(t, OK, w.last.State)
}

// Scenario: a process leaks, sleeps for 40 minutes, for two hours, and then for good. Guarantees: a short sleep has no say in the verdict; during a long one nothing leaks, and after it what was known of it
// is known still; and one that does not wake again is judged as what it is by then.
func TestALeakGoesOnAfterASleep(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	j, s, last := NewJudge(DefaultOptions()), new(Series), OK
	var changes []float64
	for tick := range 24 * 120 {
		at, h := t0+int64(tick)*int64(30*time.Second), float64(tick)/120
		bytes := 40*gib + 0.5*gib*h + r.NormFloat64()*20*mib
		if h > 5 && h < 5.7 || h > 8 && h < 10 || h > 14 {
			bytes -= 38 * gib
		}
		if j.Add(s, at, bytes); tick%2 != 0 {
			continue
		}
		r := j.Judge(s, at, Alone(80*gib-bytes))
		if (r.State == Leaking) != (last == Leaking) {
			changes, last = append(changes, h), r.State
		}
		if h > 23 {
			assert.Equal(t, Leaking, r.State, "it leaks on, and holds more than a fifth of what it had")
		}
	}
	assert.InDeltaSlice(t, []float64{3.4, 9, 10.2, 15, 18.2}, changes, 0.4)
}

// Guarantees: a verdict needs to be found for a while, and the worst that was found all the while counts.
func TestAVerdictTakesItsTime(t *testing.T) {
	o := Options{Enter: 10, Leave: 30}
	var v verdict
	f := func(now int64, found, want State) {
		t.Helper()
		assert.Equal(t, want, v.next(&o, found, now, false))
	}
	f(100, Leaking, OK)
	f(105, Suspect, OK)
	f(110, Leaking, Suspect) // at least that, all the time
	f(115, Leaking, Suspect)
	f(120, Suspect, Suspect) // from the beginning again
	f(125, Leaking, Suspect)
	f(135, Leaking, Leaking)
	f(140, OK, Leaking)
	f(160, Plateau, Leaking)
	f(170, OK, Plateau)
	f(171, OK, Plateau)
	f(201, OK, OK)
	v = verdict{state: Leaking}
	assert.Equal(t, Leaking, v.next(&o, OK, 1, true))
	assert.Equal(t, Leaking, v.next(&o, OK, 100, true), "it rests")
	assert.Equal(t, OK, v.next(&o, OK, 101, false))
}

// Guarantees: the unit does not matter, nor when it is, as long as cells are cut alike.
func TestTheVerdictIsThatOfTheSameMemoryInOtherUnits(t *testing.T) {
	f := func(scale float64, later int64) (r Result) {
		of := noisy(small, 0.5, follows(20*gib, 0.2*gib, 6, 0.01))(rand.New(rand.NewPCG(3, 3)))
		j, s := NewJudge(DefaultOptions()), new(Series)
		for tick := range 20 * 360 {
			at := t0 + later + int64(tick)*int64(10*time.Second)
			m := of(float64(tick) / 360)
			j.Add(s, at, m.bytes*scale)
			j.Running(s, at, m.running)
			if tick%6 == 0 {
				r = j.Judge(s, at, Alone((80*gib-m.bytes)*scale))
			}
		}
		return r
	}
	want := f(1, 0)
	assert.Equal(t, Leaking, want.State)
	later := f(1, NewJudge(DefaultOptions()).width<<topLevel)
	assert.Equal(t, want.State, later.State)
	assert.InEpsilon(t, want.Rate.Value, later.Rate.Value, 1e-12)
	scaled := f(1.0/1024, 0)
	assert.Equal(t, want.State, scaled.State)
	assert.Equal(t, want.Span, scaled.Span)
	assert.InEpsilon(t, want.Rate.Value/1024, scaled.Rate.Value, 1e-9)
	assert.InEpsilon(t, want.Rate.Low/1024, scaled.Rate.Low, 1e-9)
	assert.InEpsilon(t, want.Exhaustion.Value, scaled.Exhaustion.Value, 1e-9)
	assert.InEpsilon(t, want.PerRequest/1024, scaled.PerRequest, 1e-9)
}

func TestOptionsThatAreWrongAreNamed(t *testing.T) {
	f := func(change func(*Options), want string) {
		t.Helper()
		o := DefaultOptions()
		assert.NoError(t, o.Validate())
		change(&o)
		assert.ErrorContains(t, o.Validate(), want)
	}
	f(func(o *Options) { o.MinDuration = time.Second }, "min duration: 1s must be at least 1m0s")
	f(func(o *Options) { o.Settle = -1 }, "must not be negative")
	f(func(o *Options) { o.Alpha = 0.5 }, "alpha: 0.5 is not in (0, 0.5)")
	f(func(o *Options) { o.MinRise = 1 }, "min rise: 1 is not in [0, 1)")
}
