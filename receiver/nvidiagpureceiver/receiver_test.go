// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/metadata"
)

func TestLifecycle(t *testing.T) {
	lifecycletest.Test(t, componenttest.NewNopHost(), func(t testing.TB) component.Component {
		c, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), createDefaultConfig(), new(consumertest.MetricsSink))
		require.NoError(t, err)
		return c
	}, func(testing.TB, component.Component) { time.Sleep(10 * time.Millisecond) })
}

// Guarantees: metrics and logs of one receiver are served by one engine, which reads once.
func TestOneEngineServesBothSignals(t *testing.T) {
	f, set, cfg := NewFactory(), receivertest.NewNopSettings(metadata.Type), defaults()
	cfg.CollectionInterval = shortest
	metrics, logs := new(consumertest.MetricsSink), new(consumertest.LogsSink)
	m, err := f.CreateMetrics(t.Context(), set, cfg, metrics)
	require.NoError(t, err)
	l, err := f.CreateLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	e := m.(*instance).Engine()
	assert.Same(t, e, l.(*instance).Engine())
	source := &plain{read: one}
	e.source = source
	require.NoError(t, m.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, l.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return len(metrics.AllMetrics()) > 1 }, time.Minute, time.Millisecond)
	source.events(gpu.Event{Time: second, UUID: "GPU-0", Code: 79})
	require.Eventually(t, func() bool { return logs.LogRecordCount() == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, m.Shutdown(t.Context()))
	require.NoError(t, l.Shutdown(t.Context()))
	assert.Equal(t, 1, source.opened)
	assert.Equal(t, 1, source.closed)
}

// Guarantees: every metric that is on by default comes out of a GPU that has everything, each with its kind and unit, and
// every point with its device.
func TestEveryMetricOfTheTableComesOut(t *testing.T) {
	r := newRig(t, one, nil)
	r.scrape()
	names := r.names()
	for _, m := range gpu.Metrics {
		assert.Equal(t, !m.Off, names[m.Name], m.Name)
	}
	for _, md := range r.metrics.AllMetrics() {
		assert.Equal(t, map[string]any{
			"hw.id": "GPU-0", "hw.name": "GPU 0", "hw.vendor": "NVIDIA", "hw.model": "NVIDIA H100 80GB HBM3", "hw.serial_number": "123",
			"hw.driver_version": "590.48.01", "hw.firmware_version": "96.00.A5.00.01", "nvidia.pci.bus_id": "0000:00:09.0",
		}, md.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
		each(md, func(m pmetric.Metric, p pmetric.NumberDataPoint) {
			id, ok := p.Attributes().Get("hw.id")
			require.True(t, ok, m.Name())
			assert.Equal(t, "GPU-0", id.Str())
			if m.Type() == pmetric.MetricTypeSum && m.Sum().IsMonotonic() {
				assert.NotZero(t, p.StartTimestamp(), m.Name())
			}
			assert.Equal(t, t0.UnixNano(), p.Timestamp().AsTime().UnixNano())
		})
	}
	assert.Equal(t, []string{
		"hw.status{hw.id=GPU-0,hw.state=degraded} 0", "hw.status{hw.id=GPU-0,hw.state=failed} 0",
		"hw.status{hw.id=GPU-0,hw.state=ok} 1", "hw.status{hw.id=GPU-0,hw.state=predicted_failure} 0",
	}, r.series("hw.status"))
	assert.Equal(t, []string{"hw.power{hw.id=GPU-0} 100"}, r.series("hw.power"))
	assert.Equal(t, []string{"hw.gpu.memory.usage{hw.id=GPU-0} 11665408000"}, r.series("hw.gpu.memory.usage"))
	assert.Equal(t, []string{"nvidia.gpu.memory.unattributed{hw.id=GPU-0} 76546048"}, r.series("nvidia.gpu.memory.unattributed"))
	assert.Equal(t, []string{"nvidia.gpu.process.memory.usage{hw.id=GPU-0,process.pid=4242} 11588861952"}, r.series("nvidia.gpu.process.memory.usage"))
	assert.Len(t, r.series("nvidia.gpu.throttle.reason"), 9)
}

// Guarantees: what is switched off is not written, and not asked for where nothing else needs it.
func TestMetricsAreSwitchedOffAndOn(t *testing.T) {
	on, off := true, false
	r := newRig(t, one, func(cfg *Config) {
		cfg.Metrics = emit.Settings{
			"hw.power": {Enabled: &off}, "nvidia.gpu.memory.reserved": {Enabled: &off}, "nvidia.gpu.pipe.active": {Enabled: &on},
		}
	})
	r.scrape()
	names, wanted := r.names(), r.source.wanted[0]
	assert.False(t, names["hw.power"])
	assert.False(t, wanted.Has(gpu.Power))
	assert.False(t, names["nvidia.gpu.memory.reserved"])
	assert.True(t, wanted.Has(gpu.MemoryReserved), "what is unattributed is made of it")
	assert.True(t, names["nvidia.gpu.pipe.active"])
	assert.Len(t, names, len(gpu.Metrics)-2)
}

// Guarantees: where only events are listened to, nothing is read but who the devices are and how they are.
func TestWithoutAMetricsPipelineNothingIsMeasured(t *testing.T) {
	r := newRig(t, one, nil)
	r.engine.metrics = nil
	r.prepare()
	r.scrape()
	assert.Equal(t, []gpu.Set{{}}, r.source.wanted)
	r.source.events(gpu.Event{Time: 5, UUID: "GPU-0", Code: 31})
	r.scrape()
	assert.Equal(t, []string{eventXid}, r.eventNames())
}

// Guarantees: a driver's counter starts when it was first seen, and anew when it fell: no backend takes the sum of years, or
// a restart of the driver, for a spike.
func TestCountersOfTheDriverBeginWhereTheyWereSeen(t *testing.T) {
	joules := 5000.0
	r := newRig(t, func(s *gpu.Snapshot) {
		d := s.Add()
		d.UUID = "GPU-0"
		d.Set(gpu.Energy, joules)
	}, nil)
	var starts, times []time.Duration
	f := func(j float64) {
		joules = j
		r.scrape()
		each(r.metrics.AllMetrics()[0], func(m pmetric.Metric, p pmetric.NumberDataPoint) {
			if m.Name() == "hw.energy" {
				assert.InDelta(t, j, p.DoubleValue(), 0)
				starts = append(starts, p.StartTimestamp().AsTime().Sub(t0))
				times = append(times, p.Timestamp().AsTime().Sub(t0))
			}
		})
	}
	f(5000)
	f(6000)
	f(100)
	f(200)
	assert.Equal(t, []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second}, times)
	assert.Equal(t, []time.Duration{0, 0, 20 * time.Second, 20 * time.Second}, starts)
}

// Guarantees: groups are read in their own intervals, and together where they meet.
func TestGroupsHaveTheirOwnIntervals(t *testing.T) {
	r := newRig(t, one, func(cfg *Config) {
		cfg.CollectionInterval, cfg.ProcessInterval, cfg.ExpensiveInterval = time.Second, 2*time.Second, 3*time.Second
	})
	var got []string
	for range 13 {
		r.scrape()
		if len(r.metrics.AllMetrics()) > 0 {
			n := r.names()
			got = append(got, fmt.Sprint(n["hw.power"], n["nvidia.gpu.process.memory.usage"], n["nvidia.gpu.sm.active"]))
		}
	}
	assert.Equal(t, []string{
		"true true true", "true false false", "true true false", "true false true", "true true false", "true false false", "true true true",
	}, got[:7])
	groups := r.counted("scrapes", "groups")
	assert.Equal(t, map[string]int64{"cheap": 4, "cheap+process": 4, "cheap+expensive": 2, "cheap+process+expensive": 3}, groups)
}

// Guarantees: a process that is gone ends its series; one that has become another pod's is another series; one whose PID is given anew
// to its like goes on: no backend takes a value and an end of one instant.
func TestSeriesEndWithWhatTheyAreAbout(t *testing.T) {
	pids := []uint32{7, 9}
	r := newRig(t, func(s *gpu.Snapshot) {
		d := s.Add()
		d.UUID, d.Known = "GPU-0", true
		for _, pid := range pids {
			d.AddProcess(pid).Memory = uint64(pid)
		}
	}, nil)
	who := named{7: {Executable: "vllm"}, 9: {Executable: "train"}}
	r.who = who
	const name = "nvidia.gpu.process.memory.usage"
	f := func(want ...string) {
		t.Helper()
		r.scrape()
		for i := range want {
			want[i] = name + "{hw.id=GPU-0," + want[i]
		}
		assert.Equal(t, want, r.series(name))
	}
	f("process.executable.name=train,process.pid=9} 9", "process.executable.name=vllm,process.pid=7} 7")
	pids = []uint32{9, 11}
	f("process.executable.name=train,process.pid=9} 9", "process.executable.name=vllm,process.pid=7} ended", "process.pid=11} 11")
	who[9] = workload.Process{Executable: "train", Names: workload.Names{Namespace: "ml", Pod: "train-0"}}
	f("k8s.namespace.name=ml,k8s.pod.name=train-0,process.executable.name=train,process.pid=9} 9", "process.executable.name=train,process.pid=9} ended", "process.pid=11} 11")
	who[9] = workload.Process{Start: 5, Executable: "train", Names: workload.Names{Namespace: "ml", Pod: "train-0"}}
	f("k8s.namespace.name=ml,k8s.pod.name=train-0,process.executable.name=train,process.pid=9} 9", "process.pid=11} 11") // another one, and the same series
	pids = nil
	f("k8s.namespace.name=ml,k8s.pod.name=train-0,process.executable.name=train,process.pid=9} ended", "process.pid=11} ended")
	r.scrape()
	assert.Empty(t, r.series(name))
}

// Guarantees: who reads it knows which release wrote it, and by which conventions.
func TestTheScopeTellsItsVersionAndItsConventions(t *testing.T) {
	r := newRig(t, one, func(cfg *Config) { cfg.DCGMExporterNames = true })
	r.set.BuildInfo.Version = "1.2.3"
	r.prepare()
	r.scrape()
	r.source.events(gpu.Event{Time: 5, UUID: "GPU-0", Code: 31})
	r.scrape()
	require.Len(t, r.metrics.AllMetrics(), 2)
	for i, md := range r.metrics.AllMetrics() {
		sm := md.ResourceMetrics().At(0).ScopeMetrics().At(0)
		assert.Equal(t, "1.2.3", sm.Scope().Version())
		assert.Equal(t, []string{metadata.SchemaURL, ""}[i], sm.SchemaUrl(), "the names of dcgm-exporter are no convention's")
	}
	sl := r.logs.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0)
	assert.Equal(t, "1.2.3", sl.Scope().Version())
	assert.Equal(t, metadata.SchemaURL, sl.SchemaUrl())
}

// Guarantees: what the receiver says of itself says of which one, so that several do not overwrite each other.
func TestOwnTelemetryTellsTheReceivers(t *testing.T) {
	r := newRig(t, one, nil)
	r.scrape()
	require.NoError(t, r.close())
	r.scrape()
	id := r.set.ID.String()
	for _, name := range []string{"scrapes", "reinitializations", "connected", "devices", "processes", "processes_overflowed"} {
		values := r.counted(name, "receiver")
		assert.Len(t, values, 1, name)
		assert.Contains(t, values, id, name)
	}
}

// Guarantees: a path that was set and has nothing is told; those that are usual are not.
func TestPathsThatHaveNothingAreTold(t *testing.T) {
	f := func(configure func(*Config), want ...string) {
		t.Helper()
		r := newRig(t, one, configure)
		r.doubtPaths()
		var got []string
		for _, entry := range r.console.FilterMessage("processes have fewer names: a path that is set has nothing").All() {
			got = append(got, entry.ContextMap()["key"].(string))
		}
		assert.Equal(t, want, got)
	}
	f(nil)
	f(func(cfg *Config) { cfg.ProcRoot = "/proc" })
	f(func(cfg *Config) { cfg.ProcRoot, cfg.KubeletLogs = "/nonexistent", "" }, "proc_root")
	f(func(cfg *Config) { cfg.ProcRoot, cfg.KubeletLogs = t.TempDir(), "/nonexistent" }, "proc_root", "kubelet_logs")

	r := newRig(t, one, func(cfg *Config) { cfg.KubeletSocket = "/nonexistent/kubelet.sock" })
	r.findOwners()
	require.Eventually(t, func() bool {
		return r.console.FilterMessage("the kubelet does not tell which pods hold which devices").Len() == 1
	}, time.Minute, time.Millisecond)
	r.pods.Close()
}

// Scenario: processes come and go; then nothing is read any more.
// Guarantees: an ended point is the last of its pmetric.Metric: the Prometheus exporter does not see what stands behind one.
func TestNothingStandsBehindAnEnd(t *testing.T) {
	pids := []uint32{7, 9, 10}
	r := newRig(t, func(s *gpu.Snapshot) {
		d := full(s, 0)
		d.Processes = d.Processes[:0]
		for _, pid := range pids {
			d.AddProcess(pid).Memory = uint64(pid)
		}
		if len(pids) == 1 {
			*d = gpu.Device{UUID: d.UUID, State: gpu.Lost}
		}
	}, func(cfg *Config) { cfg.DCGMExporterNames = true })
	ends := func() (n int) {
		t.Helper()
		for _, md := range r.metrics.AllMetrics() {
			for _, rm := range md.ResourceMetrics().All() {
				for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
					points := numbers(m)
					for i, p := range points.All() {
						if p.Flags().NoRecordedValue() {
							n++
							assert.Equal(t, points.Len()-1, i, m.Name())
						}
					}
				}
			}
		}
		return n
	}
	r.scrape()
	assert.Zero(t, ends())
	pids = []uint32{8, 9, 11, 12}
	r.scrape()
	assert.Equal(t, 2, ends(), "the memory of two processes")
	pids = pids[:1]
	r.scrape()
	assert.Greater(t, ends(), 80)
	r.metrics.Reset()
	r.endSeries()
	r.send(t.Context())
	assert.Positive(t, ends())
}

// Guarantees: a device that is called otherwise, by its index or its driver, ends what it was called before; a millisecond earlier,
// since that may be the same series to a backend.
func TestADeviceThatIsRenamedEndsItsOldName(t *testing.T) {
	index, driver := 2, "590.48.01"
	r := newRig(t, func(s *gpu.Snapshot) {
		d := full(s, 0)
		d.Index, s.Driver = index, driver
		if driver == "" {
			d.Firmware, d.Serial = "", ""
		}
	}, nil)
	// told are the values, and how many points ended, by name, driver and time.
	told := func() map[string]int {
		r.scrape()
		all := map[string]int{}
		for _, md := range r.metrics.AllMetrics() {
			for _, rm := range md.ResourceMetrics().All() {
				name, _ := rm.Resource().Attributes().Get("hw.name")
				driver, _ := rm.Resource().Attributes().Get("hw.driver_version")
				for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
					for _, p := range numbers(m).All() {
						own, _ := p.Attributes().Get("hw.name")
						assert.Equal(t, name.Str(), own.Str())
						all[fmt.Sprint(name.Str(), " ", driver.Str(), " ", p.Flags().NoRecordedValue(), " ",
							p.Timestamp().AsTime().Sub(t0)%(10*time.Second))]++
					}
				}
			}
		}
		return all
	}
	first := told()
	require.Len(t, first, 1)
	n := first["GPU 2 590.48.01 false 0s"]
	require.Positive(t, n)
	index = 3
	assert.Equal(t, map[string]int{"GPU 2 590.48.01 true 9.999s": n, "GPU 3 590.48.01 false 0s": n}, told())
	driver = "600.10"
	assert.Equal(t, map[string]int{"GPU 3 590.48.01 true 9.999s": n, "GPU 3 600.10 false 0s": n}, told())
	driver = ""
	assert.Equal(t, map[string]int{"GPU 3 600.10 false 0s": n}, told(), "what is not told for once is as it was")
}

// Guarantees: a counter never starts after its own time, though the clock of the host is set back.
func TestAClockThatIsSetBackLeavesNoCounterInTheFuture(t *testing.T) {
	r := newRig(t, one, nil)
	r.scrape()
	r.source.events(gpu.Event{Time: r.clock.UnixNano(), UUID: "GPU-0", Code: 31})
	r.scrape()
	r.clock = r.clock.Add(-time.Minute)
	r.schedule = newSchedule(r.cfg, &r.plans)
	for range 2 {
		r.scrape()
		sums := 0
		each(r.metrics.AllMetrics()[0], func(m pmetric.Metric, p pmetric.NumberDataPoint) {
			if m.Type() == pmetric.MetricTypeSum && m.Sum().IsMonotonic() {
				sums++
				assert.LessOrEqual(t, p.StartTimestamp(), p.Timestamp(), m.Name())
			}
		})
		assert.Greater(t, sums, 40)
	}
	assert.Contains(t, r.series("nvidia.gpu.xid"), "nvidia.gpu.xid{hw.id=GPU-0,nvidia.xid.code=31} 1")
}

// Guarantees: memory that a GPU shares with its host ends under the attribute that it was told with, and begins anew under
// another.
func TestUnifiedMemoryIsEnded(t *testing.T) {
	unified, there := true, true
	r := newRig(t, func(s *gpu.Snapshot) {
		d := s.Add()
		d.UUID, d.Unified = "GPU-0", unified
		if there {
			d.SetInt(gpu.MemoryLimit, 100)
			d.SetInt(gpu.MemoryUsage, 50)
		}
	}, func(cfg *Config) { cfg.ProcRoot = t.TempDir() }) // in which there is no meminfo
	r.scrape()
	const name = "hw.gpu.memory.usage{hw.id=GPU-0"
	assert.Equal(t, []string{name + ",nvidia.memory.type=unified} 50"}, r.series("hw.gpu.memory.usage"))
	unified = false
	r.scrape()
	assert.Equal(t, []string{name + ",nvidia.memory.type=unified} ended", name + "} 50"}, r.series("hw.gpu.memory.usage"))
	unified = true
	r.scrape()
	assert.Equal(t, []string{name + ",nvidia.memory.type=unified} 50", name + "} ended"}, r.series("hw.gpu.memory.usage"))
	there = false
	r.scrape()
	assert.Equal(t, []string{name + ",nvidia.memory.type=unified} ended"}, r.series("hw.gpu.memory.usage"))
	there = true
	r.scrape()
	r.metrics.Reset()
	r.endSeries()
	r.send(t.Context())
	assert.Equal(t, []string{name + ",nvidia.memory.type=unified} ended"}, r.series("hw.gpu.memory.usage"))
}

// Guarantees: processes beyond the limit, those with the least memory, are told as one, and no memory is lost.
func TestProcessesBeyondTheLimitAreToldTogether(t *testing.T) {
	r := newRig(t, func(s *gpu.Snapshot) {
		d := s.Add()
		d.UUID, d.Known = "GPU-0", true
		for pid := range uint32(10) {
			d.AddProcess(pid + 1).Memory = uint64(100 + pid)
		}
		d.AddProcess(50) // of unknown memory
	}, func(cfg *Config) { cfg.MaxProcesses = 2 })
	r.scrape()
	assert.Equal(t, []string{
		"nvidia.gpu.process.memory.usage{hw.id=GPU-0,otel.metric.overflow=true} 828",
		"nvidia.gpu.process.memory.usage{hw.id=GPU-0,process.pid=10} 109",
		"nvidia.gpu.process.memory.usage{hw.id=GPU-0,process.pid=9} 108",
	}, r.series("nvidia.gpu.process.memory.usage"))
	assert.Equal(t, int64(9), r.counted("processes_overflowed", "")[""])
	assert.Equal(t, int64(11), r.counted("processes", "")[""], "those beyond are processes, too")
}

// Guarantees: a scrape of more points than a consumer takes at once goes out in several batches, whole.
func TestLargeScrapesAreSplit(t *testing.T) {
	r := newRig(t, func(s *gpu.Snapshot) {
		for i := range 64 {
			full(s, i)
		}
	}, nil)
	r.scrape()
	total := 0
	for _, md := range r.metrics.AllMetrics() {
		assert.Less(t, md.DataPointCount(), 2200)
		total += md.DataPointCount()
	}
	assert.Greater(t, len(r.metrics.AllMetrics()), 2)
	assert.Zero(t, total%64)
}

// Guarantees: a metrics consumer that refuses loses a scrape and nothing else; events are told again until they are taken.
func TestEventsAreToldUntilTheyAreTaken(t *testing.T) {
	r := newRig(t, one, nil)
	r.engine.metrics = consumertest.NewErr(errors.New("no"))
	r.engine.logs = consumertest.NewErr(errors.New("not now"))
	r.scrape()
	r.source.events(gpu.Event{Time: 5, UUID: "GPU-0", Code: 31})
	r.scrape()
	assert.Zero(t, r.logs.LogRecordCount())
	r.engine.logs = r.logs
	r.scrape()
	assert.Equal(t, []string{eventXid}, r.eventNames())
	r.scrape()
	assert.Len(t, r.events(), 1)
}

// Guarantees: events that nobody takes are bounded, and what is lost is counted.
func TestEventsThatWaitAreBounded(t *testing.T) {
	r := newRig(t, one, nil)
	r.engine.logs = consumertest.NewErr(errors.New("not now"))
	r.scrape()
	for i := range 2 * maxPendingEvents {
		r.source.events(gpu.Event{Time: int64(i), UUID: "GPU-0", Code: 31})
	}
	assert.Equal(t, maxPendingEvents, r.outbox.Len())
	r.engine.logs = r.logs
	r.clock = r.clock.Add(time.Minute)
	r.scrape()
	assert.Len(t, r.events(), maxPendingEvents)
	assert.Equal(t, int64(maxPendingEvents), r.counted("events_dropped", "")[""])
	assert.Contains(t, r.series("nvidia.gpu.xid"), fmt.Sprintf("nvidia.gpu.xid{hw.id=GPU-0,nvidia.xid.code=31} %d", 2*maxPendingEvents))
}

// Scenario: a call of the driver blocks, and the Collector ends; it gives a shutdown no deadline.
// Guarantees: the shutdown ends by itself and without an error, events are told, and what comes when the call returns goes nowhere.
func TestADriverThatBlocksDoesNotHoldTheEndUp(t *testing.T) {
	blocked := make(chan struct{})
	r := newRig(t, func(s *gpu.Snapshot) {
		<-blocked
		one(s)
	}, nil)
	require.NoError(t, r.Start(t.Context(), nil))
	require.Eventually(t, func() bool { return r.asking.Load() != 0 && r.own.connected.Load() == 1 }, time.Minute, time.Millisecond)
	r.source.events(gpu.Event{Time: 5, UUID: "GPU-0", Code: 79})
	require.NoError(t, r.Shutdown(context.Background())) // the call is still blocked
	assert.Equal(t, []string{eventXid}, r.eventNames())
	assert.Equal(t, 1, r.console.FilterMessage("the driver does not answer; it is left alone, and its handles stay open").Len())
	close(blocked)
	r.reader.Wait()
	assert.Empty(t, r.metrics.AllMetrics())
}

// Guarantees: while a call is overdue, the status says so and the series end; when it returns, all is as before.
func TestADriverThatBlocksIsTold(t *testing.T) {
	blocks := make(chan struct{})
	var ahead atomic.Int64 // so that nothing is overdue that only this machine is slow with
	reads := 0
	r := newRig(t, func(s *gpu.Snapshot) {
		if reads++; reads == 2 {
			ahead.Store(int64(time.Hour))
			<-blocks
			ahead.Store(0)
		}
		one(s)
	}, func(cfg *Config) { cfg.CollectionInterval = shortest })
	r.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	r.overdue = 30 * time.Second
	host := &statuses{Host: componenttest.NewNopHost()}
	r.health.Join(host)
	require.NoError(t, r.Start(t.Context(), nil))
	text := func() string {
		return r.health.Text()
	}
	require.Eventually(t, func() bool { return text() != "" }, time.Minute, time.Millisecond)
	assert.Contains(t, text(), "the driver has not answered for 30s")
	assert.Zero(t, r.own.connected.Load())
	all := r.metrics.AllMetrics()
	require.Len(t, all, 2)
	assert.Equal(t, all[0].DataPointCount(), all[1].DataPointCount())
	each(all[1], func(m pmetric.Metric, p pmetric.NumberDataPoint) {
		assert.True(t, p.Flags().NoRecordedValue(), m.Name())
	})
	close(blocks)
	require.Eventually(t, func() bool { return text() == "" && r.own.connected.Load() == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, r.Shutdown(context.Background()))
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusOK, componentstatus.StatusRecoverableError, componentstatus.StatusOK}, host.all)
	assert.Equal(t, 1, r.console.FilterMessage("no GPU is read: the driver does not answer").Len())
}

// Guarantees: what /proc/meminfo does not say is not made up.
func TestTheHostsMemoryIsReadOrNotTold(t *testing.T) {
	f := func(content string, total, used uint64, ok bool) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "meminfo")
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		gotTotal, gotUsed, gotOK := hostMemory(path)
		assert.Equal(t, ok, gotOK)
		assert.Equal(t, total, gotTotal)
		assert.Equal(t, used, gotUsed)
	}
	f("MemTotal:       16 kB\nMemFree:        1 kB\nMemAvailable:    4 kB\n", 16<<10, 12<<10, true)
	f("MemTotal: 16 kB\n", 0, 0, false)
	f("MemTotal: 16 kB\nMemAvailable: 17 kB\n", 0, 0, false)
	f("MemTotal: x kB\nMemAvailable: 1 kB\n", 0, 0, false)
	f("MemTotal: 16\nMemAvailable: 1 kB", 0, 0, false)
	f("", 0, 0, false)
	_, _, ok := hostMemory("/nowhere")
	assert.False(t, ok)
}

// Guarantees: who asks for the names of dcgm-exporter gets them beside ours, in their own intervals, with the last Xid.
func TestTheNamesOfDCGMExporterComeBesideOurs(t *testing.T) {
	r := newRig(t, one, func(cfg *Config) {
		cfg.CollectionInterval, cfg.ExpensiveInterval, cfg.DCGMExporterNames = time.Second, 2*time.Second, true
		off := false
		cfg.Metrics = emit.Settings{"hw.power": {Enabled: &off}, "nvidia.gpu.sm.active": {Enabled: &off}}
	})
	r.scrape()
	names := r.names()
	assert.True(t, names["DCGM_FI_DEV_GPU_TEMP"])
	assert.True(t, names["DCGM_FI_DEV_POWER_USAGE"], "ours is off, theirs is not")
	assert.True(t, names["DCGM_FI_PROF_SM_ACTIVE"])
	assert.True(t, names["hw.temperature"])
	assert.True(t, r.source.wanted[0].Has(gpu.Power))
	xid := func() float64 {
		var v float64
		for _, md := range r.metrics.AllMetrics() {
			each(md, func(m pmetric.Metric, p pmetric.NumberDataPoint) {
				if m.Name() == "DCGM_FI_DEV_XID_ERRORS" {
					v = p.DoubleValue()
				}
			})
		}
		return v
	}
	assert.Zero(t, xid())
	r.source.events(gpu.Event{Time: 5, UUID: "GPU-0", Code: 48})
	r.source.events(gpu.Event{Time: 6, UUID: "GPU-0", Code: 31})
	r.scrape()
	r.scrape()
	assert.InDelta(t, 31, xid(), 0)
	assert.False(t, r.source.wanted[1].Has(gpu.SMActive), "profiling has an interval of its own")

	r.metrics.Reset()
	r.release()
	r.send(t.Context())
	for _, name := range []string{"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_PROF_SM_ACTIVE"} {
		if series := r.series(name); assert.Len(t, series, 1, name) {
			assert.Contains(t, series[0], "} ended")
		}
	}
}

// Guarantees: the machine is called as dcgm-exporter calls it, which prefers the name of the node to that of its container.
func TestTheNodeIsCalledAsDCGMExporterCallsIt(t *testing.T) {
	f := func(node, want string) {
		t.Helper()
		t.Setenv("NODE_NAME", node)
		r := newRig(t, one, func(cfg *Config) { cfg.DCGMExporterNames = true })
		r.scrape()
		series := r.series("DCGM_FI_DEV_GPU_TEMP")
		require.Len(t, series, 1)
		assert.Contains(t, series[0], "Hostname="+want+",")
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	f("gpu-node-7", "gpu-node-7")
	f("", host)
}
