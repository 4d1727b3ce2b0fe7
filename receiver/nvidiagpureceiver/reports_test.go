// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu/fakegputest"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
)

// What users of today's tools have reported, one test each. Where a report is about a driver, the driver is a fake.

// Report 1 (DCGM#199, dcgm-exporter#418): rare samples of utilization up to 4294967295.
// Guarantees: they are dropped and counted, and nothing else is lost.
func TestReport1UtilizationThatCannotBe(t *testing.T) {
	r := onFakes(t, fakegpu.H100(), nil)
	r.world.GPUs[0].Set("utilization.gpu", 4294967295)
	r.change(func(*fakegpu.Scenario) {})
	r.scrape()
	for _, s := range r.series("hw.gpu.utilization") {
		assert.NotContains(t, s, "hw.gpu.task=general")
	}
	assert.Len(t, r.series("hw.power", "hw.energy"), 2)
	assert.Equal(t, int64(1), r.counted("points_refused", "reason")["out_of_range"])
}

// Report 2 (slurm-job-exporter#30, #53): blanks exported as 1.4e14 or 9.2e18; cards that differ fail the whole scrape.
// Guarantees: that point is omitted, of that card, and no other.
func TestReport2BlanksAndCardsThatDiffer(t *testing.T) {
	world := fakegpu.Server(2, 1, 100)
	l40s := fakegpu.L40S().GPUs[0]
	l40s.UUID = "GPU-l40s"
	world.GPUs = append(world.GPUs, l40s)
	world.GPUs[1].SetExact("energy", fakegpu.Blank)
	world.GPUs[1].SetExact("power", fakegpu.Blank)
	r := onFakes(t, world, nil)
	r.scrape()
	assert.Len(t, r.series("hw.power"), 2, "%s", r.series("hw.power"))
	assert.Len(t, r.series("hw.energy"), 2)
	assert.Len(t, r.series("hw.gpu.memory.usage"), 3)
	assert.Len(t, r.series("nvidia.gpu.nvlink.io"), 4, "an L40S has none")
	assert.Len(t, r.series("nvidia.gpu.process.memory.usage"), 4)
	for _, md := range r.metrics.AllMetrics() {
		assert.Less(t, largest(md), 1e15)
	}
	refused := r.counted("points_refused", "reason")
	assert.Equal(t, int64(2), refused["blank"]+refused["out_of_range"])
}

// Report 3 (dcgm-exporter#700): no Xid yet, so no series.
// Guarantees: the codes that mean trouble stand at 0 from the first scrape on.
func TestReport3NoXidYetIsZero(t *testing.T) {
	r := onFakes(t, fakegpu.H100(), nil)
	r.scrape()
	series := r.series("nvidia.gpu.xid")
	assert.Len(t, series, len(gpu.KnownXids))
	for _, s := range series {
		assert.True(t, strings.HasSuffix(s, "} 0"), s)
	}
}

// Scenario: a driver that tells no Xids. Guarantees: that none is heard is no count of 0, and is said once.
func TestReport3NoXidIsHeardIsNotZero(t *testing.T) {
	world := fakegpu.H100()
	const notSupported = 3
	world.Fail("nvmlEventSetCreate", -1, notSupported)
	r := onFakes(t, world, nil)
	r.scrape()
	assert.Empty(t, r.series("nvidia.gpu.xid"))
	assert.NotEmpty(t, r.series("hw.power"))
}

// Report 4 (dcgm-exporter#500, #190): an Xid sticks, and the same code twice is invisible.
// Guarantees: each is counted by its code, and told as a log record; a code that nobody knows, too.
func TestReport4TheSameXidTwiceIsTwo(t *testing.T) {
	r := onFakes(t, fakegpu.H100(), nil)
	r.scrape()
	r.change(func(w *fakegpu.Scenario) { w.Xid(0, 79) })
	r.eventually(1)
	r.change(func(w *fakegpu.Scenario) { w.Xid(0, 79); w.Xid(0, 1234) })
	r.eventually(3)
	r.scrape()
	series := r.series("nvidia.gpu.xid")
	id := r.world.GPUs[0].UUID
	assert.Contains(t, series, "nvidia.gpu.xid{hw.id="+id+",nvidia.xid.code=79} 2")
	assert.Contains(t, series, "nvidia.gpu.xid{hw.id="+id+",nvidia.xid.code=1234} 1")
	assert.Contains(t, series, "nvidia.gpu.xid{hw.id="+id+",nvidia.xid.code=31} 0")
	assert.Equal(t, []string{eventXid, eventXid, eventXid}, r.eventNames())
	rec := r.events()[0]
	assert.Equal(t, "Xid 79: fallen off the bus", rec.Body().Str())
	code, _ := rec.Attributes().Get(gpu.AttributeXid)
	assert.Equal(t, int64(79), code.Int())
	of, _ := rec.Attributes().Get("hw.id")
	assert.Equal(t, id, of.Str())
	model, _ := r.logs.AllLogs()[0].ResourceLogs().At(0).Resource().Attributes().Get("hw.model")
	assert.Equal(t, "NVIDIA H100 80GB HBM3", model.Str())
}

// Report 5 (gpu-monitoring-tools#188): the host engine restarts, and its last values are told for ever, all healthy.
// Guarantees: it is connected to anew; meanwhile nothing is told, series end, and the status says so.
func TestReport5AHostEngineThatRestarts(t *testing.T) {
	r := onFakes(t, fakegpu.H100(), func(cfg *Config) { cfg.Source, cfg.DCGMEndpoint = sourceDCGM, "localhost:5555" })
	r.scrape()
	power := r.series("hw.power")
	require.Len(t, power, 1)

	r.change(func(w *fakegpu.Scenario) {
		w.Rules = []fakegpu.Rule{everywhere(fakegpu.RuleHostEngine, 1), everywhere("dcgmConnect_v2", -21)}
	})
	r.scrape()
	assert.Equal(t, []string{"hw.power{hw.id=" + r.world.GPUs[0].UUID + "} ended"}, r.series("hw.power"))
	assert.Contains(t, r.health.Text(), "the connection to the host engine is not valid")
	r.scrape()
	assert.Empty(t, r.metrics.AllMetrics())

	r.change(func(w *fakegpu.Scenario) { w.Rules = w.Rules[:1] })
	r.scrape()
	assert.Equal(t, power, r.series("hw.power"))
	assert.Empty(t, r.health.Text())

	r.change(func(w *fakegpu.Scenario) { w.Rules[0].Return = 2 })
	r.scrape()
	assert.Equal(t, power, r.series("hw.power"), "one that is back at once costs no scrape")
	assert.Equal(t, int64(2), r.counted("reinitializations", "")[""])
}

// Report 6 (dcgm-exporter#523, gpu-operator#2854): started before the driver, and blind for ever.
// Guarantees: it is tried again, one line says what is missing, and the status is recoverable until it is there.
func TestReport6ADriverThatComesLater(t *testing.T) {
	r := onFakes(t, fakegpu.H100(), nil)
	host := &statuses{Host: componenttest.NewNopHost()}
	r.health.Join(host)
	require.NoError(t, os.Rename(os.Getenv(fakegpu.Variable), os.Getenv(fakegpu.Variable)+".away"))
	fakegpu.Settle()
	for range 3 {
		r.scrape()
		assert.Empty(t, r.metrics.AllMetrics())
	}
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError}, host.all)
	assert.Equal(t, 1, r.console.FilterMessage("no GPU is read; it is tried again").Len())
	assert.Equal(t, map[string]int64{"": 0}, r.counted("connected", ""))

	r.change(func(*fakegpu.Scenario) {})
	r.scrape()
	assert.Len(t, r.series("hw.power"), 1)
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, host.all)
	assert.Equal(t, 1, r.console.FilterMessage("GPUs are read").Len())
	assert.Equal(t, map[string]int64{"": 1}, r.counted("connected", ""))

	late := &statuses{Host: componenttest.NewNopHost()}
	r.health.Join(late)
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusOK}, late.all, "whoever comes later hears how it is")
}

// Report 7 (dcgm-exporter#706, #716): open handles block unbinding, reset and MIG changes.
// Guarantees: a signal gives all of them back for a while; then what is there is taken up, and what was changed is told.
func TestReport7HandlesAreGivenBackOnDemand(t *testing.T) {
	world := fakegpu.Server(2, 1, 100)
	r := onFakes(t, world, func(cfg *Config) { cfg.Source, cfg.ReleaseWindow = sourceAuto, time.Minute })
	r.scrape()
	assert.Equal(t, uint64(1), fakegputest.Stats(t).Initialised)

	r.release()
	r.send(t.Context())
	assert.Zero(t, fakegputest.Stats(t).Initialised)
	assert.Zero(t, fakegputest.Stats(t).EventSets)
	assert.Contains(t, r.health.Text(), "all handles are given back until")
	assert.Equal(t, time.Minute, r.step(t.Context()))
	r.change(func(w *fakegpu.Scenario) { // one is divided, the other taken out
		w.GPUs = fakegpu.H100MIG().GPUs
	})
	r.clock = r.clock.Add(30 * time.Second)
	assert.Equal(t, 30*time.Second, r.step(t.Context()))
	assert.Zero(t, fakegputest.Stats(t).Initialised)
	r.clock = r.clock.Add(30 * time.Second)
	r.scrape()
	assert.Equal(t, []string{eventMIGChanged}, r.eventNames(), "what was taken out on purpose is not lost")
	assert.Len(t, r.series("hw.gpu.memory.usage"), 5)
	assert.Empty(t, r.health.Text())
}

// Guarantees: the signal is SIGUSR1, and the engine listens to it.
func TestReport7TheSignalIsHeard(t *testing.T) {
	r := newRig(t, one, nil)
	r.now = time.Now
	require.NoError(t, r.Start(t.Context(), nil))
	require.Eventually(t, func() bool { return r.own.connected.Load() == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	require.Eventually(t, func() bool { return r.own.connected.Load() == 0 }, time.Minute, time.Millisecond)
	r.stop()
	r.reader.Wait()
	r.others.Wait()
	assert.Equal(t, 1, r.source.closed)
}

// Scenario: the configuration is read anew (SIGHUP) within the window, which makes another receiver of the same id.
// Guarantees: it leaves the GPUs alone until the window is over, says so, and counts the window from the signal.
func TestReport7HandlesStayGivenBackWhenTheConfigurationIsReadAnew(t *testing.T) {
	window := func(cfg *Config) { cfg.ReleaseWindow = time.Minute }
	before := newRig(t, one, window)
	before.scrape()
	before.release()
	after := func(configure func(*Config)) *rig {
		r := newRig(t, one, configure)
		r.set.ID, r.clock = before.set.ID, before.clock.Add(20*time.Second)
		r.keepAsked()
		return r
	}
	r := after(window)
	assert.Contains(t, r.health.Text(), "all handles are given back until")
	assert.Equal(t, 1, r.console.FilterMessage("all handles of GPUs stay given back, as was asked for before the configuration was read anew").Len())
	assert.Equal(t, 40*time.Second, r.step(t.Context()))
	assert.Zero(t, r.source.opened)
	r.clock = r.clock.Add(40 * time.Second)
	r.scrape()
	assert.Equal(t, 1, r.source.opened)
	assert.Empty(t, r.health.Text())

	r = after(func(cfg *Config) { cfg.ReleaseWindow = 10 * time.Second })
	r.scrape()
	assert.Equal(t, 1, r.source.opened, "the window as it is set now is over")
	r = newRig(t, one, func(cfg *Config) { cfg.ReleaseWindow = 1 << 62 }) // of which the clock of the machine is in
	r.set.ID, r.now = before.set.ID, time.Now
	require.NoError(t, r.Start(t.Context(), nil))
	assert.Contains(t, r.health.Text(), "all handles are given back until")
	require.NoError(t, r.Shutdown(t.Context()))
	assert.Zero(t, r.source.opened)

	other := newRig(t, one, window)
	other.clock = before.clock.Add(20 * time.Second)
	other.keepAsked()
	other.scrape()
	assert.Equal(t, 1, other.source.opened, "another receiver was not asked")
}

// Report 8 (go-nvml#75, #21): with several processes, PIDs and memory are scrambled.
// Guarantees: whatever structure the driver writes, what is told of a process is right, or is not told and counted.
func TestReport8ProcessesAreNotScrambled(t *testing.T) {
	world := fakegpu.H100()
	r := onFakes(t, world, nil)
	r.scrape()
	right := r.series("nvidia.gpu.process.memory.usage")
	require.Len(t, right, 3)
	r.change(func(w *fakegpu.Scenario) { w.WideProcesses = true })
	r.scrape()
	alive := slices.DeleteFunc(r.series("nvidia.gpu.process.memory.usage"), func(s string) bool { return strings.HasSuffix(s, " ended") })
	assert.Subset(t, right, alive)
	if len(alive) < len(right) {
		assert.Positive(t, r.counted("points_refused", "reason")["scrambled"])
		assert.Contains(t, r.series("nvidia.gpu.memory.unattributed")[0], "ended", "whose the memory is, is not known")
	}
	r.change(func(w *fakegpu.Scenario) { w.WideProcesses = false })
	r.scrape()
	assert.Equal(t, right, r.series("nvidia.gpu.process.memory.usage"))
}

// Report 9 (dask/distributed#8739, nvtop#256): the utilization of MIG is shown as 0.
// Guarantees: it is absent; what GPM knows of an instance is told.
func TestReport9MIGHasNoUtilization(t *testing.T) {
	r := onFakes(t, fakegpu.H100MIG(), nil)
	require.Eventually(t, func() bool { // GPM compares two samples
		r.scrape()
		return len(r.series("nvidia.gpu.sm.active")) > 0
	}, time.Minute, 10*time.Millisecond)
	assert.Empty(t, r.series("hw.gpu.utilization"))
	assert.Empty(t, r.series("nvidia.gpu.memory_controller.utilization"))
	assert.Empty(t, r.series("nvidia.gpu.process.utilization"))
	assert.Contains(t, r.series("nvidia.gpu.sm.active"), "nvidia.gpu.sm.active{hw.id=MIG-00000000-0000-0000-0000-000000000000} 0.955")
	for _, md := range r.metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			id, _ := rm.Resource().Attributes().Get("hw.id")
			parent, ok := rm.Resource().Attributes().Get("hw.parent")
			if assert.Equal(t, strings.HasPrefix(id.Str(), "MIG-"), ok); ok {
				assert.Equal(t, r.world.GPUs[0].UUID, parent.Str())
			}
		}
	}
}

// Report 10 (nvtop#466, nvitop#208): the memory of a GB10 is NOT_SUPPORTED.
// Guarantees: it is that of the host, and is marked as such; nobody is blamed for what is in use.
func TestReport10UnifiedMemoryIsTheHosts(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "meminfo"), []byte("MemTotal:       125829120 kB\nMemFree:  1 kB\nMemAvailable:   25165824 kB\n"), 0o600))
	r := onFakes(t, fakegpu.GB10(), func(cfg *Config) { cfg.ProcRoot = root })
	r.scrape()
	of := "{hw.id=" + r.world.GPUs[0].UUID + ",nvidia.memory.type=unified} "
	assert.Equal(t, []string{
		"hw.gpu.memory.limit" + of + "128849018880", "hw.gpu.memory.usage" + of + "103079215104", "hw.gpu.memory.utilization" + of + "0.8",
	}, r.series("hw.gpu.memory.limit", "hw.gpu.memory.usage", "hw.gpu.memory.utilization"))
	assert.Empty(t, r.series("nvidia.gpu.memory.unattributed", "nvidia.gpu.memory.reserved"))
	assert.Len(t, r.series("nvidia.gpu.process.memory.usage"), 3)
}

// Report 11 (dcgm-exporter#587, #582): three pods share a GPU, and each gets the value of all.
// Guarantees: each gets what its own processes have.
func TestReport11SharedGPUsAreSplitByProcess(t *testing.T) {
	r := onFakes(t, fakegpu.H100(), nil)
	r.who = named{
		11327: {Executable: "a", Names: workload.Names{Namespace: "x", Pod: "a-0"}}, 11328: {Executable: "b", Names: workload.Names{Namespace: "y", Pod: "b-0"}},
		11345: {Executable: "c", Names: workload.Names{Namespace: "y", Pod: "c-0"}},
	}
	r.scrape()
	id := r.world.GPUs[0].UUID
	assert.Equal(t, []string{
		"nvidia.gpu.process.memory.usage{hw.id=" + id + ",k8s.namespace.name=x,k8s.pod.name=a-0,process.executable.name=a,process.pid=11327} 2690646016",
		"nvidia.gpu.process.memory.usage{hw.id=" + id + ",k8s.namespace.name=y,k8s.pod.name=b-0,process.executable.name=b,process.pid=11328} 1616904192",
		"nvidia.gpu.process.memory.usage{hw.id=" + id + ",k8s.namespace.name=y,k8s.pod.name=c-0,process.executable.name=c,process.pid=11345} 16452157440",
	}, r.series("nvidia.gpu.process.memory.usage"))
	for _, m := range gpu.Metrics {
		for _, s := range r.series(m.Name) {
			assert.Equal(t, m.Process, strings.Contains(s, "k8s.pod.name"), s)
		}
	}
}

// Report 12 (dcgm-exporter#569): GPUs that are idle, or given to nobody, vanish.
// Guarantees: every GPU is there, whoever uses it.
func TestReport12EveryGPUIsThere(t *testing.T) {
	world := fakegpu.Server(8, 0, 100)
	for i := range world.GPUs {
		world.GPUs[i].Set("utilization.gpu", 0)
	}
	r := onFakes(t, world, nil)
	r.scrape()
	assert.Len(t, r.series("hw.gpu.memory.usage"), 8)
	assert.Len(t, r.series("hw.status"), 8*int(gpu.States))
	assert.Len(t, r.series("nvidia.gpu.memory.unattributed"), 8)
	for i := range world.GPUs {
		assert.Contains(t, r.series("hw.gpu.utilization"), "hw.gpu.utilization{hw.gpu.task=general,hw.id="+world.GPUs[i].UUID+"} 0")
	}
}

// Report 13 (DCGM#303): after Xid 31 profiling reads 0 while the GPU is at 100 %.
// Guarantees: it is not told but flagged, and NVML's GPM takes its place, until it is right again.
func TestReport13ProfilingThatReadsZero(t *testing.T) {
	r := onFakes(t, fakegpu.H100(), func(cfg *Config) { cfg.Source = sourceAuto })
	of := "nvidia.gpu.sm.active{hw.id=" + r.world.GPUs[0].UUID + "} "
	r.scrape()
	assert.Equal(t, []string{of + "0.9725"}, r.series("nvidia.gpu.sm.active"))
	var zero []fakegpu.Rule
	for field := 1001; field <= 1012; field++ {
		zero = append(zero, everywhere(fmt.Sprintf("%s%d", fakegpu.RuleField, field), fakegpu.Zero))
	}
	r.change(func(w *fakegpu.Scenario) { w.Rules = zero })
	for range 2 { // that can be a job that has just begun
		r.scrape()
		assert.Equal(t, []string{of + "0"}, r.series("nvidia.gpu.sm.active"))
		assert.Empty(t, r.eventNames())
	}
	r.scrape()
	assert.Equal(t, []string{of + "ended"}, r.series("nvidia.gpu.sm.active"))
	assert.Equal(t, []string{eventProfilingStopped}, r.eventNames())
	assert.Positive(t, r.counted("points_refused", "reason")["implausible"])
	r.change(func(w *fakegpu.Scenario) { w.GPUs[0].Set("gpm.2", 50) })
	require.Eventually(t, func() bool { // GPM compares two samples
		r.scrape()
		return len(r.series("nvidia.gpu.sm.active")) == 1
	}, time.Minute, 10*time.Millisecond)
	assert.Equal(t, []string{of + "0.5"}, r.series("nvidia.gpu.sm.active"))
	r.change(func(w *fakegpu.Scenario) { w.Rules = nil; w.GPUs[0].Set("gpm.2", 75) })
	r.scrape()
	assert.Equal(t, []string{of + "0.75"}, r.series("nvidia.gpu.sm.active"))
	assert.Equal(t, []string{eventProfilingStopped, eventProfilingResumed}, r.eventNames())
}

// Report 14 (dcgm-exporter#348, NVSentinel#195): one GPU is lost.
// Guarantees: its hw.status is failed, its other series end, an event tells it, and the others report on; and when it is back,
// all is as before.
func TestReport14ALostGPU(t *testing.T) {
	r := onFakes(t, fakegpu.Server(3, 1, 100), nil)
	r.scrape()
	r.change(func(w *fakegpu.Scenario) { w.Fail("*", 1, 15) })
	r.scrape()
	lost := r.world.GPUs[1].UUID
	assert.Contains(t, r.series("hw.status"), "hw.status{hw.id="+lost+",hw.state=failed} 1")
	assert.Contains(t, r.series("hw.status"), "hw.status{hw.id="+lost+",hw.state=ok} 0")
	assert.Contains(t, r.series("hw.power"), "hw.power{hw.id="+lost+"} ended")
	power := r.series("hw.power")
	require.Len(t, power, 3)
	for range 3 {
		r.scrape()
		assert.Len(t, r.series("hw.power"), 2)
		assert.Len(t, r.series("nvidia.gpu.process.memory.usage"), 2)
		assert.Contains(t, r.series("hw.status"), "hw.status{hw.id="+lost+",hw.state=failed} 1")
	}
	assert.Equal(t, []string{eventLost}, r.eventNames())
	r.change(func(w *fakegpu.Scenario) { w.Rules = nil })
	r.scrape()
	assert.Len(t, r.series("hw.power"), 3)
	assert.Equal(t, []string{eventLost, eventRecovered}, r.eventNames())
	for _, uuid := range []string{r.world.GPUs[0].UUID, lost} {
		ones := 0
		for _, s := range r.series("hw.status") {
			if strings.Contains(s, uuid) && strings.HasSuffix(s, "} 1") {
				ones++
			}
		}
		assert.Equal(t, 1, ones, "exactly one state")
	}
}

// Report 15 (dcgm-exporter#536, #702): resident memory grows to 512 MiB and beyond.
// Scenario: 20,000 scrapes in which processes, instances, Xids and names of pods never stop changing.
// Guarantees: what is kept is bounded, and the heap is as large as after the first thousand.
func TestReport15MemoryIsBounded(t *testing.T) {
	i := 0
	r := newRig(t, func(s *gpu.Snapshot) {
		s.Driver = fmt.Sprint(i / 1000)
		d := full(s, 0)
		d.Processes = d.Processes[:0]
		for pid := range uint32(20) {
			d.AddProcess(uint32(i)*20 + pid + 1).Memory = uint64(pid)
		}
		d.MIGEnabled = true
		m := s.Add()
		m.UUID, m.Parent = fmt.Sprintf("MIG-%d", i), d.UUID
		m.SetInt(gpu.MemoryUsage, uint64(i))
	}, nil)
	r.quiet()
	scrapes := func(n int) uint64 {
		for range n {
			i++
			r.happened(gpu.Event{Time: int64(i), UUID: "GPU-0", Code: uint64(i)})
			r.clock = r.clock.Add(r.step(t.Context()))
			r.send(t.Context())
			r.source.wanted = nil
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, after := scrapes(1000), scrapes(19_000)
	assert.Less(t, r.book.Len(), 3)
	assert.Less(t, len(r.writer.shown), 3)
	t.Logf("heap: %d kB after 1,000 scrapes, %d kB after 20,000", before>>10, after>>10)
	assert.Less(t, int64(after)-int64(before), int64(4<<20))
}

// Report 16 (VisEdit#5, vllm#42017): memory that no visible process uses.
// Guarantees: it is a series of its own: used − Σ processes − reserved, never negative, absent where it cannot be known.
func TestReport16MemoryOfNoVisibleProcess(t *testing.T) {
	r := onFakes(t, fakegpu.H100(), nil)
	of := "nvidia.gpu.memory.unattributed{hw.id=" + r.world.GPUs[0].UUID + "} "
	r.scrape()
	assert.Equal(t, []string{of + "20971520"}, r.series("nvidia.gpu.memory.unattributed"), "20780679168 − 2690646016 − 1616904192 − 16452157440")
	r.change(func(w *fakegpu.Scenario) { w.GPUs[0].Processes = w.GPUs[0].Processes[:2] })
	r.scrape()
	assert.Equal(t, []string{of + "16473128960"}, r.series("nvidia.gpu.memory.unattributed"))
	r.change(func(w *fakegpu.Scenario) { w.GPUs[0].Processes[0].Memory = 90 << 30 })
	r.scrape()
	assert.Contains(t, []string{of + "0", of + "ended"}, r.series("nvidia.gpu.memory.unattributed")[0])
	r.change(func(w *fakegpu.Scenario) { w.GPUs[0].Processes[0].Memory = fakegpu.Blank })
	r.scrape()
	for _, s := range r.series("nvidia.gpu.memory.unattributed") {
		assert.Equal(t, of+"ended", s)
	}
}

// Guarantees: another driver is told, and read without a restart.
func TestADriverThatIsReplacedIsTold(t *testing.T) {
	r := onFakes(t, fakegpu.H100(), nil)
	r.scrape()
	r.change(func(w *fakegpu.Scenario) { w.Rules = []fakegpu.Rule{everywhere("*", 9)} })
	r.scrape()
	assert.Contains(t, r.health.Text(), gpu.ErrUnavailable.Error())
	r.change(func(w *fakegpu.Scenario) { w.Rules, w.Driver = nil, "600.10" })
	r.scrape()
	assert.Len(t, r.series("hw.power"), 1)
	require.Equal(t, []string{eventDriverChanged}, r.eventNames())
	to, _ := r.events()[0].Attributes().Get("hw.driver_version")
	from, _ := r.events()[0].Attributes().Get("nvidia.driver.previous_version")
	assert.Equal(t, "600.10", to.Str())
	assert.Equal(t, "590.48.01", from.Str())
}

// statuses is a host that remembers the status of the component.
type statuses struct {
	component.Host
	all []componentstatus.Status
}

func (s *statuses) Report(event *componentstatus.Event) { s.all = append(s.all, event.Status()) }

// Guarantees: whoever asked for the handles hears it where a library has not given them all back.
func TestHandlesThatMayBeHeldYetAreSaidToBe(t *testing.T) {
	r := newRig(t, one, nil)
	r.scrape()
	r.source.closing = errors.New("the host engine does not answer")
	r.release()
	assert.Equal(t, 1, r.console.FilterMessage("handles of GPUs are given back, but maybe not all: the host engine does not answer").Len())
	assert.Zero(t, r.console.FilterMessageSnippet("all handles of GPUs are given back").Len())
}
