// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

const gpuConfig = `
extensions:
  healthcheckv2:
    use_v2: true
    component_health: {include_permanent_errors: true, include_recoverable_errors: true, recovery_duration: 0s}
    http: {endpoint: %[1]q, status: {enabled: true, path: /status}}
receivers:
  nvidia_gpu:
    nvml_library: %[2]s/libnvidia-ml.so.1
    source: %[4]s
    collection_interval: 200ms
    retry_interval: 200ms
    release_window: 20s
exporters:
  prometheus: {endpoint: %[3]q, metric_expiration: 1h, resource_to_telemetry_conversion: {enabled: true}}
  file: {path: %[2]s/events.jsonl, flush_interval: 100ms}
service:
  extensions: [healthcheckv2]
  pipelines:
    metrics: {receivers: [nvidia_gpu], exporters: [prometheus]}
    logs: {receivers: [nvidia_gpu], exporters: [file]}
  telemetry: {metrics: {level: none}}
`

// gpus is a Collector that reads GPUs of a fake.
type gpus struct {
	*spawn.Collector
	t              *testing.T
	dir            string
	status, series string // URLs
}

func startGPUs(t *testing.T) *gpus {
	t.Helper()
	return startGPUsBy(t, "nvml")
}

// startGPUsBy starts it with a source, and what else is set.
func startGPUsBy(t *testing.T, source string) *gpus {
	t.Helper()
	health, prometheus := spawn.FreeEndpoint(t), spawn.FreeEndpoint(t)
	g := &gpus{t: t, dir: t.TempDir(), status: "http://" + health + "/status?verbose", series: "http://" + prometheus + "/metrics"}
	return g.start(health, prometheus, source)
}

func (g *gpus) start(health, prometheus, source string) *gpus {
	g.t.Helper()
	config := spawn.WriteConfig(g.t, fmt.Sprintf(gpuConfig, health, g.dir, prometheus, strings.ReplaceAll(source, "DIR", g.dir)))
	g.Collector = spawn.Start(g.t, spawn.Options{Configs: []string{config}, Env: []string{fakegpu.Variable + "=" + g.scenario()}})
	g.WaitReady()
	return g
}

func (g *gpus) scenario() string { return filepath.Join(g.dir, "scenario") }

// install puts the library there, without some of its functions.
func (g *gpus) install(missing ...string) {
	g.t.Helper()
	_, err := fakegpu.Build(g.dir, missing...)
	require.NoError(g.t, err)
}

func (g *gpus) write(world *fakegpu.Scenario) {
	g.t.Helper()
	require.NoError(g.t, world.Write(g.scenario()))
}

// soon waits until a page has all of the texts.
func (g *gpus) soon(url string, texts ...string) (page string) {
	g.t.Helper()
	has := func() bool {
		page = get(g.t, url)
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(page, text) })
	}
	if !assert.Eventually(g.t, has, patience, 50*time.Millisecond) {
		g.t.Fatalf("no %q in %s", texts, page)
	}
	return page
}

func get(t *testing.T, url string) string {
	resp, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

// events are the log events written so far.
func (g *gpus) events() (names []string) {
	g.t.Helper()
	each(g.t, filepath.Join(g.dir, "events.jsonl"), func(line []byte) {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line)
		require.NoError(g.t, err)
		for _, rl := range ld.ResourceLogs().All() {
			for _, r := range rl.ScopeLogs().At(0).LogRecords().All() {
				names = append(names, r.EventName())
			}
		}
	})
	return names
}

// Scenario: a machine without any NVIDIA library; then the library comes, and at last the driver.
// Guarantees: the Collector starts, says so in one clear line, its status is recoverable; and when the driver is there, it
// reads without a restart.
func TestWithoutNVIDIATheCollectorRunsAndWaits(t *testing.T) {
	parallel(t)
	g := startGPUs(t)
	g.WaitLog("no GPU is read; it is tried again", patience)
	g.soon(g.status, "StatusRecoverableError", "libnvidia-ml.so.1")
	time.Sleep(time.Second) // five tries
	assert.Equal(t, 1, strings.Count(g.Logs(), "no GPU is read"), g.Logs())
	assert.NotContains(t, get(t, g.series), "hw_")

	g.install()
	g.soon(g.status, "StatusRecoverableError", "driver")
	g.write(fakegpu.H100())
	g.soon(g.series, "hw_power_watts", "nvidia_gpu_xid_total", "nvidia_gpu_memory_unattributed_bytes")
	g.WaitLog("GPUs are read", patience)
	page := g.soon(g.status, `"receiver:nvidia_gpu":{"healthy":true,"status":"StatusOK"`)
	assert.NotContains(t, page, "StatusRecoverableError")
	assert.Zero(t, g.Stop())
}

// Scenario: a driver that is older than its users think lacks functions.
// Guarantees: the metrics that are made of them are off, all others are there, and the process lives.
func TestAFunctionThatTheDriverLacksCostsItsMetricsOnly(t *testing.T) {
	t.Parallel()
	f := func(name string, world *fakegpu.Scenario, missing []string, absent ...string) {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			g := startGPUs(t)
			g.install(missing...)
			g.write(world)
			page := g.soon(g.series, "hw_power_watts", "hw_temperature_celsius", "hw_gpu_memory_usage_bytes", "nvidia_gpu_process_memory_usage_bytes")
			for _, name := range absent {
				assert.NotContains(t, page, name)
			}
			time.Sleep(time.Second)
			assert.True(t, g.Running())
			assert.Zero(t, g.Stop())
		})
	}
	f("two functions", fakegpu.H100(), []string{"nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetMemoryInfo_v2"}, "hw_energy", "nvidia_gpu_memory_reserved")
	old := fakegpu.H100().Old()
	f("an old driver", old, old.Missing, "nvidia_gpu_memory_reserved", "nvidia_gpu_sm_active")
}

// Scenario: an operator asks for the GPUs, and gives them back.
// Guarantees: no handle is open in between; then it goes on.
func TestSIGUSR1GivesTheHandlesBack(t *testing.T) {
	parallel(t)
	g := startGPUs(t)
	g.install()
	g.write(fakegpu.H100())
	g.soon(g.series, "hw_power_watts")
	open := func() fakegpu.Stats {
		stats, err := fakegpu.NVMLStats(g.scenario())
		require.NoError(t, err)
		return stats
	}
	assert.Equal(t, uint64(1), open().Initialised)
	g.Signal(syscall.SIGUSR1)
	g.WaitLog("all handles of GPUs are given back", patience)
	assert.Zero(t, open().Initialised)
	assert.Zero(t, open().EventSets)
	g.soon(g.status, "StatusRecoverableError", "all handles are given back until")
	require.Eventually(t, func() bool { return open().Initialised == 1 }, patience, 50*time.Millisecond)
	g.soon(g.status, `"receiver:nvidia_gpu":{"healthy":true,"status":"StatusOK"`)
	assert.Zero(t, g.Stop())
	assert.Zero(t, open().Initialised, "none is left open at the end")
}

// Scenario: a GPU reports an Xid and is lost, while its neighbours work; the driver is changed.
// Guarantees: events tell it, the state of that GPU is failed, the others report on, and the process lives.
func TestWhatHappensToAGPUIsToldAndSurvived(t *testing.T) {
	parallel(t)
	g := startGPUs(t)
	g.install()
	world := fakegpu.Server(3, 2, 1_000_000)
	g.write(world)
	g.soon(g.series, "hw_power_watts")
	world.Xid(1, 79)
	world.Fail("*", 1, 15)
	g.write(world)
	id := world.GPUs[1].UUID
	page := ""
	require.Eventually(t, func() bool {
		page = get(t, g.series)
		return seriesOf(page, "hw_status{", id, `hw_state="failed"`) == "1" && seriesOf(page, "nvidia_gpu_xid_total{", id, `nvidia_xid_code="79"`) == "1" &&
			seriesOf(page, "hw_power_watts{", id) == ""
	}, patience, 50*time.Millisecond)
	assert.NotEmpty(t, seriesOf(page, "hw_power_watts{", world.GPUs[2].UUID))
	assert.Equal(t, "1", seriesOf(page, "hw_status{", world.GPUs[0].UUID, `hw_state="ok"`))

	world.Rules, world.Driver = []fakegpu.Rule{{Function: "*", GPU: fakegpu.All, Instance: fakegpu.All, Return: 9}}, "600.10"
	g.write(world)
	g.soon(g.status, "StatusRecoverableError")
	world.Rules = nil
	g.write(world)
	require.Eventually(t, func() bool { return seriesOf(get(t, g.series), "hw_power_watts{", id) != "" }, patience, 50*time.Millisecond)
	require.Eventually(t, func() bool { return len(g.events()) >= 4 }, patience, 50*time.Millisecond, "%v", g.events())
	assert.ElementsMatch(t, []string{"nvidia.gpu.xid", "nvidia.gpu.lost", "nvidia.gpu.recovered", "nvidia.driver.changed"}, g.events())
	assert.Zero(t, g.Stop())
}

// Scenario: a call of the driver blocks for ever, as on a card that is broken in a certain way; an operator reloads the
// configuration, and at last ends the Collector.
// Guarantees: the status says so, nothing of what was read is shown for the present, the reload is done, and the process ends by
// itself.
func TestADriverThatBlocksHoldsNothingUp(t *testing.T) {
	parallel(t)
	g := startGPUs(t)
	g.install()
	world := fakegpu.H100()
	g.write(world)
	g.soon(g.series, "hw_power_watts")
	world.Rules = []fakegpu.Rule{{Function: "nvmlDeviceGetPowerUsage", GPU: fakegpu.All, Instance: fakegpu.All, Delay: time.Hour}}
	g.write(world)
	g.WaitLog("no GPU is read: the driver does not answer", patience)
	g.soon(g.status, "StatusRecoverableError", "the driver has not answered for")
	assert.Eventually(t, func() bool { return !strings.Contains(get(t, g.series), "hw_") }, patience, 50*time.Millisecond)

	g.Signal(syscall.SIGHUP)
	g.WaitLog("the driver does not answer; it is left alone", patience)
	require.Eventually(t, func() bool { return strings.Count(g.Logs(), "Everything is ready") == 2 }, patience, 50*time.Millisecond)
	begin := time.Now()
	assert.Zero(t, g.Stop())
	t.Logf("ended after %s", time.Since(begin))
}

// Scenario: everything that a Prometheus may know of GPUs changes, while it forgets nothing by itself for an hour: processes come
// and go, a GPU is divided, the driver is another one, and at last the handles are given back.
// Guarantees: at each moment it shows what there is, all of it, and nothing of what was.
func TestPrometheusShowsWhatThereIsAndNothingOfWhatWas(t *testing.T) {
	parallel(t)
	g := startGPUsBy(t, "nvml\n    dcgm_exporter_names: true")
	g.install()
	world := fakegpu.Server(2, 3, 1_000_000)
	g.write(world)
	var page string
	// shows waits until the values of a label of a metric are those.
	shows := func(metric, label string, want ...string) {
		t.Helper()
		assert.EventuallyWithT(t, func(c *assert.CollectT) {
			page = get(t, g.series)
			assert.ElementsMatch(c, want, labels(page, metric, label), metric)
		}, patience, 50*time.Millisecond)
	}
	pids := func() (all []string) {
		for i := range world.GPUs {
			for _, p := range world.GPUs[i].Processes {
				all = append(all, fmt.Sprint(p.PID))
			}
		}
		return all
	}
	const processes, utilization = "nvidia_gpu_process_memory_usage_bytes", "hw_gpu_utilization_ratio"
	shows(processes, "process_pid", pids()...)
	for range 5 {
		for i := range world.GPUs {
			for j := range world.GPUs[i].Processes {
				world.GPUs[i].Processes[j].PID += 1000
			}
		}
		g.write(world)
		shows(processes, "process_pid", pids()...)
	}
	driver := world.Driver
	shows("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DRIVER_VERSION", driver, driver)
	world.Rules, world.Driver = []fakegpu.Rule{{Function: "*", GPU: fakegpu.All, Instance: fakegpu.All, Return: 9}}, "600.10"
	g.write(world)
	shows("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DRIVER_VERSION")
	world.Rules = nil
	g.write(world)
	shows("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DRIVER_VERSION", "600.10", "600.10")
	shows("nvidia_gpu_power_limit_watts", "hw_driver_version", "600.10", "600.10")
	assert.False(t, strings.Contains(page, driver), "%s is there", driver)

	first := world.GPUs[0].UUID
	assert.Eventually(t, func() bool { return slices.Contains(labels(get(t, g.series), utilization, "hw_id"), first) }, patience, 50*time.Millisecond)
	divided := fakegpu.H100MIG().GPUs[0]
	divided.UUID = first
	world.GPUs[0] = divided
	g.write(world)
	assert.Eventually(t, func() bool {
		page = get(t, g.series)
		return len(labels(page, "hw_gpu_memory_usage_bytes", "hw_parent")) > 2 && !slices.Contains(labels(page, utilization, "hw_id"), first)
	}, patience, 50*time.Millisecond, "a divided GPU has no utilization")
	assert.Contains(t, labels(page, utilization, "hw_id"), world.GPUs[1].UUID)

	g.Signal(syscall.SIGUSR1)
	g.WaitLog("all handles of GPUs are given back", patience)
	assert.Eventually(t, func() bool {
		page = get(t, g.series)
		return !strings.Contains(page, first)
	}, patience, 50*time.Millisecond)
	for _, prefix := range []string{"\nhw_", "\nnvidia_gpu_", "\nDCGM_"} {
		assert.False(t, strings.Contains("\n"+page, prefix), prefix)
	}
	assert.Zero(t, g.Stop())
}

// labels are the values of a label of the series of a metric.
func labels(page, metric, label string) (values []string) {
	for line := range strings.Lines(page) {
		if _, after, ok := strings.Cut(line, label+`="`); ok && strings.HasPrefix(line, metric+"{") {
			value, _, _ := strings.Cut(after, `"`)
			values = append(values, value)
		}
	}
	return values
}

// Scenario: NVML alone; then DCGM is installed, and its host engine restarts.
// Guarantees: profiling is GPM's, then DCGM's, and the process lives through all of it.
func TestDCGMIsTakenUpForProfiling(t *testing.T) {
	parallel(t)
	g := startGPUsBy(t, "auto\n    dcgm_library: DIR/libdcgm.so.4\n    dcgm_endpoint: localhost:5555")
	world := fakegpu.H100()
	g.write(world)
	_, err := fakegpu.BuildDCGM(g.dir)
	require.NoError(t, err)
	g.install()
	g.WaitLog("DCGM does the profiling", patience)
	of := func(name string) string { return seriesOf(get(t, g.series), name+"{", world.GPUs[0].UUID) }
	require.Eventually(t, func() bool { return of("nvidia_gpu_sm_active_ratio") == "0.9725" }, patience, 50*time.Millisecond)
	world.GPUs[0].Set("gpm.2", 50) // of which both fakes make their profiling
	world.Rules = []fakegpu.Rule{{Function: fakegpu.RuleHostEngine, GPU: fakegpu.All, Instance: fakegpu.All, Return: 1}}
	g.write(world)
	require.Eventually(t, func() bool { return of("nvidia_gpu_sm_active_ratio") == "0.5" && of("hw_power_watts") != "" }, patience, 50*time.Millisecond)
	assert.True(t, g.Running())
	assert.Zero(t, g.Stop())
	for _, stats := range []func(string) (fakegpu.Stats, error){fakegpu.NVMLStats, fakegpu.DCGMStats} {
		got, err := stats(g.scenario())
		require.NoError(t, err)
		assert.Zero(t, got.Initialised+got.EventSets+got.GPMSamples+got.Invalid+got.Uninitialised, "%+v", got)
	}
}

// seriesOf is the value of the series of a page whose line has all of the texts.
func seriesOf(page string, texts ...string) string {
lines:
	for line := range strings.Lines(page) {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue lines
			}
		}
		return strings.TrimSpace(line[strings.LastIndexByte(strings.TrimSpace(line), ' ')+1:])
	}
	return ""
}
