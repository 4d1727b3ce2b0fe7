// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// lately are windows of 400 values each, log-normal over two decades.
func lately() (windows []*sketch.Distribution) {
	r := rand.New(rand.NewPCG(1, 0))
	for range 16 {
		windows = append(windows, traffic(r, 400, 0.15, 0.6))
	}
	return windows
}

// steady is a cell that has been in use for long.
func steady(t testing.TB, windows []*sketch.Distribution) (*Judge, *Cell, int64) {
	j, c := judge(t, p99), new(Cell)
	for i := range int64(200) {
		j.Close(c, i*window, windows[i%16])
	}
	return j, c, 200
}

// loop runs a benchmark, and reports the CPU time of an operation: on a shared machine it says more than the wall clock.
func loop(b *testing.B, do func()) {
	cpu := func() int64 {
		var u syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return u.Utime.Nano() + u.Stime.Nano()
	}
	b.ReportAllocs()
	begin := cpu()
	for b.Loop() {
		do()
	}
	b.ReportMetric(float64(cpu()-begin)/float64(b.N), "cpu-ns/op")
}

func BenchmarkClose(b *testing.B) {
	windows := lately()
	j, c, at := steady(b, windows)
	loop(b, func() {
		j.Close(c, at*window, windows[at%16])
		at++
	})
	b.ReportMetric(float64(c.Bytes()), "B/cell")
}

func BenchmarkUpdate(b *testing.B) {
	windows := lately()
	j, c, at := steady(b, windows)
	loop(b, func() {
		j.window.set(at*window, windows[at%16], false)
		c.dynamic.Merge(j.options.Decay, &j.window)
		at++
	})
}

func BenchmarkFit(b *testing.B) {
	var d Decayed
	d.set(0, traffic(rand.New(rand.NewPCG(1, 0)), 200, 0.15, 0.3), false)
	b.Run("newton", func(b *testing.B) {
		loop(b, func() { FitGamma(d.sum/d.n, d.sumLog/d.n) })
	})
	b.Run("judged", func(b *testing.B) {
		loop(b, func() { d.fit(0.95) })
	})
}

func BenchmarkCells(b *testing.B) {
	windows := lately()
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			j := judge(b, p99)
			cells := make([]Cell, n)
			for w := range 3 {
				for i := range cells {
					j.Close(&cells[i], int64(w)*window, windows[w])
				}
			}
			i := 0
			loop(b, func() {
				j.Close(&cells[i%n], int64(3+i/n)*window, windows[i%16])
				i++
			})
		})
	}
}

// Guarantees: closing a window of a cell that has its buckets allocates nothing, and nor does a fit.
func TestASteadyCellAllocatesNothing(t *testing.T) {
	windows := lately()
	j, c, at := steady(t, windows)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		j.Close(c, at*window, windows[at%16])
		c.dynamic.fit(0.99)
		at++
	}))
	require.LessOrEqual(t, c.Bytes(), 4096)
}
