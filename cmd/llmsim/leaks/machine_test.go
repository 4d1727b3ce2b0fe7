// SPDX-License-Identifier: Apache-2.0

package leaks

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"golang.org/x/sys/unix"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/exposition"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/fleet"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/scenario"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/trace"
	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver"
)

const (
	// gpus is how many a machine has, each with one process.
	gpus = 8
	// firstPID is that of the first process.
	firstPID = 1000
	// interval is how often the GPUs are read, and each engine is scraped.
	interval = time.Minute
	// arrivals are requests a second and engine: at 20 seconds each, ten run at a time.
	arrivals = 0.5
	// enough is how long the fake library goes without looking at its file, and a little, in nanoseconds.
	enough int64 = 1_500_000
	// weights is what an engine takes at its start, its KV cache included, and headroom what is left of an H100 then.
	weights  = 40 * gib
	asleep   = 2 * gib // of them
	headroom = 85520809984 - 502267904 - weights
)

// machine is a node with GPUs, its engines, and a Collector. Simulated time and the clock of the test's bubble are one.
type machine struct {
	t        *testing.T
	kind     *kind
	dir      string
	began    time.Time
	fleet    *fleet.Fleet
	world    *fakegpu.Scenario
	random   []*rand.Rand // of each process
	jitter   []float64
	most     []float64 // requests that ran
	settled  []float64 // memory after ten minutes
	receiver receiver.Metrics
	leaks    connector.Metrics
	opened   []opened // of each process
}

// opened is what was told of a process.
type opened struct {
	times int
	hours float64 // when first
	used  float64 // of the headroom, by then
	cause string
}

// newMachine has the processes of a kind from a number on.
func newMachine(t *testing.T, k *kind, first int) *machine {
	m := &machine{
		t: t, kind: k, dir: t.TempDir(), began: time.Now(), world: fakegpu.Server(gpus, 1, firstPID), jitter: make([]float64, gpus), most: make([]float64, gpus),
		settled: make([]float64, gpus), opened: make([]opened, gpus),
	}
	for i := range gpus {
		m.random = append(m.random, rand.New(rand.NewPCG(uint64(first+i), 7)))
	}
	sc, err := scenario.Parse(k.name, []byte(m.scenario()), 1)
	require.NoError(t, err)
	m.fleet = fleet.New(sc, newTraffic(uint64(first), k.daily), 1, nil)
	for i := range m.world.GPUs { // all else costs time, and says nothing here
		d := &m.world.GPUs[i]
		for key := range d.Values {
			if key != "minor" && !strings.HasPrefix(key, "memory.") {
				d.Remove(key)
			}
		}
	}
	// Nobody waits for Xids, which would be a wait by the wall's clock.
	m.world.Rules = []fakegpu.Rule{{Function: "nvmlEventSetCreate", GPU: fakegpu.All, Instance: fakegpu.All, Return: 3}}
	m.containers()
	return m
}

// scenario has an engine for each process, in a pod, whose steps take long so that half a day is soon over.
func (m *machine) scenario() string {
	var replicas, faults []string
	for i := range gpus {
		replicas = append(replicas, fmt.Sprintf("  - labels: {k8s.pod.name: %s}", pod(i)))
		if of := m.kind.faults(m.random[i]); of != "" {
			faults = append(faults, strings.ReplaceAll(of, "{kind: leak,", "{kind: leak, match: {k8s.pod.name: "+pod(i)+"},"))
		}
	}
	return fmt.Sprintf("engines:\n  default:\n    step: {base: 4s, per_prefill_token: 0s, per_decode_seq: 0s, per_context_token: 0s}\nreplicas:\n%s\nfaults: [%s]\n",
		strings.Join(replicas, "\n"), strings.Join(faults, ", "))
}

func pod(i int) string { return fmt.Sprintf("vllm-%d", i) }

// containers makes what the kernel and the kubelet show of the processes.
func (m *machine) containers() {
	require.NoError(m.t, os.MkdirAll(filepath.Join(m.dir, "logs"), 0o750))
	for i := range gpus {
		id := fmt.Sprintf("%064x", i+1)
		process := filepath.Join(m.dir, "proc", fmt.Sprint(firstPID+i))
		require.NoError(m.t, os.MkdirAll(process, 0o750))
		for name, text := range map[string]string{
			filepath.Join(process, "comm"):                                              "python3\n",
			filepath.Join(process, "stat"):                                              fmt.Sprintf("%d (python3) S%s 4242 0 0\n", firstPID+i, strings.Repeat(" 0", 18)),
			filepath.Join(process, "cgroup"):                                            "0::/" + workloadtest.Pod(fmt.Sprintf("00000000-0000-4000-8000-%012d", i), id) + "\n",
			filepath.Join(m.dir, "logs", fmt.Sprintf("%s_llm_vllm-%s.log", pod(i), id)): "",
		} {
			require.NoError(m.t, os.WriteFile(name, []byte(text), 0o600))
		}
		require.NoError(m.t, os.Symlink("/usr/bin/python3.12", filepath.Join(process, "exe")))
	}
}

// start starts the Collector's part.
func (m *machine) start() {
	t := m.t
	logs, err := consumer.NewLogs(m.told)
	require.NoError(t, err)
	f := gpuleakconnector.NewFactory()
	m.leaks, err = f.CreateMetricsToLogs(t.Context(), connectortest.NewNopSettings(f.Type()), f.CreateDefaultConfig(), logs)
	require.NoError(t, err)
	r := nvidiagpureceiver.NewFactory()
	cfg := r.CreateDefaultConfig().(*nvidiagpureceiver.Config)
	cfg.CollectionInterval, cfg.Source, cfg.NVMLLibrary = interval, "nvml", library
	cfg.ProcRoot, cfg.KubeletLogs, cfg.KubeletSocket, cfg.ReleaseWindow = filepath.Join(m.dir, "proc"), filepath.Join(m.dir, "logs"), "", 0
	off := false
	cfg.Metrics = emit.Settings{}
	for _, name := range []string{
		"hw.energy", "hw.errors", "hw.gpu.io", "hw.gpu.utilization", "hw.power", "hw.status", "hw.temperature", "hw.temperature.limit", "nvidia.gpu.clock.frequency",
		"nvidia.gpu.dram.active", "nvidia.gpu.graphics.active", "nvidia.gpu.memory.remap.failure", "nvidia.gpu.memory.remap.pending", "nvidia.gpu.memory.remapped_rows",
		"nvidia.gpu.memory.retired_pages", "nvidia.gpu.memory_controller.utilization", "nvidia.gpu.nvlink.io", "nvidia.gpu.power.limit", "nvidia.gpu.process.utilization",
		"nvidia.gpu.sm.active", "nvidia.gpu.tensor.active", "nvidia.gpu.throttle.duration", "nvidia.gpu.throttle.reason", "nvidia.gpu.xid",
	} {
		cfg.Metrics[name] = emit.MetricSetting{Enabled: &off}
	}
	require.NoError(t, cfg.Validate())
	m.receiver, err = r.CreateMetrics(t.Context(), receivertest.NewNopSettings(r.Type()), cfg, m.leaks)
	require.NoError(t, err)
	require.NoError(t, m.leaks.Start(t.Context(), componenttest.NewNopHost()))
	m.show()
	require.NoError(t, m.receiver.Start(t.Context(), componenttest.NewNopHost()))
}

func (m *machine) stop() {
	require.NoError(m.t, m.receiver.Shutdown(m.t.Context()))
	require.NoError(m.t, m.leaks.Shutdown(m.t.Context()))
}

// run goes on for as long as the kind says: half-way between two readings, the GPUs show what the engines have become, and each of those is scraped.
func (m *machine) run() {
	m.start()
	for at := interval / 2; at.Hours() < m.kind.hours; at += interval {
		time.Sleep(time.Until(m.began.Add(at)))
		before := onTheWall()
		m.fleet.AdvanceTo(at)
		m.show()
		for i, rep := range m.fleet.Replicas {
			require.NoError(m.t, m.leaks.ConsumeMetrics(m.t.Context(), scraped(rep, i, time.Now())))
		}
		// The library has looked at its file before, and does not look again within a millisecond.
		for rest := enough - (onTheWall() - before); rest > 0; rest = enough - (onTheWall() - before) {
			_ = syscall.Nanosleep(&syscall.Timespec{Nsec: rest}, nil) // a signal ends it
		}
	}
	m.stop()
}

// onTheWall is the time outside of the bubble, in nanoseconds.
func onTheWall() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// show makes the GPUs look as the engines say: NVML tells pages of 2 MiB, and what a step needs besides comes and goes.
func (m *machine) show() {
	now := m.fleet.Now()
	for i, rep := range m.fleet.Replicas {
		running := float64(rep.Engine.Stats().Running)
		m.most[i] = max(m.most[i], running)
		m.jitter[i] = 0.5*m.jitter[i] + m.random[i].NormFloat64()*20*mib
		bytes := weights + rep.Engine.Leaked(now) + m.kind.follows*running + m.kind.keeps*m.most[i] + math.Abs(m.jitter[i])
		if m.kind.sleeps && now%(3*time.Hour) >= 160*time.Minute {
			bytes -= weights - asleep
		}
		bytes = min(math.Round(bytes/(2*mib))*2*mib, weights+headroom)
		if now <= 10*time.Minute {
			m.settled[i] = bytes
		}
		d := &m.world.GPUs[i]
		d.Processes[0].Memory = uint64(bytes)
		d.Set("memory.used", bytes)
	}
	require.NoError(m.t, m.world.Write(os.Getenv(fakegpu.Variable)))
}

// told hears the events.
func (m *machine) told(_ context.Context, ld plog.Logs) error {
	for _, rl := range ld.ResourceLogs().All() {
		for _, r := range rl.ScopeLogs().At(0).LogRecords().All() {
			if r.EventName() != "gpu.leak.opened" {
				continue
			}
			attributes := r.Attributes().AsRaw()
			for i := range m.world.GPUs {
				if m.world.GPUs[i].UUID != attributes["hw.id"] {
					continue
				}
				o := &m.opened[i]
				if o.times++; o.times == 1 {
					o.hours = r.Timestamp().AsTime().Sub(m.began).Hours()
					o.used = (attributes["gpu.leak.memory"].(float64) - m.settled[i]) / (weights + headroom - m.settled[i])
					o.cause = attributes["gpu.leak.cause"].(string)
				}
			}
		}
	}
	return nil
}

// families are those of vLLM's that the connector looks at.
var families = map[string]bool{"vllm:num_requests_running": true, "vllm:kv_cache_usage_perc": true, "vllm:request_success_total": true}

// scraped is what a Prometheus receiver makes of an engine's exposition that it has found by its pod.
func scraped(rep *fleet.Replica, i int, now time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	for k, v := range map[string]string{
		"service.name": "vllm", "service.instance.id": fmt.Sprintf("10.0.0.%d:8000", i), "k8s.namespace.name": "llm", "k8s.pod.name": rep.Labels["k8s.pod.name"],
	} {
		rm.Resource().Attributes().PutStr(k, v)
	}
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	for _, mf := range exposition.Families(exposition.Identity{Model: rep.Model}, rep.Engine.Stats()) {
		if !families[mf.GetName()] {
			continue
		}
		m := metrics.AppendEmpty()
		m.SetName(mf.GetName())
		var points pmetric.NumberDataPointSlice
		if mf.GetType() == dto.MetricType_COUNTER {
			sum := m.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			points = sum.DataPoints()
		} else {
			points = m.SetEmptyGauge().DataPoints()
		}
		for _, each := range mf.Metric {
			p := points.AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(now))
			p.SetDoubleValue(each.GetCounter().GetValue() + each.GetGauge().GetValue())
			for _, l := range each.GetLabel() {
				p.Attributes().PutStr(l.GetName(), l.GetValue())
			}
		}
	}
	md.MarkReadOnly()
	return md
}

// traffic are requests of five tokens, to all engines in turn.
type traffic struct {
	random *rand.Rand
	daily  bool
	now    float64 // seconds
}

func newTraffic(seed uint64, daily bool) *traffic {
	return &traffic{random: rand.New(rand.NewPCG(seed, 3)), daily: daily}
}

// Next is a Poisson process, whose rate has its lowest at 4 in the night: the machine is started at six.
func (s *traffic) Next() (trace.Row, bool) {
	for {
		const most = 1.8
		s.now += s.random.ExpFloat64() / (most * arrivals * gpus)
		rate := 1.0
		if s.daily {
			rate = 1 - 0.8*math.Cos(2*math.Pi*(s.now/3600+6-4)/24)
		}
		if s.random.Float64()*most < rate {
			return trace.Row{At: time.Duration(s.now * float64(time.Second)), PromptTokens: 100, OutputTokens: 5}, true
		}
	}
}
