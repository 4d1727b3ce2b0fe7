// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/budget"
	"github.com/otelcol-llm/otelcol-llm/internal/cputest"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// bounds16 are those of a histogram with 16 buckets.
var bounds16 = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .8, 1, 2.5, 5, 7.5}

// workbook are the burn rates that are on by default.
var workbook = []BurnRate{
	{Long: time.Hour, Short: 5 * time.Minute, Factor: 14.4, Severity: "page"},
	{Long: 6 * time.Hour, Short: 30 * time.Minute, Factor: 6, Severity: "page"},
	{Long: 24 * time.Hour, Short: 2 * time.Hour, Factor: 3, Severity: "ticket"},
	{Long: 72 * time.Hour, Short: 6 * time.Hour, Factor: 1, Severity: "ticket"},
}

// fleet is a judge of n series with a budget of 28 days, a policy and burn rates.
func fleet(n int) (*Judge, []*Series) {
	slo := ttft("pod")
	slo.TimeWindow = rolling("28d")
	j := New(catalogOf(slo, policyOf(leaf(slo), 3, openslo.NoDataHold)),
		Options{Window: 5 * time.Minute, MaxSeries: n, TTL: time.Hour, BurnRates: workbook})
	all := make([]*Series, n)
	for i := range all {
		all[i] = j.Series(0, []string{fmt.Sprint(i)})
	}
	return j, all
}

// usual is what a point counts: nearly all good.
func usual(i, m int64) []uint64 {
	counts := make([]uint64, 16)
	counts[9], counts[10] = 900, uint64(50+(i+m)%50)
	if (i+m)%5 == 0 {
		counts[12] = 3
	}
	return counts
}

func BenchmarkCloseAMinute(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		for _, input := range []bool{false, true} {
			name := fmt.Sprintf("%d_series_without_input", n)
			if input {
				name = fmt.Sprintf("%d_series_with_input", n)
			}
			b.Run(name, func(b *testing.B) {
				j, all := fleet(n)
				counts := make([][]uint64, 10)
				for i := range counts {
					counts[i] = usual(int64(i), 0)
				}
				at := t0
				minuteOf := func(input bool) {
					if input {
						b.StopTimer()
						for i, s := range all {
							addTo(s, at+minute/2, bounds16, counts[i%10])
						}
						b.StartTimer()
					}
					at += minute
					j.Advance(at)
					b.StopTimer()
					j.Changes(math.MaxInt, func(*Series, bool) {}, func(*Tally) {})
					b.StartTimer()
				}
				for range 12 {
					minuteOf(true)
				}
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					if !input && at-j.lastData > 50*minute { // before they are given up
						b.StopTimer()
						minuteOf(true)
						b.StartTimer()
					}
					minuteOf(input)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/series")
			})
		}
	}
}

// Scenario: thousands of series with the books of 28 days, burn rates and a histogram of 16 buckets, while two minutes are open.
// Guarantees: a series takes no more than 2 KiB of heap: some 770 its books, 390 the two open minutes, 260 the window, 330 the
// series itself, and 290 its names, the policy and the maps.
func TestASeriesTakesLittle(t *testing.T) {
	const n = 4000
	_, one := fleet(1)
	for m := range int64(29 * 24 * 60) { // what the books of one look like
		one[0].post(t0+m*minute, budget.Counts{Good: 3000 + float64(m*7919%2000), Total: 3040 + float64(m*7919%2000), Observed: time.Minute})
	}
	books := one[0].account.ring.State()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	j, all := fleet(n)
	for _, s := range all {
		require.NoError(t, s.account.ring.Restore(s.promise.books.layout, books))
	}
	counts := make([][]uint64, 50)
	for m := int64(29 * 24 * 60); m < 29*24*60+12; m++ {
		for i := range counts {
			counts[i] = usual(int64(i), m)
		}
		for i, s := range all {
			addTo(s, t0+m*minute+minute/2, bounds16, counts[i%len(counts)])
		}
		j.Advance(t0 + m*minute)
		j.Changes(math.MaxInt, func(*Series, bool) {}, func(*Tally) {})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapAlloc - before.HeapAlloc) / n
	t.Logf("%d bytes a series: Series %d, of which account %d; a window %d: sums %d and Result %d; the ring at rest %d", each,
		unsafe.Sizeof(Series{}), unsafe.Sizeof(account{}), unsafe.Sizeof(openWindow{}), unsafe.Sizeof(sums{}), unsafe.Sizeof(Result{}), len(books.Slots))
	assert.LessOrEqual(t, each, uint64(2048))
	runtime.KeepAlive(all)
}

// Scenario: ten thousand series with the usual burn rates, and then nothing for three days, or for years.
// Guarantees: silence costs a fraction of a second, however long it is.
func TestSilenceIsCheapWithBurnRates(t *testing.T) {
	for _, silence := range []int64{3 * day, 1000 * day} {
		j, all := fleet(10_000)
		for m := range int64(10) {
			for i, s := range all {
				addTo(s, t0+m*minute, bounds16, usual(int64(i), m))
			}
			j.Advance(t0 + (m+1)*minute)
		}
		took := cputest.Time(t, func() { j.Advance(t0 + silence) })
		t.Logf("%s of silence took %s", time.Duration(silence), took)
		assert.Less(t, took, 3*time.Second)
	}
}

func TestClosingAMinuteAllocatesNothing(t *testing.T) {
	j, all := fleet(10)
	counts := usual(0, 0)
	at := t0
	turn := func() {
		for _, s := range all {
			addTo(s, at, bounds16, counts)
		}
		at += minute
		j.Advance(at)
		j.Changes(math.MaxInt, func(*Series, bool) {}, func(*Tally) {})
	}
	for range 60 {
		turn()
	}
	require.Zero(t, testing.AllocsPerRun(600, turn))
}
