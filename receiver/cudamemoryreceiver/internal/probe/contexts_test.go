// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakecuda"
)

// Guarantees: what a process has on its one device, or in its one context, is released when that goes, at once and to the byte;
// handles stay; it begins anew with nothing to carry on; and what was left of it is not remembered.
func TestWhatGoesWithItsContextIsReleased(t *testing.T) {
	var x told
	r := newRig(t, x.options())
	f := func(alloc, free, reset string, before ...string) {
		t.Helper()
		w := r.start(r.Workload, r.Runtime, r.Driver)
		r.scan()
		for _, command := range before {
			r.do(w, command, "1 0")
		}
		r.do(w, "alloc cuMemCreate 2 2097152", "2 0")
		for round := uint64(1); round <= 3; round++ {
			r.do(w, "alloc "+alloc+" 100 4096", "100 0")
			r.do(w, "free "+free+" 40", "40 0")
			r.do(w, reset, "1 0")
			p := r.process(w)
			assert.Equal(t, []uint64{2 << 21, 0, round * 60 * 4096, 2 + round*100, round * 40, 0},
				[]uint64{p.Live, p.Managed, p.Released, p.Allocations, p.Frees, p.UnknownFrees}, "%s, round %d", reset, round)
			r.eventually("it is told", func() bool { c, _ := x.last(w.PID()); return c.Live == 2<<21 && c.Managed == 0 })
			r.do(w, "free "+free+" 1", "0 1") // what is gone cannot be freed
			r.scan()
			assert.Equal(t, 2, r.entries(), reset)
			if reset == "device cuCtxDestroy_v2 0" {
				break
			}
		}
		require.NoError(t, w.Kill())
		r.scan()
		assert.Zero(t, r.entries())
	}
	f("cudaMalloc", "cudaFree", "device cudaDeviceReset")
	f("cudaMallocManaged", "cudaFree", "device cudaDeviceReset", "device cudaSetDevice 3")
	f("cudaMallocAsync", "cudaFreeAsync", "device cudaDeviceReset", "device cudaSetDevice 3", "device cudaSetDevice 3")
	f("cuMemAlloc_v2", "cuMemFree_v2", "device cuDevicePrimaryCtxReset_v2 0", "device cuDevicePrimaryCtxRetain 0")
	f("cuMemAlloc_v2", "cuMemFree_v2", "device cuCtxDestroy_v2 0", "device cuCtxCreate_v2 0")
	assert.Equal(t, Drops{}, r.Drops())
}

// Scenario: a process uses more than one device or context, as far as can be seen, and one of them goes.
// Guarantees: nothing is taken for gone that may be there; the process is marked, once for each time.
func TestWhatMayBeInAnotherContextStays(t *testing.T) {
	r := newRig(t, Options{})
	f := func(reset string, want uint64, before ...string) {
		t.Helper()
		w := r.start(r.Workload, r.Runtime, r.Driver)
		r.scan()
		for _, command := range before {
			got, err := w.Do(command)
			require.NoError(t, err)
			require.NotContains(t, got, " 1", command)
		}
		r.do(w, reset, "1 0")
		p := r.process(w)
		assert.Equal(t, []uint64{want * 4096, 0, 1}, []uint64{p.Live, p.Released, p.UnknownFrees}, "%s after %q", reset, before)
	}
	const alloc = "alloc cuMemAlloc_v2 10 4096"
	f("device cudaDeviceReset", 20, "device cudaSetDevice 0", alloc, "device cudaSetDevice 1", alloc)
	f("device cudaDeviceReset", 20, alloc, "device cudaSetDevice 1", alloc) // the first ten on the device that nobody named
	f("device cuDevicePrimaryCtxReset_v2 1", 10, "device cuDevicePrimaryCtxRetain 1", "device cuDevicePrimaryCtxRetain 2", alloc)
	f("device cudaDeviceReset", 10, "device cuCtxCreate_v2 0", alloc)
	f("device cuCtxDestroy_v2 1", 20, "device cuCtxCreate_v2 0", alloc, "device cuCtxCreate_v2 0", alloc)
	f("device cuCtxDestroy_v2 0", 20, "device cudaSetDevice 0", alloc, "device cuCtxCreate_v2 0", alloc)
	assert.Equal(t, Drops{UnknownFrees: 6}, r.Drops())
}

// Guarantees: a reset of a process that has nothing is nothing, and the first one that is sure again releases all.
func TestAResetOfNothingIsNoMiss(t *testing.T) {
	r := newRig(t, Options{})
	w := r.start(r.Workload, r.Runtime)
	r.do(w, "alloc cudaMalloc 1 1", "1 0") // and so the driver
	r.scan()
	r.do(w, "device cudaSetDevice 1", "1 0")
	r.do(w, "device cudaSetDevice 2", "1 0")
	r.do(w, "device cudaDeviceReset", "1 0")
	assert.Zero(t, r.process(w).UnknownFrees)
}

// Scenario: the Collector is restarted, twice, while a process holds fifty blocks and replaces all of them, a few more each time.
// Guarantees: live never exceeds what the process holds, in no step; every block of before that is freed is counted; and when none
// of them is left, live is the truth and nothing more is counted.
func TestAfterARestartLiveNeverExceedsTheTruth(t *testing.T) {
	const blocks, size = 50, 1 << 20
	var w *fakecuda.Workload
	for restart := range 3 {
		r := newRig(t, Options{})
		if w == nil {
			w = r.start(r.Workload, r.Runtime)
			r.do(w, fmt.Sprintf("alloc cudaMalloc %d %d", blocks, size), "50 0")
		} else {
			show(t, r.opts.ProcRoot, w)
		}
		r.scan()
		for n := uint64(1); n <= blocks; n++ {
			r.do(w, fmt.Sprintf("free cudaFree %d", n), fmt.Sprintf("%d 0", n)) // the newest
			r.do(w, fmt.Sprintf("alloc cudaMalloc %d %d", n, size), fmt.Sprintf("%d 0", n))
			p := r.process(w)
			assert.Equal(t, []uint64{n * size, n, 0}, []uint64{p.Live, p.UnknownFrees, p.Missed}, "restart %d", restart)
			assert.LessOrEqual(t, p.Live, uint64(blocks*size))
		}
		r.do(w, "free cudaFree 50", "50 0")
		r.do(w, "alloc cudaMalloc 50 1048576", "50 0")
		p := r.process(w)
		assert.Equal(t, []uint64{blocks * size, blocks}, []uint64{p.Live, p.UnknownFrees})
		require.NoError(t, r.Close())
	}
}

// Scenario: one process takes all the room that it gets, and then others come.
// Guarantees: what these allocate is counted, and those that are not complete are marked, and only those.
func TestOneProcessCannotTakeAllTheRoom(t *testing.T) {
	r := newRig(t, Options{MaxEntries: 1000})
	greedy := r.start(r.Workload, r.Driver)
	var others []*fakecuda.Workload
	for range 2 {
		others = append(others, r.start(r.Workload, r.Driver))
	}
	r.scan()
	r.do(greedy, "alloc cuMemAlloc_v2 1500 1048576", "1500 0")
	for _, w := range others {
		r.do(w, "alloc cuMemAlloc_v2 10 1073741824", "10 0")
		p := r.process(w)
		assert.Equal(t, []uint64{10 << 30, 0}, []uint64{p.Live, p.Missed})
	}
	p := r.process(greedy)
	assert.Equal(t, []uint64{875 << 20, 625}, []uint64{p.Live, p.Missed})
	r.do(others[0], "alloc cuMemAlloc_v2 200 512", "200 0")
	p = r.process(others[0])
	assert.Equal(t, []uint64{105 * 512, 95}, []uint64{p.Live - 10<<30, p.Missed}, "all the room is taken")
	assert.Equal(t, Drops{Live: 625 + 95}, r.Drops())
	require.NoError(t, greedy.Kill())
	r.scan()
	r.do(others[1], "alloc cuMemAlloc_v2 200 512", "200 0")
	assert.Zero(t, r.process(others[1]).Missed, "there is room again")
}
