// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakecuda"
)

// told records what Changed and Gone say.
type told struct {
	sync.Mutex
	changes map[int][]Change
	gone    map[int]int
}

func (x *told) options() Options {
	x.changes, x.gone = map[int][]Change{}, map[int]int{}
	return Options{
		Changed: func(c Change) {
			x.Lock()
			defer x.Unlock()
			x.changes[c.PID] = append(x.changes[c.PID], c)
		},
		Gone: func(pid int, _ uint64) {
			x.Lock()
			defer x.Unlock()
			x.gone[pid]++
		},
	}
}

func (x *told) last(pid int) (Change, int) {
	x.Lock()
	defer x.Unlock()
	all := x.changes[pid]
	if len(all) == 0 {
		return Change{}, x.gone[pid]
	}
	return all[len(all)-1], x.gone[pid]
}

// entries is how many live allocations the kernel remembers.
func (r *rig) entries() (n int) {
	r.Helper()
	require.NoError(r, newBatch[countersKey, countersAllocation]().each(r.kernel.Live, func(countersKey, *countersAllocation) { n++ }))
	return n
}

// Guarantees: a process that is killed holds nothing, at once, and its last counters are read once.
func TestAKilledProcessReleasesEverything(t *testing.T) {
	var x told
	r := newRig(t, x.options())
	w := r.start(r.Workload, r.Runtime)
	other := r.start(r.Workload, r.Runtime)
	r.scan()
	r.do(w, "alloc cudaMalloc 2000 4096", "2000 0")
	r.do(other, "alloc cudaMalloc 10 4096", "10 0")
	assert.Equal(t, 2010, r.entries())
	start := r.process(w).StartTime
	require.NoError(t, w.Kill())
	r.eventually("it is told", func() bool { c, gone := x.last(w.PID()); return c.Live == 0 && gone == 1 })
	c, _ := x.last(w.PID())
	assert.Equal(t, start, c.StartTime)
	p := r.process(w)
	assert.True(t, p.Ended)
	assert.Equal(t, []uint64{0, 2000 * 4096, 2000 * 4096, 2000, 0}, []uint64{p.Live, p.Allocated, p.Released, p.Allocations, p.Frees})
	r.scan()
	assert.Equal(t, 10, r.entries(), "what it held is not remembered")
	assert.NotContains(t, r.read(), w.PID())
	assert.Equal(t, uint64(10*4096), r.process(other).Live)
	_, gone := x.last(w.PID())
	assert.Equal(t, 1, gone, "told once")
}

// Scenario: the kernel cannot tell that a process has ended, since the ring is full.
// Guarantees: the reading that sees it has it told, once, while who is told may wait for who reads.
func TestAnEndThatTheKernelCouldNotTellIsTold(t *testing.T) {
	var x told
	r := newRig(t, x.options())
	require.NoError(t, r.kernel.Processes.Put(uint32(7), &countersProcess{Pid: 99, Start: 5, Ended: 1}))
	x.Lock() // as a reader that is told at the same time might
	assert.True(t, r.read()[99].Ended)
	x.Unlock()
	r.eventually("it is told", func() bool { _, gone := x.last(99); return gone == 1 })
	assert.NotContains(t, r.read(), 99)
	r.read()
	_, gone := x.last(99)
	assert.Equal(t, 1, gone)
	assert.Empty(t, r.listener.claimed)
}

// Guarantees: the end of processes can be told without their changes.
func TestTheEndAloneIsTold(t *testing.T) {
	var x told
	opts := x.options()
	opts.Changed = nil
	r := newRig(t, opts)
	w := r.start(r.Workload, r.Driver)
	r.scan()
	r.do(w, "churn cuMemAlloc_v2 cuMemFree_v2 1000 4096", "1000 0")
	assert.Zero(t, r.process(w).Live)
	require.NoError(t, w.Kill())
	r.eventually("it is told", func() bool { _, gone := x.last(w.PID()); return gone == 1 })
	assert.True(t, r.process(w).Ended)
}

// Guarantees: the start time is the one of /proc, by which a process and its successor are told apart.
func TestTheStartTimeIsThatOfProc(t *testing.T) {
	r := newRig(t, Options{})
	w := r.start(r.Workload, r.Runtime)
	r.scan()
	r.do(w, "alloc cudaMalloc 1 1", "1 0")
	stat, err := r.scanner.read(w.PID(), "stat")
	require.NoError(t, err)
	words := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // after the name in parentheses, which is field 2
	assert.Equal(t, words[22-3], strconv.FormatUint(r.process(w).StartTime, 10))
}

// Scenario: the first thread of a process ends, and others go on.
// Guarantees: the process is counted until the last one has ended.
func TestAProcessLastsAsLongAsItsLastThread(t *testing.T) {
	r := newRig(t, Options{})
	w := r.start(r.Workload, r.Driver)
	r.scan()
	r.do(w, "alloc cuMemAlloc_v2 10 4096", "10 0")
	require.NoError(t, w.Send("retire"))
	r.do(w, "alloc cuMemAlloc_v2 10 4096", "10 0")
	assert.Equal(t, 1, r.scan().Files)
	r.do(w, "free cuMemFree_v2 5", "5 0")
	p := r.process(w)
	assert.Equal(t, []any{false, uint64(15 * 4096), uint64(20), uint64(5)}, []any{p.Ended, p.Live, p.Allocations, p.Frees})
	require.NoError(t, w.Kill())
	assert.True(t, r.process(w).Ended)
	assert.Zero(t, r.scan().Files)
}

// Guarantees: a child has nothing of its parent's, and what it allocates is its own.
func TestAChildStartsWithNothing(t *testing.T) {
	r := newRig(t, Options{})
	w := r.start(r.Workload, r.Runtime)
	r.scan()
	r.do(w, "alloc cudaMalloc 10 4096", "10 0")
	child, err := w.Do("fork")
	require.NoError(t, err)
	pid, err := strconv.Atoi(child)
	require.NoError(t, err)
	r.do(w, "free cudaFree 1", "1 0") // the parent's, as the child sees it
	r.do(w, "alloc cudaMalloc 2 512", "2 0")
	all := r.read()
	assert.Equal(t, []uint64{1024, 2, 0, 1}, []uint64{all[pid].Live, all[pid].Allocations, all[pid].Frees, all[pid].UnknownFrees})
	r.do(w, "exit", "")
	r.do(w, "free cudaFree 10", "10 0")
	p := r.process(w)
	assert.Equal(t, []uint64{0, 10, 10, 0}, []uint64{p.Live, p.Allocations, p.Frees, p.UnknownFrees})
}

// Guarantees: a program that executes another one holds nothing any more, and the next one starts from nothing.
func TestExecReleasesEverything(t *testing.T) {
	var x told
	r := newRig(t, x.options())
	w := r.start(r.Workload, r.Runtime)
	r.scan()
	r.do(w, "alloc cudaMalloc 10 4096", "10 0")
	before := r.process(w)
	r.do(w, "exec", "")
	r.do(w, "load "+r.Runtime, "")
	r.do(w, "alloc cudaMalloc 1 512", "1 0")
	var old, now Process
	require.NoError(t, r.Read(func(p *Process) {
		if p.ID == before.ID {
			old = *p
		} else if p.PID == w.PID() {
			now = *p
		}
	}))
	assert.Equal(t, []any{true, uint64(0), uint64(10 * 4096)}, []any{old.Ended, old.Live, old.Released})
	assert.Equal(t, []any{false, uint64(512), uint64(1)}, []any{now.Ended, now.Live, now.Allocations})
	assert.Equal(t, before.StartTime, now.StartTime)
	r.scan()
	assert.Equal(t, 1, r.entries())
	r.eventually("both are told", func() bool { c, gone := x.last(w.PID()); return c.Live == 512 && gone == 1 })
}

// Guarantees: what was allocated before the probes came is unknown when it is freed, and makes nothing negative.
func TestALateStarterIsFoundAndWhatWasBeforeIsUnknown(t *testing.T) {
	r := newRig(t, Options{})
	assert.Zero(t, r.scan().Files)
	w := r.start(r.Workload)
	assert.Zero(t, r.scan().Attached, "it has loaded nothing")
	r.do(w, "load "+r.Runtime, "")
	r.do(w, "alloc cudaMalloc 10 4096", "10 0")
	got := r.scan()
	assert.Equal(t, 2, got.Attached, "the driver came with the first call")
	assert.Equal(t, []int{1, 1}, []int{got.Processes, got.Late})
	r.do(w, "alloc cudaMalloc 5 512", "5 0")
	r.do(w, "free cudaFree 15", "15 0")
	p := r.process(w)
	assert.Equal(t, []uint64{0, 5, 5, 10}, []uint64{p.Live, p.Allocations, p.Frees, p.UnknownFrees})

	another := r.start(r.Workload, r.Runtime)
	r.do(another, "alloc cudaMalloc 10 4096", "10 0")
	assert.Equal(t, uint64(10*4096), r.process(another).Live, "the probes are in the file already")
	got = r.scan()
	assert.Equal(t, []int{2, 1}, []int{got.Processes, got.Late})
	require.NoError(t, w.Kill())
	got = r.scan()
	assert.Equal(t, []int{1, 0}, []int{got.Processes, got.Late})
}

// Guarantees: a change is told within milliseconds, and the last of many always.
func TestTheLastChangeIsTold(t *testing.T) {
	var x told
	r := newRig(t, x.options())
	w := r.start(r.Workload, r.Runtime)
	r.scan()
	var slowest time.Duration
	begin := time.Now()
	for i := range 50 {
		n := 1 + i*37%200
		before := time.Now()
		r.do(w, fmt.Sprintf("alloc cudaMalloc %d 4096", n), fmt.Sprintf("%d 0", n))
		done, want := time.Now(), r.process(w).Live
		r.eventually("it is told", func() bool { c, _ := x.last(w.PID()); return c.Live == want })
		c, _ := x.last(w.PID())
		assert.LessOrEqual(t, time.Unix(0, c.At), done.Add(time.Millisecond), "the change was before the answer")
		assert.GreaterOrEqual(t, time.Unix(0, c.At), before.Add(-time.Millisecond), "and after the question")
		slowest = max(slowest, time.Since(done))
	}
	x.Lock()
	defer x.Unlock()
	assert.LessOrEqual(t, len(x.changes[w.PID()]), 1+int(time.Since(begin)/window), "not each of 5000 calls is told, but one in a window at most")
	t.Logf("told at the latest %v after", slowest)
	assert.Zero(t, r.Drops().Ring)
}

// Guarantees: no probe and no program stays behind, and the processes go on.
func TestProbesDetachCleanly(t *testing.T) {
	r := newRig(t, Options{Launches: true, Changed: func(Change) {}})
	mine := map[ebpf.ProgramID]bool{}
	for _, program := range []*ebpf.Program{r.kernel.Enter, r.kernel.Leave, r.kernel.LaunchEnter, r.kernel.LaunchLeave, r.kernel.ProcessExit, r.kernel.ProcessExec} {
		info, err := program.Info()
		require.NoError(t, err)
		id, ok := info.ID()
		require.True(t, ok)
		mine[id] = true
	}
	links := func() (n int) { // others may probe, too
		var it link.Iterator
		for it.Next() {
			if info, err := it.Link.Info(); err == nil && mine[info.Program] {
				n++
			}
		}
		require.NoError(t, it.Err())
		return n
	}
	w := r.start(r.Workload, r.Runtime)
	r.do(w, "alloc cudaMalloc 1 1", "1 0") // and so the driver
	r.scan()
	assert.Equal(t, 2+2*4, links(), "two of the kernel's, and four for each library")
	require.NoError(t, w.Send("churn cudaMalloc cudaFree 20000 4096 4"))
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, r.Close())
	assert.Zero(t, links())
	answer, err := w.Answer()
	require.NoError(t, err)
	assert.Equal(t, "80000 0", answer)
	require.NoError(t, w.Close())
	_, err = r.Scan()
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, r.Read(func(*Process) {}), ErrClosed)
	assert.Zero(t, r.Drops())
}

// Guarantees: a library that nobody maps any more is left alone, and attached to again when it comes back.
func TestAFileThatNobodyMapsIsDetached(t *testing.T) {
	r := newRig(t, Options{})
	w := r.start(r.Workload, r.Driver)
	assert.Equal(t, 1, r.scan().Files)
	r.do(w, "unload", "")
	got := r.scan()
	assert.Equal(t, []int{0, 1, 0}, []int{got.Files, got.Detached, got.Processes})
	r.do(w, "load "+r.Driver, "")
	assert.Equal(t, 1, r.scan().Attached)
	r.do(w, "alloc cuMemAlloc_v2 2 4096", "2 0")
	assert.Equal(t, uint64(8192), r.process(w).Live)
	require.NoError(t, w.Kill())
	assert.Equal(t, 1, r.scan().Detached)
}

// Scenario: a context goes with all that is in it, and its addresses are given again; here, because the driver starts anew.
// Guarantees: what an address was before is released.
func TestAnAddressThatIsGivenAgainWithoutAFreeIsReleased(t *testing.T) {
	r := newRig(t, Options{})
	w := r.start(r.Workload, r.Driver)
	r.scan()
	r.do(w, "alloc cuMemAlloc_v2 5 4096", "5 0")
	r.do(w, "unload", "")
	r.do(w, "load "+r.Driver, "")
	r.do(w, "alloc cuMemAlloc_v2 3 1000", "3 0")
	p := r.process(w)
	assert.Equal(t, []uint64{2*4096 + 3*1000, 8, 0, 3 * 4096}, []uint64{p.Live, p.Allocations, p.Frees, p.Released})
}

// Guarantees: beyond the limits nothing is counted but the loss, and what is counted is right.
func TestLossesBeyondTheLimitsAreCounted(t *testing.T) {
	r := newRig(t, Options{MaxEntries: 800})
	w := r.start(r.Workload, r.Driver)
	r.scan()
	r.do(w, "alloc cuMemAlloc_v2 900 4096", "900 0")
	p := r.process(w)
	assert.Equal(t, []uint64{700 * 4096, 700, 200}, []uint64{p.Live, p.Allocations, p.Missed}, "an eighth is for others")
	assert.Equal(t, Drops{Live: 200}, r.Drops())
	r.do(w, "free cuMemFree_v2 900", "900 0")
	p = r.process(w)
	assert.Equal(t, []uint64{0, 700, 200, 200}, []uint64{p.Live, p.Frees, p.Missed, p.UnknownFrees})
	assert.Equal(t, Drops{Live: 200, UnknownFrees: 200}, r.Drops())
	r.do(w, "alloc cuMemAlloc_v2 10 4096", "10 0")
	assert.Equal(t, uint64(10*4096), r.process(w).Live, "there is room again")

	small := newRig(t, Options{MaxEntries: 2})
	a, b, c := small.start(r.Workload, r.Driver), small.start(r.Workload, r.Driver), small.start(r.Workload, r.Driver)
	small.scan()
	small.do(a, "alloc cuMemAlloc_v2 1 4096", "1 0")
	small.do(b, "alloc cuMemAlloc_v2 1 4096", "1 0")
	small.do(c, "alloc cuMemAlloc_v2 5 4096", "5 0")
	assert.Len(t, small.read(), 2)
	assert.Equal(t, Drops{Processes: 5}, small.Drops())
	require.NoError(t, a.Kill())
	small.read()
	small.scan()
	small.do(c, "alloc cuMemAlloc_v2 1 4096", "1 0")
	assert.Equal(t, uint64(4096), small.process(c).Live, "one that has ended makes room for another")
}

// Scenario: who is told of changes does nothing with them for seconds, while ten processes allocate as fast as they can.
// Guarantees: what could not be told is counted, counters are exact all the same, and the next change is told.
func TestAFullRingIsCountedAndCostsNoCounter(t *testing.T) {
	var x told
	opts := x.options()
	block := make(chan struct{})
	tell := opts.Changed
	opts.Changed = func(c Change) { <-block; tell(c) }
	r := newRig(t, opts)
	var all []*fakecuda.Workload
	for range 10 {
		all = append(all, r.start(r.Workload, r.Driver))
	}
	r.scan()
	calls := uint64(0)
	for r.Drops().Ring == 0 {
		for _, w := range all {
			require.NoError(t, w.Send("rate cuMemAlloc_v2 cuMemFree_v2 1000 4096 1000"))
		}
		for _, w := range all {
			answer, err := w.Answer()
			require.NoError(t, err)
			require.Equal(t, "1000 0", answer)
		}
		require.Less(t, calls, uint64(100_000), "the ring does not fill")
		calls += 1000
	}
	for _, w := range all {
		p, ok := r.read()[w.PID()]
		require.True(t, ok)
		assert.Equal(t, []uint64{0, calls, calls}, []uint64{p.Live, p.Allocations, p.Frees})
	}
	close(block)
	for _, w := range all {
		r.do(w, "alloc cuMemAlloc_v2 1 4096", "1 0")
	}
	for _, w := range all {
		r.eventually("it is told", func() bool { c, _ := x.last(w.PID()); return c.Live == 4096 })
	}
	t.Logf("%d changes of %d calls could not be told", r.Drops().Ring, 20*calls)
}
