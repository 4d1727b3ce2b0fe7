// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakecuda"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
)

const cudaConfig = `
extensions:
  healthcheckv2:
    use_v2: true
    component_health: {include_permanent_errors: true, include_recoverable_errors: true, recovery_duration: 0s}
    http: {endpoint: %[1]q, status: {enabled: true, path: /status}}
receivers:
  cuda_memory: {collection_interval: 200ms, scan_interval: 100ms, retry_interval: 200ms, proc_root: %[2]s, events: {launches: true}}
exporters:
  prometheus: {endpoint: %[3]q, metric_expiration: 1h}
  otlp_http: {endpoint: %[4]q, compression: none, sending_queue: {enabled: false}}
service:
  extensions: [healthcheckv2]
  pipelines:
    metrics: {receivers: [cuda_memory], exporters: [prometheus, otlp_http]}
  telemetry:
    metrics:
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %[5]d}}}}]
`

// cuda is a Collector that watches CUDA memory of the processes that it is shown, and not of those of the tests that run beside it.
type cuda struct {
	*gpus
	own  string // URL of its own telemetry
	into *sink
}

// show puts a process into a /proc of the Collector's own.
func show(t *testing.T, proc string, a *allocator) {
	t.Helper()
	pid := strconv.Itoa(a.PID())
	require.NoError(t, os.Symlink(filepath.Join("/proc", pid), filepath.Join(proc, pid)))
}

// only is the Collector with these capabilities and no others.
func only(t *testing.T, capabilities ...string) string {
	t.Helper()
	wrapper := filepath.Join(t.TempDir(), "otelcol-llm")
	script := fmt.Sprintf("#!/bin/sh\nexec %s %s \"$@\"\n", strings.Join(confined(t, capabilities...), " "), spawn.Binary(t))
	require.NoError(t, os.WriteFile(wrapper, []byte(script), 0o755))
	return wrapper
}

// startCUDA starts it as a program does, "" for the binary as it is.
func startCUDA(t *testing.T, program string) *cuda {
	t.Helper()
	health, prometheus, port := spawn.FreeEndpoint(t), spawn.FreeEndpoint(t), spawn.FreePort(t)
	c := &cuda{
		gpus: &gpus{t: t, dir: t.TempDir(), status: "http://" + health + "/status?verbose", series: "http://" + prometheus + "/metrics"},
		own:  fmt.Sprintf("http://127.0.0.1:%d/metrics", port), into: newSink(t),
	}
	c.Collector = spawn.Start(t, spawn.Options{Binary: program, Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(cudaConfig, health, c.dir, prometheus, c.into.URL, port))}})
	c.WaitReady()
	return c
}

// confined is a command that executes what follows it with these capabilities and no others.
func confined(t *testing.T, capabilities ...string) []string {
	t.Helper()
	setpriv, err := exec.LookPath("setpriv")
	require.NoError(t, err, "apt-get install util-linux")
	return []string{setpriv, "--inh-caps=-all", "--bounding-set=" + strings.Join(append([]string{"-all"}, capabilities...), ",+")}
}

// allocator is a process that allocates as it is told, and has no capability.
type allocator struct {
	*fakecuda.Workload
	t   *testing.T
	cmd *exec.Cmd
}

func startAllocator(t *testing.T, program string, env ...string) *allocator {
	t.Helper()
	command := append(confined(t), program)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	w, err := fakecuda.Run(cmd)
	require.NoError(t, err)
	t.Cleanup(func() { workloadtest.End(cmd) })
	return &allocator{w, t, cmd}
}

func (e *allocator) do(command, want string) {
	e.t.Helper()
	got, err := e.Do(command)
	require.NoError(e.t, err)
	assert.Equal(e.t, want, got, command)
}

// has waits until the series of a process are those.
func (c *cuda) has(a *allocator, want map[string]float64) {
	c.t.Helper()
	assert.EventuallyWithT(c.t, func(t *assert.CollectT) {
		page := get(c.t, c.series)
		for name, value := range want {
			got, err := strconv.ParseFloat(seriesOf(page, name+"{", pid(a)), 64)
			require.NoError(t, err, name)
			assert.Equal(t, value, got, name)
		}
	}, patience, 50*time.Millisecond)
}

// lacks waits until there is no series of a process.
func (c *cuda) lacks(a *allocator) {
	c.t.Helper()
	assert.Eventually(c.t, func() bool { return !strings.Contains(get(c.t, c.series), pid(a)) }, patience, 50*time.Millisecond)
}

func pid(a *allocator) string { return fmt.Sprintf(`process_pid="%d"`, a.PID()) }

// Scenario: three processes: one that has loaded the runtime before the Collector starts, one that comes later and has the runtime linked
// in, one that uses the driver alone. They allocate, fail, free and launch; one leaks on, and is killed with SIGKILL.
// Guarantees: two capabilities suffice; bytes and counts are exact; what the runtime asks the driver for is not counted twice; the one that is killed is told with its
// last counters, and is gone; and after the Collector the others go on.
func TestCUDAMemoryIsCountedToTheByte(t *testing.T) {
	parallel(t)
	built, err := fakecuda.Build(t.TempDir())
	require.NoError(t, err)
	early, linked, driver := startAllocator(t, built.Workload), startAllocator(t, built.StaticWorkload), startAllocator(t, built.Workload)
	early.do("load "+built.Runtime, "")
	c := startCUDA(t, only(t, "bpf", "perfmon"))
	show(t, c.dir, early)
	c.WaitLog("CUDA memory is watched", patience)
	show(t, c.dir, linked)
	show(t, c.dir, driver)
	driver.do("load "+built.Driver, "")
	require.Eventually(t, func() bool { return seriesOf(get(t, c.own), "cuda_memory_libraries{") == "3" }, patience, 50*time.Millisecond)

	early.do("alloc cudaMalloc 100 4096", "100 0")
	early.do("free cudaFree 40", "40 0")
	early.do(fmt.Sprintf("alloc cudaMalloc 3 %d", int64(fakecuda.Capacity)), "0 3")
	early.do("launch cudaLaunchKernel 50", "50 0")
	linked.do("alloc cudaMallocAsync 1000 1000001 4", "4000 0")
	driver.do("alloc cuMemCreate 7 2097152", "7 0")
	driver.do("churn cuMemAlloc_v2 cuMemFree_v2 500 512", "500 0")
	c.has(early, map[string]float64{
		"cuda_memory_live_bytes": 245760, "cuda_memory_allocated_bytes_total": 409600, "cuda_memory_allocations_total": 100, "cuda_memory_frees_total": 40,
		"cuda_memory_failures_total": 3, "cuda_kernel_launches_total": 50, "cuda_memory_allocation_size_bytes_count": 100,
		"cuda_memory_allocation_size_bytes_sum": 409600, "cuda_kernel_launch_duration_seconds_count": 50,
	})
	c.has(linked, map[string]float64{"cuda_memory_live_bytes": 4000004000, "cuda_memory_allocations_total": 4000, "cuda_memory_frees_total": 0})
	c.has(driver, map[string]float64{"cuda_memory_live_bytes": 14680064, "cuda_memory_allocations_total": 507, "cuda_memory_frees_total": 500})

	for i := 1; i <= 3; i++ {
		early.do("alloc cudaMallocManaged 10 1048576", "10 0")
		c.has(early, map[string]float64{"cuda_memory_live_bytes": float64(245760 + i*10<<20)})
	}
	c.has(early, map[string]float64{"cuda_memory_managed_bytes": 30 << 20})
	early.do("device cudaDeviceReset", "1 0")
	c.has(early, map[string]float64{"cuda_memory_live_bytes": 0, "cuda_memory_managed_bytes": 0})
	early.do("alloc cudaMalloc 1 1", "1 0")
	_ = early.Kill()
	c.lacks(early)
	c.has(linked, map[string]float64{"cuda_memory_live_bytes": 4000004000})
	last := func() (n float64) {
		for _, h := range c.into.all("cuda.memory.allocations", "process.pid", strconv.Itoa(early.PID())) {
			for _, v := range h {
				n = max(n, v)
			}
		}
		return n
	}
	assert.Eventually(t, func() bool { return last() == 131 }, patience, 50*time.Millisecond)
	c.soon(c.status, `"receiver:cuda_memory":{"healthy":true,"status":"StatusOK"`)
	for _, reason := range []string{"max_entries", "processes", "threads", "unreadable", "unknown_free", "unreturned", "untold_change"} {
		assert.Equal(t, "0", seriesOf(get(t, c.own), "cuda_memory_dropped", `reason="`+reason+`"`), "nothing is lost")
	}
	assert.Zero(t, c.Stop())
	linked.do("free cudaFree 4000", "4000 0")
	driver.do("free cuMemRelease 7", "7 0")
}

// Scenario: a process holds fifty blocks when the Collector starts, and replaces all of them.
// Guarantees: what it frees of before is counted from zero on, so that nobody takes the rise of its live bytes for a leak, and live
// does not exceed what it holds.
func TestARestartedCollectorSaysWhatItDoesNotKnow(t *testing.T) {
	parallel(t)
	built, err := fakecuda.Build(t.TempDir())
	require.NoError(t, err)
	e := startAllocator(t, built.Workload)
	e.do("load "+built.Runtime, "")
	e.do("alloc cudaMalloc 50 1048576", "50 0")
	missed := func(c *cuda, unknown string) {
		t.Helper()
		assert.EventuallyWithT(t, func(t *assert.CollectT) {
			page := get(c.t, c.series)
			assert.Equal(t, unknown, seriesOf(page, "cuda_memory_missed", `cuda_memory_miss="unknown_free"`, pid(e)))
			assert.Equal(t, "0", seriesOf(page, "cuda_memory_missed", `cuda_memory_miss="max_entries"`, pid(e)))
		}, patience, 50*time.Millisecond)
	}
	for range 2 {
		c := startCUDA(t, "")
		show(t, c.dir, e)
		c.WaitLog("CUDA memory is watched", patience)
		e.do("alloc cudaMalloc 1 1048576", "1 0")
		e.do("free cudaFree 1", "1 0")
		missed(c, "0")
		e.do("free cudaFree 20", "20 0")
		e.do("alloc cudaMalloc 20 1048576", "20 0")
		missed(c, "20")
		c.has(e, map[string]float64{"cuda_memory_live_bytes": 20 << 20})
		e.do("free cudaFree 50", "50 0")
		e.do("alloc cudaMalloc 50 1048576", "50 0")
		missed(c, "50")
		c.has(e, map[string]float64{"cuda_memory_live_bytes": 50 << 20})
		assert.Zero(t, c.Stop())
	}
}

// Scenario: a process in a container of a pod, of which the kubelet has a log, with one GPU by its environment; the driver sees it, too.
// Guarantees: cuda.memory.live has the labels and the hw.id that nvidia.gpu.process.memory.usage has, so that they join.
func TestCUDAMemoryHasTheLabelsOfGPUMemory(t *testing.T) {
	parallel(t)
	const uid, name = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0", "chat-0_llm_vllm-"
	id := strings.Repeat("b", 64)
	built, err := fakecuda.Build(t.TempDir())
	require.NoError(t, err)
	dir, world := t.TempDir(), fakegpu.Server(1, 0, 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+id+".log"), nil, 0o600))
	e := startAllocator(t, built.Workload, "NVIDIA_VISIBLE_DEVICES="+world.GPUs[0].UUID)
	workloadtest.Move(t, e.cmd, workloadtest.Pod(uid, id))
	world.GPUs[0].Processes = []fakegpu.Process{{Kind: fakegpu.Compute, PID: uint32(e.PID()), Memory: 1 << 30,
		GPUInstance: fakegpu.NoInstance, ComputeInstance: fakegpu.NoInstance, SM: fakegpu.Idle}}
	library, err := fakegpu.Build(dir)
	require.NoError(t, err)
	proc := t.TempDir()
	show(t, proc, e)
	scenario, into := filepath.Join(dir, "scenario"), newSink(t)
	require.NoError(t, world.Write(scenario))
	c := spawn.Start(t, spawn.Options{
		Env: []string{fakegpu.Variable + "=" + scenario},
		Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(`
receivers:
  nvidia_gpu: {collection_interval: 200ms, source: nvml, nvml_library: %s, kubelet_logs: %[2]s}
  cuda_memory: {collection_interval: 200ms, scan_interval: 100ms, kubelet_logs: %[2]s, proc_root: %[4]s}
exporters:
  otlp_http: {endpoint: %[3]s, compression: none, sending_queue: {enabled: false}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [nvidia_gpu, cuda_memory], exporters: [otlp_http]}
`, library, dir, into.URL, proc))},
	})
	c.WaitReady()
	e.do("load "+built.Runtime, "")
	c.WaitLog("CUDA memory is watched", patience)
	e.do("alloc cudaMalloc 3 1024", "3 0")

	labels := func(metric string) (key string) {
		require.Eventually(t, func() bool {
			for series := range into.all(metric, "process.pid", strconv.Itoa(e.PID())) {
				key = series
			}
			return key != ""
		}, patience, 50*time.Millisecond, metric)
		return strings.TrimPrefix(key, metric)
	}
	of := labels("cuda.memory.live")
	assert.Equal(t, strings.Replace(labels(processMemory), `,hw.name="GPU 0"`, "", 1), of)
	for _, part := range []string{`hw.id="` + world.GPUs[0].UUID, `container.id="` + id, `k8s.pod.uid="` + uid, `k8s.pod.name="chat-0"`, `process.executable.name=`} {
		assert.Contains(t, of, part)
	}
	assert.Eventually(t, func() bool {
		all := into.all("cuda.memory.live", "process.pid", strconv.Itoa(e.PID()))
		return len(all) == 1 && all["cuda.memory.live"+of].last().value == 3072
	}, patience, 50*time.Millisecond)
	assert.Zero(t, c.Stop())
}

// Scenario: the Collector may do nothing that takes a privilege. Guarantees: it starts, says in one line what it would take, is
// healthy but for the status of the one component, and tells nothing.
func TestWithoutPrivilegesCUDAMemoryWaits(t *testing.T) {
	parallel(t)
	c := startCUDA(t, only(t))
	c.WaitLog("nothing is seen of CUDA memory; it is tried again", patience)
	c.soon(c.status, `"receiver:cuda_memory":{"healthy":false,"status":"StatusRecoverableError"`, "CAP_BPF and CAP_PERFMON")
	time.Sleep(time.Second) // five tries
	assert.Equal(t, 1, strings.Count(c.Logs(), "nothing is seen of CUDA memory"), c.Logs())
	assert.NotContains(t, get(t, c.series), "cuda_")
	assert.True(t, c.Running())
	assert.Zero(t, c.Stop())
}

// Scenario: a machine on which nothing uses CUDA, and then something does. Guarantees: the Collector says so once, and takes it up
// without a restart.
func TestWithoutCUDATheCollectorWaits(t *testing.T) {
	parallel(t)
	built, err := fakecuda.Build(t.TempDir())
	require.NoError(t, err)
	c := startCUDA(t, "")
	c.WaitLog("no process uses CUDA yet", patience)
	c.soon(c.status, "StatusRecoverableError", "no process has loaded CUDA")
	e := startAllocator(t, built.Workload)
	show(t, c.dir, e)
	e.do("load "+built.Runtime, "")
	c.WaitLog("CUDA memory is watched", patience)
	e.do("alloc cudaMalloc 1 4096", "1 0")
	c.has(e, map[string]float64{"cuda_memory_live_bytes": 4096})
	c.soon(c.status, `"receiver:cuda_memory":{"healthy":true,"status":"StatusOK"`)
	assert.Equal(t, 1, strings.Count(c.Logs(), "no process uses CUDA yet"), c.Logs())
	assert.Zero(t, c.Stop())
}
