// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakecuda"
)

// Guarantees: each function that allocates counts, with the bytes that it takes and not those that it was asked for,
// host memory does not; what may be on the host is told apart.
func TestEachFunctionThatAllocatesCounts(t *testing.T) {
	r := newRig(t, Options{})
	f := func(alloc, free string, size, want uint64, libraries ...string) {
		t.Helper()
		w := r.start(r.Workload, libraries...)
		r.scan()
		r.do(w, fmt.Sprintf("alloc %s 100 %d", alloc, size), "100 0")
		r.do(w, "free "+free+" 40", "40 0")
		p, ok := r.read()[w.PID()]
		if want == 0 {
			assert.True(t, !ok || p.Allocations == 0 && p.Frees == 0 && p.UnknownFrees == 0, alloc)
			return
		}
		require.True(t, ok, alloc)
		assert.Equal(t, []uint64{60 * want, 100 * want, 40 * want, 100, 40, 0}, []uint64{p.Live, p.Allocated, p.Freed, p.Allocations, p.Frees, p.UnknownFrees}, alloc)
		managed := uint64(0)
		if strings.Contains(alloc, "Managed") {
			managed = p.Live
		}
		assert.Equal(t, managed, p.Managed, alloc)
	}
	f("cudaMalloc", "cudaFree", 5000, 5000, r.Runtime)
	f("cudaMallocManaged", "cudaFree", 5000, 5000, r.Runtime)
	f("cudaMallocAsync", "cudaFreeAsync", 5000, 5000, r.Runtime)
	f("cudaMallocAsync_ptsz", "cudaFreeAsync", 5000, 5000, r.Runtime)
	f("cudaMallocFromPoolAsync", "cudaFreeAsync", 5000, 5000, r.Runtime)
	f("cudaMallocPitch", "cudaFree", 5000, 5120*3, r.Runtime)
	f("cudaMalloc3D", "cudaFree", 5000, 5120*3*2, r.Runtime)
	f("cuMemAlloc_v2", "cuMemFree_v2", 5000, 5000, r.Driver)
	f("cuMemAllocManaged", "cuMemFree_v2", 5000, 5000, r.Driver)
	f("cuMemAllocAsync", "cuMemFreeAsync", 5000, 5000, r.Driver)
	f("cuMemAllocAsync_ptsz", "cuMemFreeAsync_ptsz", 5000, 5000, r.Driver)
	f("cuMemAllocFromPoolAsync", "cuMemFreeAsync", 5000, 5000, r.Driver)
	f("cuMemAllocPitch_v2", "cuMemFree_v2", 5000, 5120*3, r.Driver)
	f("cuMemCreate", "cuMemRelease", 2<<20, 2<<20, r.Driver)
	f("cuMemCreateHost", "cuMemRelease", 2<<20, 0, r.Driver)
	f("cudaMallocHost", "cudaFreeHost", 5000, 0, r.Runtime)
	assert.Equal(t, Drops{}, r.Drops())
}

// Guarantees: what did not succeed takes nothing and gives nothing back.
func TestFailuresAreCountedAndTakeNothing(t *testing.T) {
	r := newRig(t, Options{})
	f := func(library, alloc, free string) {
		t.Helper()
		w := r.start(r.Workload, library)
		r.scan()
		r.do(w, "alloc "+alloc+" 10 4096", "10 0")
		r.do(w, fmt.Sprintf("alloc %s 7 %d", alloc, int64(fakecuda.Capacity)), "0 7")
		r.do(w, "alloc "+alloc+" 3 0", "3 0")   // NULL, which is no allocation
		r.do(w, "free "+free+" 3", "3 0")       // of NULL, which is no free
		r.do(w, "null "+free, "1 0")            // nor is this
		r.do(w, "free "+free+" 1", "1 0")       //
		r.do(w, "refree "+free+" 1", "0 1")     // twice, refused
		r.do(w, "unknown "+free+" 5", "5 0")    // not refused
		r.do(w, "alloc "+alloc+" 1 512", "1 0") // the address that was freed
		p := r.process(w)
		assert.Equal(t, []uint64{9*4096 + 512, 10*4096 + 512, 4096, 11, 1, 7, 1, 5},
			[]uint64{p.Live, p.Allocated, p.Freed, p.Allocations, p.Frees, p.Failures, p.FreeFailures, p.UnknownFrees}, alloc)
	}
	f(r.Runtime, "cudaMalloc", "cudaFree")
	f(r.Driver, "cuMemAlloc_v2", "cuMemFree_v2")
	assert.Equal(t, Drops{UnknownFrees: 10}, r.Drops())
}

// Scenario: eight threads take and give back the same addresses as fast as they can, so that an address is another thread's
// before the call that freed it has returned.
// Guarantees: live bytes are exact when they rest.
func TestAnAddressThatIsGivenAgainAtOnceIsCounted(t *testing.T) {
	r := newRig(t, Options{})
	f := func(alloc, free string) {
		t.Helper()
		w := r.start(r.Workload, r.Runtime, r.Driver)
		r.scan()
		r.do(w, "alloc "+alloc+" 3 100", "3 0")
		r.do(w, "churn "+alloc+" "+free+" 10000 4096 8", "80000 0")
		p := r.process(w)
		assert.Equal(t, []uint64{300, 80003, 80000, 0}, []uint64{p.Live, p.Allocations, p.Frees, p.UnknownFrees}, alloc+" "+free)
	}
	f("cudaMalloc", "cudaFree")
	f("cudaMallocAsync", "cuMemFreeAsync")
	f("cuMemCreate", "cuMemRelease")
	assert.Equal(t, Drops{}, r.Drops())
}

// Guarantees: a launch counts once however many functions it goes through, and takes as long as it takes.
func TestLaunchesAreCountedWithTheirDurations(t *testing.T) {
	t.Setenv("FAKECUDA_LAUNCH_NS", "300000")
	r := newRig(t, Options{Launches: true})
	f := func(library, function string) {
		t.Helper()
		w := r.start(r.Workload, library)
		r.scan()
		r.do(w, "launch "+function+" 250 2", "500 0")
		p := r.process(w)
		assert.Equal(t, uint64(500), p.Launches, function)
		assert.GreaterOrEqual(t, p.LaunchSum, uint64(500*300_000), function)
		// 2^(-94/8) s is 290 µs: nothing was faster.
		assert.Zero(t, sum(p.LaunchDurations[:-94-LaunchOffset]), function)
	}
	f(r.Runtime, "cudaLaunchKernel")
	f(r.Driver, "cuLaunchKernel")
	f(r.Driver, "cuLaunchKernelEx")
}

func TestLaunchesAreNotProbedUnlessAsked(t *testing.T) {
	r := newRig(t, Options{})
	w := r.start(r.Workload, r.Runtime)
	r.scan()
	r.do(w, "launch cudaLaunchKernel 10", "10 0")
	r.do(w, "alloc cudaMalloc 1 1", "1 0")
	assert.Zero(t, r.process(w).Launches)
}

// Scenario: a call is left by longjmp, and those after it are made from further down the stack, as if they were below it.
// Guarantees: it is counted that it was left, and the others count: at once where the same function is called again, else after so many.
func TestACallThatIsLeftDoesNotHideThoseAfterIt(t *testing.T) {
	r := newRig(t, Options{})
	f := func(library, left, alloc string, calls, want uint64) {
		t.Helper()
		w := r.start(r.Workload, library)
		r.scan()
		r.do(w, "leave "+left+" 4096", "")
		r.do(w, fmt.Sprintf("alloc %s %d 4096", alloc, calls), fmt.Sprint(calls, " 0"))
		p := r.process(w)
		assert.Equal(t, []uint64{want * 4096, want, 1}, []uint64{p.Live, p.Allocations, p.Unreturned}, left)
	}
	f(r.Runtime, "cudaMalloc", "cudaMalloc", 10, 10)
	f(r.Driver, "cuMemAlloc_v2", "cuMemAlloc_v2", 10, 10)
	f(r.Driver, "cuMemAlloc_v2", "cuMemCreate", 300, 300-255)
	assert.Equal(t, Drops{Unreturned: 3}, r.Drops())

	r = newRig(t, Options{Launches: true})
	w := r.start(r.Workload, r.Driver)
	r.scan()
	r.do(w, "leave cuLaunchKernel 0", "")
	r.do(w, "launch cuLaunchKernel 300", "300 0")
	assert.Equal(t, uint64(300-255), r.process(w).Launches)
}
