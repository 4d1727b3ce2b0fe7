// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// leakConfig judges within a minute what takes three hours by default. Verdicts of promises come in, too.
const leakConfig = `
extensions:
  slo_catalog: {paths: [%[1]s/slo.yaml]}
receivers:
  nvidia_gpu: {nvml_library: %[1]s/libnvidia-ml.so.1, source: nvml, collection_interval: 500ms, retry_interval: 200ms}
  prometheus:
    config:
      scrape_configs:
        - {job_name: chat, scrape_interval: 1s, static_configs: [{targets: [%[2]q]}]}
connectors:
  slo: {lateness: 1s}
  slo/cost: {lateness: 1s}
  gpu_leak: {catalog: slo_catalog, min_duration: 1m, lateness: 2s, idle_timeout: 20s, process_ttl: 20s}
exporters:
  nop:
  file: {path: %[1]s/events.jsonl, flush_interval: 100ms}
  file/cost: {path: %[1]s/metrics.jsonl, flush_interval: 100ms}
service:
  extensions: [slo_catalog]
  pipelines:
    metrics: {receivers: [nvidia_gpu, prometheus], exporters: [slo, gpu_leak]}
    metrics/slo: {receivers: [slo], exporters: [gpu_leak, nop]}
    metrics/leak: {receivers: [gpu_leak], exporters: [slo/cost]}
    metrics/cost: {receivers: [slo/cost], exporters: [file/cost]}
    logs/leak: {receivers: [gpu_leak], exporters: [file]}
  telemetry: {metrics: {level: none}}
`

// memorySLO promises that a request takes no more than 8 TiB, which is kept for long.
const memorySLO = `---
apiVersion: openslo/v1
kind: SLO
metadata:
  name: chat-memory
  annotations: {otelcol-llm.dev/slo-id: "llm:chat:memory:request", otelcol-llm.dev/class: cost}
spec:
  service: chat
  indicator:
    metadata: {name: memory}
    spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: gpu.memory.per_request, unit: bytes}}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 8796093022208, target: 0.99}]
`

// leakScenario leaks a quarter of a MiB with each request, and a MiB a simulated second, which is 30 of the wall's.
const leakScenario = `
traffic: {rate: 2}
faults:
  - {kind: leak, rate: 1048576, per_request: 262144}
`

// engineOnGPU is a simulated engine, whose memory a fake GPU shows.
type engineOnGPU struct {
	t     *testing.T
	dir   string
	world *fakegpu.Scenario
	cmd   *exec.Cmd
	pid   int
}

func (e *engineOnGPU) start(listen, control string) {
	e.t.Helper()
	e.cmd = exec.Command(filepath.Join(spawn.Root(e.t), "bin", "llmsim"), "-scenario", filepath.Join(e.dir, "scenario.yaml"), "-speed", "30", "-listen", listen, "-control", control)
	require.NoError(e.t, e.cmd.Start())
	cmd := e.cmd
	e.pid = cmd.Process.Pid
	e.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // where the test has not ended it
}

func (e *engineOnGPU) stop() {
	e.t.Helper()
	require.NoError(e.t, e.cmd.Process.Kill())
	_ = e.cmd.Wait() // it was killed
}

// shown is what an engine had leaked when the GPU was made to look so.
type shown struct {
	at     time.Time
	leaked uint64
}

// show makes the GPU look as the engine says.
func (e *engineOnGPU) show(control string) shown {
	e.t.Helper()
	var status struct {
		Replicas []struct {
			LeakedBytes uint64 `json:"leaked_bytes"`
		} `json:"replicas"`
	}
	leaked := uint64(0)
	if text := get(e.t, "http://"+control+"/status"); text != "" {
		require.NoError(e.t, json.Unmarshal([]byte(text), &status))
		leaked = status.Replicas[0].LeakedBytes
	}
	g := &e.world.GPUs[0]
	g.Processes = g.Processes[:1]
	g.Processes[0].PID, g.Processes[0].Memory = uint32(e.pid), 40<<30+leaked
	g.Set("memory.used", float64(g.Processes[0].Memory))
	require.NoError(e.t, e.world.Write(filepath.Join(e.dir, "gpus")))
	return shown{time.Now(), leaked}
}

// leakEvents are those that were told so far.
func leakEvents(t *testing.T, dir string) (all []plog.LogRecord) {
	t.Helper()
	each(t, filepath.Join(dir, "events.jsonl"), func(line []byte) {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line)
		require.NoError(t, err)
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, r := range sl.LogRecords().All() {
					all = append(all, r)
				}
			}
		}
	})
	return all
}

// Scenario: an engine leaks with time and with each request; the driver shows its process, and its /metrics know nothing of that. Then it is killed and started
// anew. Guarantees: the leak is told once, of that process, with its rate, its cause, what each request leaves behind and the promises that it will
// break; the promise on the memory of a request is judged; and it is over when the process has ended.
func TestALeakOfAnEngineIsToldAndIsOverWithIt(t *testing.T) {
	parallel(t)
	dir, listen, control := t.TempDir(), spawn.FreeEndpoint(t), spawn.FreeEndpoint(t)
	for name, text := range map[string]string{"scenario.yaml": leakScenario, "slo.yaml": strings.ReplaceAll(ttftSLO, "value: 800", "value: 60000") + memorySLO} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	_, err := fakegpu.Build(dir)
	require.NoError(t, err)
	e := &engineOnGPU{t: t, dir: dir, world: fakegpu.H100()}
	e.start(listen, control)
	pid := e.pid
	e.show(control)
	c := spawn.Start(t, spawn.Options{
		Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(leakConfig, dir, listen))}, Env: []string{fakegpu.Variable + "=" + filepath.Join(dir, "gpus")},
	})
	c.WaitReady()

	first := e.show(control)
	last := first
	until := func(done func() bool) {
		t.Helper()
		for end := time.Now().Add(5 * time.Minute); !done(); time.Sleep(250 * time.Millisecond) {
			require.True(t, time.Now().Before(end), "%d events", len(leakEvents(t, dir)))
			last = e.show(control)
		}
	}
	until(func() bool { return len(leakEvents(t, dir)) > 0 })
	t.Logf("told after %s", last.at.Sub(first.at).Round(time.Second))
	rate := float64(last.leaked-first.leaked) / last.at.Sub(first.at).Seconds() // of what was there to be seen, however fast the engine was
	opened := leakEvents(t, dir)[0]
	got := opened.Attributes().AsRaw()
	assert.Equal(t, "gpu.leak.opened", opened.EventName())
	assert.Equal(t, int64(pid), got["process.pid"])
	assert.Equal(t, "llmsim", got["process.executable.name"])
	assert.Equal(t, e.world.GPUs[0].UUID, got["hw.id"])
	assert.Equal(t, "not_returned", got["gpu.leak.cause"])
	assert.InEpsilon(t, rate, got["gpu.leak.rate"], 0.2)
	assert.InEpsilon(t, (1<<20+2*262144)/2, got["gpu.leak.per_served_request"], 0.3)
	assert.Positive(t, got["gpu.memory.per_request"])
	assert.Equal(t, []any{"llm:chat:ttft:p95", "llm:chat:memory:request"}, got["slo.ids"])
	assert.Equal(t, []any{"exhaustion", "memory_per_request"}, got["gpu.leak.slo_breaks_by"])
	assert.InEpsilon(t, got["gpu.leak.time_to_exhaustion"], got["gpu.leak.slo_breaks_in"].([]any)[0], 1e-9)
	assert.Regexp(t, fmt.Sprintf(`^process %d \(llmsim\) (on \S+ )?leaks `, pid), opened.Body().Str())
	assert.Greater(t, last.leaked, uint64(1<<30))

	cost := &judge{t: t, dir: dir}
	require.Eventually(t, func() bool {
		kept, _ := cost.newest("slo.sli.events", map[string]string{"slo_id": "llm:chat:memory:request", "slo_class": "cost", "outcome": "good"})
		return kept.value > 0
	}, patience, 100*time.Millisecond)

	e.stop()
	e.start(listen, control)
	// told are the events of that leak: the one that follows leaks, too.
	told := func() (all []plog.LogRecord) {
		for _, r := range leakEvents(t, dir) {
			if r.Attributes().AsRaw()["gpu.leak.id"] == got["gpu.leak.id"] {
				all = append(all, r)
			}
		}
		return all
	}
	until(func() bool { return len(told()) > 1 })
	assert.Zero(t, c.Stop())
	require.Len(t, told(), 2)
	assert.Equal(t, "gpu.leak.closed", told()[1].EventName())
	assert.Equal(t, "the process has ended", told()[1].Body().Str())
}
