// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-llm/otelcol-llm/internal/budget"
)

const (
	minute = int64(time.Minute)
	day    = 24 * time.Hour
	// start is a Tuesday in 2026 that is aligned to nothing.
	start = 1_790_000_000_000_000_000
)

// burn are the windows of burn rates and of the error budget, as the engine asks for them.
var burn = []time.Duration{
	5 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, day, 3 * day, 28 * day,
}

// traffic is what minute i of a busy series counts: thousands of events, a few of them bad.
func traffic(i int64) budget.Counts {
	total := 3000 + float64(i*7919%2000)
	return budget.Counts{Good: total - float64(i%40), Total: total, Observed: time.Minute}
}

// full is a ring that was fed every minute for longer than it keeps.
func full(l *budget.Layout, of func(int64) budget.Counts) *budget.Ring {
	var r budget.Ring
	for i := range int64(29 * day / time.Minute) {
		r.Add(l, start+(i-int64(29*day/time.Minute))*minute, of(i))
	}
	return &r
}

// Scenario: 10,000 series with a budget of 28 days and burn rates, fed for 29 days. Guarantees: a series' books stay below
// 900 bytes of heap, all told.
func TestAFullRingTakesLessThan900Bytes(t *testing.T) {
	const n = 10_000
	l := budget.NewLayout(burn...)
	state := full(l, traffic).State()
	rings := make([]budget.Ring, 0, n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	rings = rings[:0:0]
	rings = append(rings, make([]budget.Ring, n)...)
	for i := range rings {
		if err := rings[i].Restore(l, state); err != nil {
			t.Fatal(err)
		}
		for m := range int64(60) { // and grown as rings in use do
			rings[i].Add(l, start+m*minute, traffic(m+int64(i)))
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapAlloc - before.HeapAlloc) / n
	t.Logf("%d bytes a ring of %d slots", each, rings[0].Len())
	assert.LessOrEqual(t, each, uint64(900))
	runtime.KeepAlive(rings)
}

func TestAMinuteAddedToAFullRingAllocatesNothing(t *testing.T) {
	l := budget.NewLayout(burn...)
	r := full(l, traffic)
	i := int64(0)
	for ; i < 2*int64(day/time.Minute); i++ {
		r.Add(l, start+i*minute, traffic(i))
	}
	assert.Zero(t, testing.AllocsPerRun(10_000, func() {
		r.Add(l, start+i*minute, traffic(i))
		i++
	}))
}

func BenchmarkAddAMinuteToAFullRing(b *testing.B) {
	l := budget.NewLayout(burn...)
	r := full(l, traffic)
	b.ReportAllocs()
	i := int64(0)
	for b.Loop() {
		r.Add(l, start+i*minute, traffic(i))
		i++
	}
}

func BenchmarkAddWithinTheMinute(b *testing.B) {
	l := budget.NewLayout(burn...)
	r := full(l, traffic)
	b.ReportAllocs()
	for b.Loop() {
		r.Add(l, start, traffic(1))
	}
}

func BenchmarkSumsOfSevenWindows(b *testing.B) {
	l := budget.NewLayout(burn...)
	r := full(l, traffic)
	dst := make([]budget.Counts, 0, len(burn))
	b.ReportAllocs()
	for b.Loop() {
		dst = r.Sums(l, start, burn, dst)
	}
}

func BenchmarkMergeTwoFullRings(b *testing.B) {
	l := budget.NewLayout(burn...)
	r, o := full(l, traffic), full(l, traffic)
	b.ReportAllocs()
	for b.Loop() {
		r.Merge(l, o)
	}
}
