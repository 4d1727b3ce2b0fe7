// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// held is what counts of handles: live bytes, frees, frees of what is not known, and what there was no room for.
func (r *rig) held(live, frees uint64, of interface{ PID() int }, when string) {
	r.Helper()
	p := r.read()[of.PID()]
	assert.Equal(r, []uint64{live << 20, frees, 0, 0}, []uint64{p.Live, p.Frees, p.UnknownFrees, p.Missed}, when)
}

// Scenario: what llama.cpp's pool does: memory is mapped, its handle is released at once, and all mappings are unmapped by one call.
// Guarantees: it is live for as long as it is mapped, and nothing is remembered of it then.
func TestMemoryIsLiveForAsLongAsItIsMapped(t *testing.T) {
	var x told
	r := newRig(t, x.options())
	w := r.start(r.Workload, r.Driver)
	r.scan()
	for round := uint64(1); round <= 3; round++ {
		r.do(w, "alloc cuMemCreate 100 4194304", "100 0")
		r.do(w, "map cuMemMap 100 4194304", "100 0")
		r.held(400, (round-1)*100, w, "it is held twice")
		r.do(w, "free cuMemRelease 100", "100 0")
		r.held(400, (round-1)*100, w, "the handles are released")
		r.do(w, "unmap cuMemUnmap 1 2097152", "0 1")
		r.held(400, (round-1)*100, w, "half a mapping is not unmapped")
		r.do(w, "unmap cuMemUnmap 50 4194304", "50 0")
		r.do(w, "unmap cuMemUnmap 1 209715200", "1 0")
		r.held(0, round*100, w, "nothing is left")
		r.eventually("it is told", func() bool { c, _ := x.last(w.PID()); return c.Live == 0 })
		assert.Zero(t, r.entries())
	}
	// The other way round, as PyTorch's segments do.
	r.do(w, "alloc cuMemCreate 10 4194304", "10 0")
	r.do(w, "map cuMemMap 10 4194304", "10 0")
	r.do(w, "unmap cuMemUnmap 10 4194304", "10 0")
	r.held(40, 300, w, "the handles are there")
	r.do(w, "free cuMemRelease 10", "10 0")
	r.held(0, 310, w, "nothing is left")
	r.do(w, "alloc cuMemCreateHost 10 4194304", "10 0")
	r.do(w, "map cuMemMap 10 4194304", "10 0")
	r.do(w, "free cuMemRelease 10", "10 0")
	r.held(0, 310, w, "it is the host's")
	require.NoError(t, w.Kill())
	r.scan()
	assert.Zero(t, r.entries())
	assert.Equal(t, Drops{}, r.Drops())
}

// Scenario: what NCCL does: a buffer is found by its address, and its handle so retained is released beside that of before; others' buffers
// are imported, and one for multicast is made.
// Guarantees: no release of a handle that was retained or imported is taken for one of what is not known, nor for the end of the memory.
func TestAHandleThatIsRetainedOrImportedIsKnown(t *testing.T) {
	r := newRig(t, Options{})
	w := r.start(r.Workload, r.Driver)
	r.scan()
	r.do(w, "alloc cuMemCreate 1 4194304", "1 0")
	r.do(w, "map cuMemMap 1 4194304", "1 0")
	r.do(w, "alloc cuMemRetainAllocationHandle 3 105553116266496", "3 0")
	r.do(w, "free cuMemRelease 3", "3 0")
	r.held(4, 0, w, "it is held by its creator and a mapping")
	r.do(w, "free cuMemRelease 1", "1 0")
	r.held(4, 0, w, "it is mapped")
	r.do(w, "alloc cuMemRetainAllocationHandle 1 105553116266496", "1 0")
	r.do(w, "unmap cuMemUnmap 1 4194304", "1 0")
	r.held(4, 0, w, "it is retained")
	r.do(w, "free cuMemRelease 1", "1 0")
	r.held(0, 1, w, "nobody holds it")
	for alloc, free := range map[string]string{
		"cuMemImportFromShareableHandle": "cuMemRelease", "cuMulticastCreate": "cuMemRelease", "cuMemPoolImportPointer": "cuMemFreeAsync",
	} {
		r.do(w, "alloc "+alloc+" 5 0", "5 0")
		if free == "cuMemRelease" {
			r.do(w, "map cuMemMap 5 4194304", "5 0")
		}
		r.do(w, "free "+free+" 5", "5 0")
		if free == "cuMemRelease" {
			r.do(w, "unmap cuMemUnmap 1 20971520", "1 0")
		}
		r.held(0, 1, w, alloc+" is another process's memory")
	}
	assert.Zero(t, r.entries())
	assert.Equal(t, Drops{}, r.Drops())
}

// Guarantees: of handles and mappings of before the probes came, what is given back is counted as unknown, and makes nothing negative.
func TestWhatWasMappedBeforeIsUnknown(t *testing.T) {
	r := newRig(t, Options{})
	w := r.start(r.Workload, r.Driver)
	r.do(w, "alloc cuMemCreate 4 4194304", "4 0")
	r.do(w, "map cuMemMap 4 4194304", "4 0")
	r.do(w, "free cuMemRelease 4", "4 0")
	r.scan()
	r.do(w, "alloc cuMemCreate 1 4194304", "1 0")
	r.do(w, "map cuMemMap 1 4194304", "1 0")
	r.do(w, "free cuMemRelease 1", "1 0")
	r.do(w, "alloc cuMemRetainAllocationHandle 1 105553116266496", "1 0")
	r.do(w, "free cuMemRelease 1", "1 0")
	p := r.process(w)
	assert.Equal(t, []uint64{4 << 20, 0, 0}, []uint64{p.Live, p.Frees, p.UnknownFrees})
	r.do(w, "unmap cuMemUnmap 1 20971520", "1 0")
	p = r.process(w)
	assert.Equal(t, []uint64{0, 1, 1}, []uint64{p.Live, p.Frees, p.UnknownFrees})
	assert.Zero(t, r.entries())
}

func TestAMappingForWhichThereIsNoRoomIsMissed(t *testing.T) {
	r := newRig(t, Options{MaxEntries: 8})
	w := r.start(r.Workload, r.Driver)
	r.scan()
	r.do(w, "alloc cuMemCreate 4 4194304", "4 0")
	r.do(w, "map cuMemMap 4 4194304", "4 0")
	p := r.process(w)
	assert.Equal(t, []uint64{16 << 20, 4, 1}, []uint64{p.Live, p.Allocations, p.Missed})
	assert.Equal(t, Drops{Live: 1}, r.Drops())
}
