// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakecuda"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// loops is how often the whole loop is gone through; with more, what it logs of latencies is worth more.
var loops = flag.Int("loops", 3, "how many leaking processes TestTheLoopFromAnAllocationToItsEnd ends")

const loopConfig = `
extensions:
  gpu_guard:
    dry_run: false
    for: 0s
    grace: 1h
    cooldown: 1s
    max_actions_per_hour: 10000
    kubelet_socket: ""
    audit: {file: %[1]s/audit.jsonl}
    policy: {victims: [{executable: [leaky]}], protected: [{executable: [serving]}]}
receivers:
  nvidia_gpu: {nvml_library: %[1]s/libnvidia-ml.so.1, source: nvml, collection_interval: 500ms, kubelet_socket: "", guard: gpu_guard}
  cuda_memory: {collection_interval: 1s, scan_interval: 100ms, kubelet_socket: "", proc_root: %[1]s/proc, guard: gpu_guard}
  gpu_guard:
exporters:
  nop:
  file: {path: %[1]s/events.jsonl, flush_interval: 50ms}
service:
  extensions: [gpu_guard]
  pipelines:
    metrics: {receivers: [nvidia_gpu, cuda_memory], exporters: [nop]}
    logs: {receivers: [gpu_guard], exporters: [file]}
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: localhost, port: %[2]d}}}}]}}
`

// Scenario: a process that serves holds most of a GPU. Beside it, one after the other, processes allocate until nearly nothing is left.
// Their memory is seen at the call by probes in the kernel, and what is in use of the GPU by NVML, which is asked twice a second.
// Guarantees: each of them is ended by SIGTERM, for that and no other reason, and told; the one that serves, which holds more, never.
func TestTheLoopFromAnAllocationToItsEnd(t *testing.T) {
	parallel(t)
	dir, world, port := t.TempDir(), fakegpu.Server(1, 0, 1), spawn.FreePort(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "proc"), 0o755))
	_, err := fakegpu.Build(dir)
	require.NoError(t, err)
	const gb = 1_000_000_000
	used := func(serving, leaking float64) {
		t.Helper()
		world.GPUs[0].Set("memory.used", serving+leaking)
		require.NoError(t, world.Write(filepath.Join(dir, "scenario")))
	}
	used(0, 0)
	built, err := fakecuda.Build(t.TempDir())
	require.NoError(t, err)
	program := func(name string) *allocator { return startProgram(t, &built, dir, name) }
	c := spawn.Start(t, spawn.Options{
		Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(loopConfig, dir, port))}, Env: []string{fakegpu.Variable + "=" + filepath.Join(dir, "scenario")},
	})
	c.WaitReady()
	serving := program("serving")
	c.WaitLog("CUDA memory is watched", patience)
	serving.do("alloc cudaMalloc 50 1000000000", "50 0")
	used(50*gb, 0)

	for range *loops {
		leaky, leaked := program("leaky"), 0.0
		for end := time.Now().Add(patience); lives(leaky.PID()); time.Sleep(10 * time.Millisecond) {
			require.True(t, time.Now().Before(end), "the leak goes on")
			if _, err := leaky.Do("alloc cudaMalloc 1 500000000"); err == nil { // it may be ended meanwhile
				leaked += gb / 2
			}
			used(50*gb, leaked)
		}
		used(50*gb, 0)
		require.NoError(t, os.Remove(filepath.Join(dir, "proc", strconv.Itoa(leaky.PID()))))
	}
	assert.True(t, lives(serving.PID()))
	audit := filepath.Join(dir, "audit.jsonl")
	require.Eventually(t, func() bool { // a process is gone before that is on record
		text, err := os.ReadFile(audit)
		return err == nil && strings.Count(string(text), `"exited"`) == *loops
	}, patience, 20*time.Millisecond)
	assert.Zero(t, c.Stop())

	ended := map[any]int{}
	took := map[string][]float64{}
	each(t, audit, func(line []byte) {
		var of map[string]any
		require.NoError(t, json.Unmarshal(line, &of))
		ended[of["gpu_guard.outcome"]]++
		switch of["gpu_guard.outcome"] {
		case "termed":
			assert.Equal(t, "leaky", of["process.executable.name"])
			assert.Equal(t, "threshold", of["gpu_guard.trigger"])
			assert.Equal(t, world.GPUs[0].UUID, of["hw.id"])
			for _, what := range []string{"detection", "decision"} {
				took[what] = append(took[what], of["gpu_guard."+what+".duration"].(float64))
			}
		case "exited":
			took["end"] = append(took["end"], of["gpu_guard.duration"].(float64))
		}
	})
	assert.Equal(t, *loops, ended["termed"])
	assert.Equal(t, *loops, ended["exited"])
	assert.Zero(t, ended["killed"])
	for what, seconds := range took {
		slices.Sort(seconds)
		at := func(q float64) float64 { return 1e3 * seconds[int(q*float64(len(seconds)-1))] }
		t.Logf("%-9s of %d: p50 %.1f ms, p99 %.1f ms, longest %.1f ms", what, len(seconds), at(0.5), at(0.99), at(1))
	}
}

// startProgram starts a program of a name that allocates as it is told, and shows it to the Collector.
func startProgram(t *testing.T, built *fakecuda.Built, dir, name string) *allocator {
	t.Helper()
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		text, err := os.ReadFile(built.Workload)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, text, 0o755))
	}
	a := startAllocator(t, path)
	a.do("load "+built.Runtime, "")
	show(t, filepath.Join(dir, "proc"), a)
	return a
}

const leakLoopConfig = `
extensions:
  gpu_guard:
    dry_run: false
    on_leak: true
    grace: 1h
    cooldown: 1s
    kubelet_socket: ""
    audit: {file: %[1]s/audit.jsonl}
    policy: {victims: [{executable: [leaky, serving]}], protected: [{executable: [serving]}]}
receivers:
  cuda_memory: {collection_interval: 500ms, scan_interval: 100ms, kubelet_socket: "", proc_root: %[1]s/proc, guard: gpu_guard}
  gpu_guard:
connectors:
  gpu_leak: {guard: gpu_guard, min_duration: 1m, lateness: 1s, idle_timeout: 20s}
exporters:
  nop:
  file: {path: %[1]s/events.jsonl, flush_interval: 50ms}
service:
  extensions: [gpu_guard]
  pipelines:
    metrics: {receivers: [cuda_memory], exporters: [gpu_leak]}
    metrics/leak: {receivers: [gpu_leak], exporters: [nop]}
    logs: {receivers: [gpu_guard, gpu_leak], exporters: [file]}
  telemetry: {metrics: {level: none}}
`

// Scenario: two processes leak, of which one is protected. Probes in the kernel see it, gpu_leak finds it, and gpu_guard hears of both;
// there is nothing else, and nobody has said what machine this is.
// Guarantees: the leak is told; the process is ended for it, by SIGTERM, and told; the one that is protected lives, and that is told.
func TestTheLoopFromALeakToItsEnd(t *testing.T) {
	parallel(t)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "proc"), 0o755))
	built, err := fakecuda.Build(t.TempDir())
	require.NoError(t, err)
	c := spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(leakLoopConfig, dir))}})
	c.WaitReady()
	all := []*allocator{startProgram(t, &built, dir, "leaky"), startProgram(t, &built, dir, "serving")}
	c.WaitLog("CUDA memory is watched", patience)
	leaky, serving := all[0], all[1]
	for _, a := range all {
		a.do("alloc cudaMalloc 10 1000000000", "10 0")
	}
	told := func() (outcomes, leaks []string) {
		for _, r := range leakEvents(t, dir) {
			of := r.Attributes().AsRaw()
			if r.EventName() == "gpu_guard.action" {
				outcomes = append(outcomes, fmt.Sprint(of["process.pid"], " ", outcome(of), " ", of["gpu_guard.trigger"]))
			} else {
				leaks = append(leaks, fmt.Sprint(of["process.pid"], " ", r.EventName()))
			}
		}
		return outcomes, leaks
	}
	of := func(a *allocator, what string) string { return fmt.Sprint(a.PID(), " ", what) }
	begin := time.Now()
	require.Eventually(t, func() bool {
		for _, a := range all {
			_, _ = a.Do("alloc cudaMalloc 1 100000000") // it may be ended meanwhile
		}
		outcomes, _ := told()
		return slices.Contains(outcomes, of(leaky, "exited leak")) && slices.Contains(outcomes, of(serving, "refused: protected leak"))
	}, 3*patience, 400*time.Millisecond)
	t.Logf("ended after %s", time.Since(begin).Round(time.Second))
	outcomes, leaks := told()
	assert.Contains(t, outcomes, of(leaky, "termed leak"))
	assert.Len(t, outcomes, 3)
	assert.Contains(t, leaks, of(leaky, "gpu.leak.opened"))
	assert.Contains(t, leaks, of(serving, "gpu.leak.opened"))
	assert.False(t, lives(leaky.PID()))
	assert.True(t, lives(serving.PID()))
	assert.Zero(t, c.Stop())
}

// lives says whether a process is there, and no zombie.
func lives(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
