// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/metadata"
)

// With the kernel's own probes, whether it takes them or not.
func TestLifecycle(t *testing.T) {
	lifecycletest.Test(t, componenttest.NewNopHost(), func(t testing.TB) component.Component {
		c, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), createDefaultConfig(), new(consumertest.MetricsSink))
		require.NoError(t, err)
		return c
	}, func(testing.TB, component.Component) { time.Sleep(10 * time.Millisecond) })
}

// vllm is a process that everything is known of.
func vllm(pid int) workload.Process {
	return workload.Process{
		PID: uint32(pid), Start: uint64(pid) * 10, Executable: "vllm",
		Cgroup: workload.Cgroup{ContainerID: "c0ffee", PodUID: "u-1"}, Names: workload.Names{Namespace: "llm", Pod: "chat-0", Container: "engine"},
	}
}

const vllmLabels = "container.id=c0ffee,k8s.container.name=engine,k8s.namespace.name=llm,k8s.pod.name=chat-0,k8s.pod.uid=u-1,process.executable.name=vllm,process.pid=7"

// Guarantees: every metric of the table comes out of a process, each with its kind and unit, cumulative since the process was first
// seen, and with the labels that nvidia.gpu.process.memory.usage has.
func TestEveryMetricOfTheTableComesOut(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.Events.Launches = true })
	r.pass(5 * time.Second)
	r.people.of[7] = vllm(7)
	p := r.kernel.add(7, 5, 2)
	p.Managed, p.UnknownFrees, p.Missed, p.Unreturned = mebi, 4, 6, 3
	p.Failures, p.Launches, p.LaunchSum = 1, 3, 9000
	p.LaunchDurations[10], p.LaunchDurations[12] = 1, 2
	r.pass(10 * time.Second)

	of := map[string]*instrument{}
	for _, m := range table {
		of[m.name] = m
	}
	seen := 0
	each(r.metrics.AllMetrics(), func(m pmetric.Metric, p point) {
		seen++
		want := of[m.Name()]
		require.NotNil(t, want, m.Name())
		assert.Equal(t, want.unit, m.Unit())
		assert.Equal(t, want.description, m.Description())
		switch m.Type() {
		case pmetric.MetricTypeExponentialHistogram:
			assert.Equal(t, histogram, want.kind)
			assert.Equal(t, pmetric.AggregationTemporalityCumulative, m.ExponentialHistogram().AggregationTemporality())
		default:
			assert.Equal(t, want.kind == counter, m.Sum().IsMonotonic(), m.Name())
			assert.Equal(t, pmetric.AggregationTemporalityCumulative, m.Sum().AggregationTemporality())
		}
		assert.Equal(t, t0, p.start, "it was not there at the beginning")
		assert.Equal(t, t0.Add(10*time.Second), p.at)
	})
	assert.Equal(t, len(table)+2, seen, "of cuda.memory.missed there are three")
	assert.Equal(t, []string{
		"cuda.kernel.launch.duration{" + vllmLabels + "} 3 values, sum 9e-06, scale 3, from -158: [1 0 2]",
		"cuda.kernel.launches{" + vllmLabels + "} 3",
		"cuda.memory.allocated{" + vllmLabels + "} 5242880",
		"cuda.memory.allocation.size{" + vllmLabels + "} 5 values, sum 5.24288e+06, scale 0, from 19: [5]",
		"cuda.memory.allocations{" + vllmLabels + "} 5",
		"cuda.memory.failures{" + vllmLabels + "} 1",
		"cuda.memory.frees{" + vllmLabels + "} 2",
		"cuda.memory.live{" + vllmLabels + "} 3145728",
		"cuda.memory.managed{" + vllmLabels + "} 1048576",
		"cuda.memory.missed{container.id=c0ffee,cuda.memory.miss=max_entries,k8s" + vllmLabels[len("container.id=c0ffee,k8s"):] + "} 6",
		"cuda.memory.missed{container.id=c0ffee,cuda.memory.miss=unknown_free,k8s" + vllmLabels[len("container.id=c0ffee,k8s"):] + "} 4",
		"cuda.memory.missed{container.id=c0ffee,cuda.memory.miss=unreturned,k8s" + vllmLabels[len("container.id=c0ffee,k8s"):] + "} 3",
	}, r.series())
	assert.Equal(t, 1, r.metrics.AllMetrics()[0].ResourceMetrics().Len())
}

// Guarantees: what is switched off is not written, and launches are not probed where nothing is made of them.
func TestMetricsAreSwitchedOffAndOn(t *testing.T) {
	off := false
	f := func(launches bool, want int, probed bool, switchedOff ...string) {
		t.Helper()
		r := newRig(t, func(cfg *Config) {
			cfg.Events.Launches = launches
			cfg.Metrics = emit.Settings{}
			for _, name := range switchedOff {
				cfg.Metrics[name] = emit.MetricSetting{Enabled: &off}
			}
		})
		r.kernel.add(7, 1, 0)
		r.pass(10 * time.Second)
		assert.Len(t, r.series(), want)
		assert.Equal(t, probed, r.kernel.opts.Launches)
	}
	f(false, 10, false)
	f(true, 12, true)
	f(true, 11, true, "cuda.kernel.launches")
	f(true, 10, false, "cuda.kernel.launches", "cuda.kernel.launch.duration")
	f(false, 9, false, "cuda.memory.live")
	f(false, 7, false, "cuda.memory.missed")
}

func TestTheProbesAreToldWhatTheSettingsSay(t *testing.T) {
	r := newRig(t, func(cfg *Config) {
		cfg.MaxEntries, cfg.Libraries, cfg.ProcRoot = 17, []string{"libtorch_cuda.so*"}, "/host/proc"
	})
	r.pass(time.Second)
	assert.Equal(t, uint32(17), r.kernel.opts.MaxEntries)
	assert.Equal(t, []string{"libtorch_cuda.so*"}, r.kernel.opts.Libraries)
	assert.Equal(t, "/host/proc", r.kernel.opts.ProcRoot)
	assert.Nil(t, r.kernel.opts.Changed, "nobody listens")
}

// Scenario: a process allocates, frees, and ends between two collections, of which it lived through one.
// Guarantees: its last counters are told, then its series end, and nothing is told of it any more; one that came and went within
// one interval is told as well.
func TestAProcessThatEndsIsToldOnceMore(t *testing.T) {
	r := newRig(t, func(cfg *Config) {
		off := false
		cfg.Metrics = emit.Settings{}
		for _, name := range []string{"cuda.memory.allocated", "cuda.memory.frees", "cuda.memory.failures", "cuda.memory.allocation.size", "cuda.memory.managed"} {
			cfg.Metrics[name] = emit.MetricSetting{Enabled: &off}
		}
	})
	r.people.of[7] = workload.Process{Start: 70, Executable: "vllm"}
	p := r.kernel.add(7, 3, 0)
	r.pass(10 * time.Second)
	delete(r.people.of, 7)
	allocate(p, 1, 0)
	p.Live, p.Released, p.Ended = 0, p.Live, true
	short := r.kernel.add(8, 2, 2)
	short.Ended = true
	r.pass(10 * time.Second)
	assert.Equal(t, []string{
		"cuda.memory.allocations{process.executable.name=vllm,process.pid=7} 4",
		"cuda.memory.allocations{process.executable.name=vllm,process.pid=7} ended",
		"cuda.memory.allocations{process.pid=8} 2",
		"cuda.memory.allocations{process.pid=8} ended",
		"cuda.memory.live{process.executable.name=vllm,process.pid=7} 0",
		"cuda.memory.live{process.executable.name=vllm,process.pid=7} ended",
		"cuda.memory.live{process.pid=8} 0",
		"cuda.memory.live{process.pid=8} ended",
		"cuda.memory.missed{cuda.memory.miss=max_entries,process.executable.name=vllm,process.pid=7} 0",
		"cuda.memory.missed{cuda.memory.miss=max_entries,process.executable.name=vllm,process.pid=7} ended",
		"cuda.memory.missed{cuda.memory.miss=max_entries,process.pid=8} 0",
		"cuda.memory.missed{cuda.memory.miss=max_entries,process.pid=8} ended",
		"cuda.memory.missed{cuda.memory.miss=unknown_free,process.executable.name=vllm,process.pid=7} 0",
		"cuda.memory.missed{cuda.memory.miss=unknown_free,process.executable.name=vllm,process.pid=7} ended",
		"cuda.memory.missed{cuda.memory.miss=unknown_free,process.pid=8} 0",
		"cuda.memory.missed{cuda.memory.miss=unknown_free,process.pid=8} ended",
		"cuda.memory.missed{cuda.memory.miss=unreturned,process.executable.name=vllm,process.pid=7} 0",
		"cuda.memory.missed{cuda.memory.miss=unreturned,process.executable.name=vllm,process.pid=7} ended",
		"cuda.memory.missed{cuda.memory.miss=unreturned,process.pid=8} 0",
		"cuda.memory.missed{cuda.memory.miss=unreturned,process.pid=8} ended",
	}, r.series())
	each(r.metrics.AllMetrics(), func(_ pmetric.Metric, p point) {
		if p.ended {
			assert.Equal(t, r.clock.Add(-time.Millisecond), p.at)
			return
		}
		assert.Equal(t, r.clock.Add(-2*time.Millisecond), p.at, "no backend takes two values of one instant")
	})
	r.pass(10 * time.Second)
	assert.Empty(t, r.metrics.AllMetrics())
	assert.Empty(t, r.devices.of)
	assert.Empty(t, r.book.of)
}

// Guarantees: no point stands behind one that ends a series, in the same pmetric.Metric, where the Prometheus exporter does not
// see it; and of two processes that have one PID in turn, what there is stands last.
func TestNothingStandsBehindAnEnd(t *testing.T) {
	r := newRig(t, nil)
	first, second := r.kernel.add(7, 1, 0), r.kernel.add(8, 1, 0)
	r.pass(10 * time.Second)
	first.Ended, second.Ended = true, true
	again := r.kernel.add(7, 9, 0)
	again.ID, again.StartTime = 99, 71
	r.kernel.add(9, 1, 0)
	r.pass(10 * time.Second)
	last, at := map[string]string{}, map[string]time.Time{}
	for _, md := range r.metrics.AllMetrics() {
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if m.Type() != pmetric.MetricTypeSum {
				continue
			}
			for i, p := range m.Sum().DataPoints().All() {
				pid, _ := p.Attributes().Get("process.pid")
				key, value := m.Name()+pid.AsString(), fmt.Sprint(p.IntValue())
				if why, ok := p.Attributes().Get("cuda.memory.miss"); ok {
					key += why.Str()
				}
				if p.Flags().NoRecordedValue() {
					assert.Equal(t, m.Sum().DataPoints().Len()-1, i)
					value = "ended"
				}
				assert.True(t, p.Timestamp().AsTime().After(at[key]), "a series goes forward in time")
				last[key], at[key] = value, p.Timestamp().AsTime()
			}
		}
	}
	assert.Equal(t, "9", last["cuda.memory.allocations7"])
	assert.Equal(t, "ended", last["cuda.memory.allocations8"])
	assert.Equal(t, "1", last["cuda.memory.allocations9"])
}

// Guarantees: counting is said to have begun at the last time that the process was not there, however long it has run, and at its
// own time again for a program that it executes.
func TestCountersBeginWhenTheProcessIsFirstSeen(t *testing.T) {
	r := newRig(t, nil)
	starts := func(pid string) (start time.Time) {
		each(r.metrics.AllMetrics(), func(_ pmetric.Metric, p point) {
			if v, _ := p.attributes.Get("process.pid"); v.AsString() == pid && !p.ended && p.at.Equal(r.clock) {
				start = p.start
			}
		})
		return start
	}
	r.kernel.add(1, 1, 0)
	r.pass(10 * time.Second)
	assert.Equal(t, t0, starts("1"))
	late := r.kernel.add(2, 1, 0)
	r.pass(10 * time.Second)
	assert.Equal(t, t0, starts("1"))
	assert.Equal(t, t0.Add(10*time.Second), starts("2"))
	late.Ended = true
	program := r.kernel.add(2, 1, 0)
	program.ID = 99
	r.pass(10 * time.Second)
	assert.Equal(t, t0.Add(20*time.Second), starts("2"))
	assert.Equal(t, t0, starts("1"))
}

// Guarantees: what becomes known of a process ends its series under the old name; what is not known any more, because it is going,
// does not.
func TestWhatIsKnownOfAProcessMayChange(t *testing.T) {
	r := newRig(t, nil)
	r.people.of[7] = workload.Process{Start: 70, Executable: "vllm", Cgroup: workload.Cgroup{ContainerID: "c0ffee"}}
	r.kernel.add(7, 1, 0)
	r.pass(10 * time.Second)
	assert.Equal(t, []string{"cuda.memory.live{container.id=c0ffee,process.executable.name=vllm,process.pid=7} 1048576"}, r.series("cuda.memory.live"))
	who := r.people.of[7]
	who.Names = workload.Names{Namespace: "llm", Pod: "chat-0"}
	r.people.of[7] = who
	r.pass(10 * time.Second)
	named := "cuda.memory.live{container.id=c0ffee,k8s.namespace.name=llm,k8s.pod.name=chat-0,process.executable.name=vllm,process.pid=7} 1048576"
	assert.Equal(t, []string{named, "cuda.memory.live{container.id=c0ffee,process.executable.name=vllm,process.pid=7} ended"}, r.series("cuda.memory.live"))
	delete(r.people.of, 7)
	r.pass(10 * time.Second)
	assert.Equal(t, []string{named}, r.series("cuda.memory.live"))
}

// Guarantees: a process whose PID /proc knows as another one has that PID and no name.
func TestAStrangersNameIsNotTaken(t *testing.T) {
	r := newRig(t, nil)
	r.people.of[7] = workload.Process{Start: 12345, Executable: "bash"}
	r.kernel.add(7, 1, 0)
	r.pass(10 * time.Second)
	assert.Equal(t, []string{"cuda.memory.live{process.pid=7} 1048576"}, r.series("cuda.memory.live"))
}

// Guarantees: those that came first are told one by one, what the others hold is one series, marked, and no counter is made of
// those, which would fall; when there is room, the series of all ends and each has its own.
func TestProcessesBeyondTheLimitAreToldTogether(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.MaxProcesses = 2 })
	first := r.kernel.add(1, 1, 0)
	r.kernel.add(2, 2, 0)
	r.kernel.add(3, 4, 0)
	r.kernel.add(4, 8, 0)
	r.pass(10 * time.Second)
	assert.Equal(t, []string{
		"cuda.memory.allocations{process.pid=1} 1", "cuda.memory.allocations{process.pid=2} 2",
		"cuda.memory.live{otel.metric.overflow=true} 12582912", "cuda.memory.live{process.pid=1} 1048576", "cuda.memory.live{process.pid=2} 2097152",
	}, r.series("cuda.memory.live", "cuda.memory.allocations"))
	assert.Equal(t, map[string]int64{"": 2}, r.counted("processes_overflowed", ""))
	assert.Equal(t, map[string]int64{"": 4}, r.counted("processes", ""))
	assert.Len(t, r.devices.of, 2)

	first.Ended = true
	r.kernel.processes = r.kernel.processes[:3]
	r.pass(10 * time.Second) // it leaves with this one
	r.pass(10 * time.Second)
	assert.Equal(t, []string{
		"cuda.memory.live{otel.metric.overflow=true} ended", "cuda.memory.live{process.pid=2} 2097152", "cuda.memory.live{process.pid=3} 4194304",
	}, r.series("cuda.memory.live"))
	r.pass(10 * time.Second)
	assert.Len(t, r.series("cuda.memory.live"), 2)
}

// Guarantees: no batch is larger than consumers take, and nothing is lost between two.
func TestBatchesAreBounded(t *testing.T) {
	r := newRig(t, nil)
	for pid := range 1000 {
		r.kernel.add(pid+1, 1, 0)
	}
	r.pass(10 * time.Second)
	points := 0
	for _, md := range r.metrics.AllMetrics() {
		assert.LessOrEqual(t, md.DataPointCount(), emit.MaxBatchPoints)
		points += md.DataPointCount()
	}
	assert.Equal(t, 10*1000, points)
	assert.Len(t, r.metrics.AllMetrics(), 5)
}
