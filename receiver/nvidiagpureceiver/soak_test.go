// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu/fakegputest"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
)

// scrapes is how long the soak is.
var scrapes = flag.Int("scrapes", 2000, "scrapes of the soak")

const (
	soakGPUs, soakProcesses = 8, 20
	churnEvery              = 25      // scrapes between two changes of the processes
	mayGrow                 = 4 << 20 // bytes of resident memory
	mayHold                 = 1 + 1 + 2*(soakGPUs+4)
)

// Report 15 (dcgm-exporter#536, #702): resident memory grows to 512 MiB and beyond.
//
// Scenario: all of the receiver on the fake NVML and a fake /proc, by both sets of names: 8 GPUs with 20 processes each, which come and
// go, of some of which /proc knows nothing, and of some of which the PID is given anew; now and then a GPU is lost and comes back, one is
// divided otherwise, Xids happen, and all handles are given back.
// Guarantees: resident memory is flat after the first tenth; no handle, and no file of /proc, stays open; every process is told in every
// scrape, named or not; no series has two points of one instant; no Xid is missed.
func TestReport15TheWholeReceiverTakesAsMuchAfterManyScrapes(t *testing.T) {
	s := newSoak(t)
	var early int
	for i := range *scrapes {
		if i%churnEvery == 0 {
			s.lost = 0
			s.world.Rules = nil
			s.churn()
			if i%(8*churnEvery) == 0 {
				s.disturb(i / churnEvery / 8)
			}
			fakegputest.Change(t, s.world)
		}
		s.scrapeAndCheck(i)
		switch i {
		case *scrapes / 10:
			early = resident(t)
		case *scrapes - 1:
			late := resident(t)
			t.Logf("%d scrapes: resident %d KiB after a tenth, %d KiB at the end; %d handles, %d processes remembered, %d Xids, %d named of %d processes told",
				*scrapes, early>>10, late>>10, s.held(), s.resolver.Len(), s.xids, s.named, s.processes)
			assert.LessOrEqual(t, late, early+mayGrow)
		}
	}
	require.Eventually(t, func() bool { s.scrapeAndCheck(0); return s.told == s.xids }, time.Minute, time.Millisecond)
	assert.Positive(t, s.named)
	assert.Less(t, s.named, s.processes)
	s.resolver.Close()
	assert.Equal(t, s.files, openFiles(t), "files of /proc")
}

// soak is a receiver whose world never rests.
type soak struct {
	*fakeRig
	resolver   *workload.Resolver
	proc       string
	random     *rand.Rand
	pid        uint32
	start      int
	lost       int // GPUs
	xids, told int
	processes  int64 // points of them
	named      int64
	inThis     int // scrape
	look       bool
	points     map[string]bool
	files      int
}

func newSoak(t *testing.T) *soak {
	world := fakegpu.Server(soakGPUs, soakProcesses, 1000)
	divided := &world.GPUs[soakGPUs-1]
	divided.Set("mig.current", 1)
	divided.Instances = fakegpu.H100MIG().GPUs[0].Instances
	for i := range divided.Processes {
		divided.Processes[i].GPUInstance, divided.Processes[i].ComputeInstance = 2, 0
	}
	s := &soak{proc: t.TempDir(), random: rand.New(rand.NewPCG(1, 2)), pid: 1 << 20}
	s.fakeRig = onFakes(t, world, func(cfg *Config) {
		cfg.DCGMExporterNames, cfg.ProcRoot, cfg.MaxProcesses, cfg.ReleaseWindow = true, s.proc, 2*soakGPUs*soakProcesses, time.Minute
	})
	s.files = openFiles(t)
	s.quiet()
	s.findOwners()
	s.resolver = s.engine.resolver
	var err error
	s.engine.metrics, err = consumer.NewMetrics(s.takeMetrics)
	require.NoError(t, err)
	s.engine.logs, err = consumer.NewLogs(s.takeLogs)
	require.NoError(t, err)
	return s
}

// churn ends a quarter of the processes and starts as many: most with another PID, some with that of one that has just ended.
func (s *soak) churn() {
	for g := range s.world.GPUs {
		for i := range s.world.GPUs[g].Processes {
			p := &s.world.GPUs[g].Processes[i]
			if s.random.IntN(4) != 0 {
				continue
			}
			s.ends(p.PID)
			if s.random.IntN(4) != 0 {
				s.pid++
				p.PID = s.pid
			}
			p.Memory = s.random.Uint64N(1 << 30)
			if s.pid%3 != 0 {
				s.begins(p.PID)
			}
		}
	}
}

func (s *soak) begins(pid uint32) {
	folder := filepath.Join(s.proc, fmt.Sprint(pid))
	s.start++
	require.NoError(s.t, os.Mkdir(folder, 0o700))
	for name, content := range map[string]string{
		"comm": fmt.Sprintf("vllm-%d\n", pid%5), "stat": fmt.Sprintf("%d (vllm) S%s %d", pid, strings.Repeat(" 1", 18), s.start),
		"cgroup": fmt.Sprintf("0::/system.slice/docker-%064x.scope\n", pid%7),
	} {
		require.NoError(s.t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
}

// ends ends a process, if /proc has it: whoever holds its file reads nothing any more, as of a process that is gone.
func (s *soak) ends(pid uint32) {
	folder := filepath.Join(s.proc, fmt.Sprint(pid))
	if os.Truncate(filepath.Join(folder, "comm"), 0) == nil {
		require.NoError(s.t, os.RemoveAll(folder))
	}
}

// disturb makes something happen that is not everyday.
func (s *soak) disturb(turn int) {
	divided := &s.world.GPUs[soakGPUs-1]
	switch turn % 4 {
	case 0: // of a GPU that is never lost
		require.Eventually(s.t, func() bool { s.step(s.t.Context()); s.outbox.Send(s.t.Context()); return s.told == s.xids }, time.Minute, time.Millisecond)
		s.world.Events = s.world.Events[max(0, len(s.world.Events)-1):]
		s.world.Xid(soakGPUs-1, 31)
		s.world.Xid(soakGPUs-1, 31)
		s.xids += 2
	case 1:
		s.random.Shuffle(len(divided.Instances), func(i, j int) {
			divided.Instances[i], divided.Instances[j] = divided.Instances[j], divided.Instances[i]
		})
	case 2:
		s.release()
		s.send(s.t.Context())
		assert.Zero(s.t, s.held())
		s.clock = s.clock.Add(s.cfg.ReleaseWindow)
	case 3:
		s.world.Fail("*", s.random.IntN(soakGPUs-1), 15)
		s.lost = 1
	}
}

// scrapeAndCheck scrapes, and looks at what came.
func (s *soak) scrapeAndCheck(i int) {
	s.inThis, s.look = 0, i%53 == 0
	if s.look {
		s.points = map[string]bool{}
		assert.LessOrEqual(s.t, s.held(), mayHold)
	}
	wait := s.step(s.t.Context())
	s.send(s.t.Context())
	s.outbox.Send(s.t.Context())
	s.clock = s.clock.Add(wait)
	if want := (soakGPUs - s.lost) * soakProcesses; s.inThis != want {
		s.t.Fatalf("scrape %d: %d processes, not %d; %s", i, s.inThis, want, s.health.Text())
	}
}

func (s *soak) takeMetrics(_ context.Context, md pmetric.Metrics) error {
	each(md, func(m pmetric.Metric, p pmetric.NumberDataPoint) {
		if m.Name() == "nvidia.gpu.process.memory.usage" && !p.Flags().NoRecordedValue() {
			s.inThis++
			s.processes++
			if _, ok := p.Attributes().Get("process.executable.name"); ok {
				s.named++
			}
		}
		if s.look {
			series := fmt.Sprint(m.Name(), p.Attributes().AsRaw(), p.Timestamp())
			if s.points[series] {
				s.t.Error("twice at an instant: ", series)
			}
			s.points[series] = true
		}
	})
	return nil
}

func (s *soak) takeLogs(_ context.Context, ld plog.Logs) error {
	for _, rl := range ld.ResourceLogs().All() {
		for _, r := range rl.ScopeLogs().At(0).LogRecords().All() {
			if r.EventName() == eventXid {
				s.told++
			}
		}
	}
	return nil
}

// held is how many handles the library has given out.
func (s *soak) held() int {
	stats := fakegputest.Stats(s.t)
	return int(stats.Initialised + stats.EventSets + stats.GPMSamples)
}

// resident is what this process has in memory of its own, after all that is garbage was given back.
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

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(files)
}
