// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu/fakegputest"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// scrapes is how long the soak is; make nightly has 1,000,000.
var scrapes = flag.Int("scrapes", 50_000, "readings of the soak")

const (
	churnEvery = 25              // readings between two changes of the processes
	mayGrow    = 2 << 20         // bytes of resident memory: that a page or two are kept is no leak
	mayHold    = 1 + 1 + 2*(8+4) // the library, the set of events, two samples of each GPU and instance
)

// Report 15 (dcgm-exporter#536, #702): resident memory grows to 512 MiB and beyond.
//
// Scenario: 8 GPUs with 20 processes each, which come and go; now and then a GPU is lost and comes back, one is divided
// otherwise, Xids happen, and all handles are given back. Guarantees: resident memory is flat after the first tenth, and no
// handle, event set or sample stays open.
func TestReport15AThousandScrapesTakeAsMuchAsTen(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := start(t, fakegpu.Server(8, 20, 1000))
	r.patience = time.Millisecond // a GPU that is lost is looked for a thousand times, and each waits as long
	divide(&r.world.GPUs[7])
	r.change()
	often, seldom := groups(gpu.Cheap, gpu.PerProcess), groups(gpu.Cheap, gpu.PerProcess, gpu.Expensive)
	var early, xids int
	for i := range *scrapes {
		if i%churnEvery == 0 {
			churn(r.world, random)
			more := 0
			if i/churnEvery%20 == 0 {
				more = disturb(r, random, i/churnEvery/20)
			}
			require.NoError(t, r.world.Write(os.Getenv(fakegpu.Variable)))
			if xids += more; more > 0 { // before a GPU is lost: then nobody tells them
				require.Len(t, r.told(xids), xids)
			}
		}
		r.later(time.Second)
		if r.want = often; i%6 == 0 {
			r.want = seldom
		}
		if err := r.tryRead(); err != nil {
			t.Fatal(i, err)
		}
		check(t, r)
		if i%1000 == 0 {
			assert.LessOrEqual(t, held(t), mayHold)
		}
		switch i {
		case *scrapes / 10:
			early = resident(t)
		case *scrapes - 1:
			late := resident(t)
			t.Logf("%d readings: resident %d KiB after a tenth, %d KiB at the end; %d handles, %d Xids", *scrapes, early>>10, late>>10, held(t), xids)
			assert.LessOrEqual(t, late, early+mayGrow)
		}
	}
	assert.Len(t, r.told(xids), xids)
}

// check looks at what must be in every reading.
func check(t *testing.T, r *rig) {
	t.Helper()
	gpus := 0
	for _, d := range r.snapshot.Devices {
		if d.MIG() {
			continue
		}
		gpus++
		if d.State != gpu.Lost && (!d.Known || !d.Has(gpu.MemoryUsage)) {
			t.Fatalf("%s: known %t, memory %t", d.UUID, d.Known, d.Has(gpu.MemoryUsage))
		}
	}
	if gpus != 8 {
		t.Fatal("GPUs: ", gpus)
	}
}

// churn ends a quarter of the processes and starts as many.
func churn(world *fakegpu.Scenario, random *rand.Rand) {
	for g := range world.GPUs {
		for p := range world.GPUs[g].Processes {
			if random.IntN(4) == 0 {
				world.GPUs[g].Processes[p].PID = 1000 + random.Uint32N(1<<21)
				world.GPUs[g].Processes[p].Memory = random.Uint64N(1 << 30)
			}
		}
	}
}

// divide makes instances of a GPU.
func divide(g *fakegpu.GPU) {
	parts := fakegpu.H100MIG().GPUs[0]
	g.Set("mig.current", 1)
	g.Instances = parts.Instances
	for i := range g.Processes {
		g.Processes[i].GPUInstance, g.Processes[i].ComputeInstance = 2, 0
	}
}

// disturb makes something happen that is not everyday, and returns how many Xids that are.
func disturb(r *rig, random *rand.Rand, turn int) (xids int) {
	r.world.Rules = nil
	g := &r.world.GPUs[7]
	switch turn % 4 {
	case 0:
		r.world.Fail("*", random.IntN(7), 15)
		r.later(lastReopening)
	case 1:
		random.Shuffle(len(g.Instances), func(i, j int) { g.Instances[i], g.Instances[j] = g.Instances[j], g.Instances[i] })
	case 2:
		require.NoError(r.t, r.Close())
		if s := fakegputest.Stats(r.t); s.Initialised+s.EventSets+s.GPMSamples != 0 {
			r.t.Fatalf("open after the closing: %+v", s)
		}
		require.NoError(r.t, r.Open(r.t.Context(), r.happened))
	case 3: // of a GPU that is never lost
		r.world.Events = r.world.Events[max(0, len(r.world.Events)-1):]
		r.world.Xid(7, 31)
		r.world.Xid(7, 31)
		return 2
	}
	return 0
}

// held is how many handles the library has given out.
func held(t *testing.T) int {
	t.Helper()
	s := fakegputest.Stats(t)
	return int(s.Initialised + s.EventSets + s.GPMSamples)
}

// resident is what this process has in memory of its own, after all that is garbage was given back. Pages of files are not its own: the
// kernel takes them when it is short, and gives them back when they are used.
func resident(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var size, all, shared int
	_, err = fmt.Sscan(string(text), &size, &all, &shared)
	require.NoError(t, err)
	return (all - shared) * os.Getpagesize()
}
