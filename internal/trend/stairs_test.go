// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Scenario: memory takes another step every so many hours, and after some days no more. Guarantees: that is one leak, from the fourth step on, which does not end
// between two steps, and it is over some time after the next one would have been due.
func TestAStairIsOneLeakUntilItEnds(t *testing.T) {
	f := func(seed uint64, every, size float64) {
		t.Helper()
		most := math.Floor(56 / every)
		of := noisy(2*mib, 0.5, func(*rand.Rand) func(float64) moment {
			return func(h float64) moment { return moment{40*gib + size*min(math.Floor(h/every), most), untold, 0} }
		})(rand.New(rand.NewPCG(seed, 1)))
		j, s, last := NewJudge(DefaultOptions()), new(Series), OK
		var changes []float64
		for tick := range 96 * 120 {
			at, h := t0+int64(tick)*int64(30*time.Second), float64(tick)/120
			m := of(h)
			if j.Add(s, at, m.bytes); tick%2 != 0 {
				continue
			}
			if state := j.Judge(s, at, Alone(80*gib-m.bytes)).State; (state == Leaking) != (last == Leaking) {
				changes, last = append(changes, h), state
			}
		}
		if assert.Len(t, changes, 2, "%v", every) {
			assert.Less(t, changes[0], 4.5*every)
			assert.Greater(t, changes[1], most*every+overdue*every, "not before it is overdue")
			assert.Less(t, changes[1], most*every+3*every+2)
		}
	}
	for seed := range uint64(3) {
		f(seed, 2, gib)
		f(seed, 4, 2*gib)
		f(seed, 3, gib/2)
	}
}

// Guarantees: even steps are found where there are some, and how far they have come; what falls, rises on or has one large step is no stair.
func TestEvenStepsAreFound(t *testing.T) {
	f := func(y func(i int) float64, want stair) {
		t.Helper()
		x, values := make([]float64, 64), make([]float64, 64)
		for i := range x {
			x[i], values[i] = float64(10*i), y(i)
		}
		got := new(scratch).stairs(x, values, 10)
		if assert.Equal(t, want.steps, got.steps); want.steps > 1 {
			assert.InDelta(t, want.every, got.every, 1)
			assert.InDelta(t, want.size, got.size, 0.01*want.size)
			assert.InDelta(t, want.since, got.since, 10)
		}
	}
	floor := func(every int) func(int) float64 {
		return func(i int) float64 { return 5 * float64(i/every) }
	}
	f(floor(12), stair{5, 120, 40, 5})
	f(floor(16), stair{3, 160, 160, 5})
	f(func(i int) float64 { return floor(12)(i) + 3*float64(i%2) }, stair{}) // as much noise as steps
	f(func(i int) float64 { return floor(12)(i) + 0.2*float64(i%2) }, stair{5, 120, 40, 5})
	f(func(i int) float64 { return floor(12)(max(i-6, 0)) + 50*float64(min(i/6, 1)) }, stair{4, 120, 100, 5})
	f(func(i int) float64 { return float64(i) }, stair{})
	f(func(i int) float64 { return -floor(12)(i) }, stair{})
	f(func(i int) float64 { return math.Mod(floor(12)(i), 20) }, stair{})
	f(func(int) float64 { return 1 }, stair{})
}
