// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

var t0 = time.Unix(1_700_000_000, 0)

func TestBothLimitsAreTakenOrNeither(t *testing.T) {
	r := NewRates(10, 100, time.Second)
	f := func(items, bytes int, want Reason, wait time.Duration) {
		t.Helper()
		got, after := r.Take(t0, items, bytes)
		assert.Equal(t, want, got)
		assert.Equal(t, wait, after)
	}
	f(5, 90, None, 0)
	f(5, 20, Bytes, 100*time.Millisecond)
	f(6, 10, Items, 100*time.Millisecond)
	f(5, 10, None, 0)
	assert.True(t, r.CountsBytes())
	assert.False(t, NewRates(1, 0, time.Second).CountsBytes())
}

// Guarantees: over time, no more passes than the limit and one burst, or the one request that was larger than that; and whoever
// waits as long as is said gets through.
func TestTheRateHoldsAndTheWaitIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perSecond := rapid.IntRange(1, 1000).Draw(t, "per second")
		burst := rapid.IntRange(1, 10).Draw(t, "burst")
		r := NewRates(float64(perSecond), 0, time.Duration(burst)*time.Second)
		now, passed, largest := t0, 0, 0
		for range rapid.IntRange(1, 50).Draw(t, "requests") {
			n := rapid.IntRange(1, 20*perSecond).Draw(t, "items")
			why, wait := r.Take(now, n, 0)
			if why != None {
				now = now.Add(wait + time.Microsecond) // floating point
				why, wait = r.Take(now, n, 0)
			}
			if why != None {
				t.Fatalf("%d items are refused for another %s", n, wait)
			}
			passed += n
			largest = max(largest, n)
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
			allowed := now.Sub(t0).Seconds()*float64(perSecond) + float64(perSecond*burst+largest)
			if float64(passed) > allowed+1 {
				t.Fatalf("%d items passed in %s, and %g may", passed, now.Sub(t0), allowed)
			}
		}
	})
}

func TestSeriesAreForgottenWhenNothingIsHeardOfThem(t *testing.T) {
	s := NewSeries(2)
	admit := func(at time.Duration, id uint64) bool {
		s.Lock(t0.Add(at))
		defer s.Unlock()
		return s.Admit(id)
	}
	assert.True(t, admit(0, 1))
	assert.True(t, admit(0, 2))
	assert.False(t, admit(0, 3))
	assert.True(t, admit(11*time.Minute, 1))
	assert.False(t, admit(11*time.Minute, 3), "the second is active still")
	assert.Equal(t, 2, s.Active(t0.Add(11*time.Minute)))
	assert.True(t, admit(22*time.Minute, 3))
	assert.True(t, admit(22*time.Minute, 1))
	assert.False(t, admit(22*time.Minute, 2))
	assert.Equal(t, 0, s.Active(t0.Add(time.Hour)))
}

func BenchmarkTake(b *testing.B) {
	r := NewRates(1e12, 1e12, time.Second)
	b.ReportAllocs()
	for b.Loop() {
		r.Take(t0, 1, 1)
	}
}

func BenchmarkAdmit(b *testing.B) {
	s := NewSeries(10_000)
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		s.Lock(t0)
		s.Admit(i % 10_000)
		s.Unlock()
		i++
	}
}
