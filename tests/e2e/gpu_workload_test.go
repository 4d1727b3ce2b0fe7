// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
)

const processMemory = "nvidia.gpu.process.memory.usage"

// Scenario: a machine with four GPUs, a kubelet, and real processes in control groups as containerd makes them. A pod has the
// first GPU for itself; three pods share the second by time-slicing, of one of which the kubelet has a log; on the third is a
// process of Docker; on the fourth one that /proc does not know. Guarantees: each process has what can be proved of it and no
// more: no pod's name on what another pod uses, no value twice, and none left out.
func TestAProcessOnAGPUHasItsPodsLabels(t *testing.T) {
	parallel(t)
	const uid = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f"
	id := func(n int) string { return strings.Repeat(strconv.Itoa(n), 64) }
	logs, dir := t.TempDir(), t.TempDir()
	world := fakegpu.Server(4, 0, 1)
	memory := map[int]uint64{}
	use := func(gpu int, pid uint32) int {
		memory[int(pid)] = uint64(len(memory)+1) << 30
		world.GPUs[gpu].Processes = append(world.GPUs[gpu].Processes, fakegpu.Process{Kind: fakegpu.Compute, PID: pid, Memory: memory[int(pid)],
			GPUInstance: fakegpu.NoInstance, ComputeInstance: fakegpu.NoInstance, SM: fakegpu.Idle})
		return int(pid)
	}
	run := func(gpu int, name, cgroup string) int {
		cmd := workloadtest.Start(t, name)
		workloadtest.Move(t, cmd, cgroup)
		return use(gpu, workloadtest.PID(cmd))
	}
	own := run(0, "vllm", workloadtest.Pod(uid+"0", id(0)))
	logged := run(1, "python3.12", workloadtest.Pod(uid+"1", id(1)))
	second := run(1, "python3.12", workloadtest.Pod(uid+"2", id(2)))
	third := run(1, "python3.12", workloadtest.Pod(uid+"3", id(3)))
	docker := run(2, "tritonserver", "system.slice/docker-"+id(4)+".scope")
	gone := use(3, 4_190_000) // above what a machine hands out by default
	require.NoError(t, os.WriteFile(filepath.Join(logs, "batch-0_llm_worker-"+id(1)+".log"), nil, 0o600))

	shared := world.GPUs[1].UUID
	kubelet := workloadtest.NewKubelet(t,
		workloadtest.Holds("chat-0", workloadtest.Container("vllm", world.GPUs[0].UUID)),
		workloadtest.Holds("batch-0", workloadtest.Container("worker", shared+"::0")),
		workloadtest.Holds("batch-1", workloadtest.Container("worker", shared+"::1")),
		workloadtest.Holds("batch-2", workloadtest.Container("worker", shared+"::2")))
	library, err := fakegpu.Build(dir)
	require.NoError(t, err)
	scenario := filepath.Join(dir, "scenario")
	require.NoError(t, world.Write(scenario))

	into := newSink(t)
	c := spawn.Start(t, spawn.Options{
		Env: []string{fakegpu.Variable + "=" + scenario},
		Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(`
receivers:
  nvidia_gpu: {collection_interval: 500ms, source: nvml, nvml_library: %s, kubelet_socket: %s, kubelet_logs: %s, proc_root: /proc}
exporters:
  otlp_http: {endpoint: %s, compression: none, sending_queue: {enabled: false}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [nvidia_gpu], exporters: [otlp_http]}
`, library, kubelet.Socket, logs, into.URL))},
	})
	c.WaitReady()
	require.Eventually(t, func() bool {
		return len(into.all(processMemory, "k8s.pod.name", "chat-0")) == 1 && len(into.all(processMemory, "k8s.pod.name", "batch-0")) == 1
	}, patience, 100*time.Millisecond)
	into.forget() // the first second, in which the kubelet had not been asked
	require.Eventually(t, func() bool { return len(into.all(processMemory)) == len(memory) }, patience, 100*time.Millisecond)

	pod := func(n int, more ...string) []string {
		return append([]string{"container.id", id(n), "k8s.pod.uid", uid + strconv.Itoa(n)}, more...)
	}
	for pid, want := range map[int][]string{
		own:    pod(0, "process.executable.name", "vllm", "k8s.namespace.name", "llm", "k8s.pod.name", "chat-0", "k8s.container.name", "vllm"),
		logged: pod(1, "process.executable.name", "python3.12", "k8s.namespace.name", "llm", "k8s.pod.name", "batch-0", "k8s.container.name", "worker"),
		second: pod(2, "process.executable.name", "python3.12"),
		third:  pod(3, "process.executable.name", "python3.12"),
		docker: {"process.executable.name", "tritonserver", "container.id", id(4)},
		gone:   nil,
	} {
		want = append(want, "process.pid", strconv.Itoa(pid))
		p := into.last(t, processMemory, want...)
		assert.Equal(t, float64(memory[pid]), p.value, pid)
		for series := range into.all(processMemory, "process.pid", strconv.Itoa(pid)) {
			// hw.id and hw.name, and what is wanted.
			assert.Equal(t, len(want)/2+2, strings.Count(series, "="), series)
		}
	}
	assert.Zero(t, c.Stop())
}
