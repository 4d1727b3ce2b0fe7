// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// has waits until the page of series has one with all of the texts, with a value.
func (g *gpus) has(value string, texts ...string) {
	g.t.Helper()
	page := ""
	if !assert.Eventually(g.t, func() bool {
		page = get(g.t, g.series)
		return seriesOf(page, texts...) == value
	}, patience, 50*time.Millisecond) {
		g.t.Fatalf("no %s = %q in %s\n%s", texts, value, page, g.Logs())
	}
}

// Scenario: the Collector is started while a GPU is lost; then that one answers again.
// Guarantees: its state is failed and an event says so, and it is read again without a restart.
func TestAGPUThatIsLostAtTheStartIsTold(t *testing.T) {
	parallel(t)
	g := startGPUs(t)
	world := fakegpu.Server(8, 0, 0)
	world.Fail("*", 3, 15)
	g.write(world)
	g.install()
	g.has("1", "hw_status{", `hw_id="index-3"`, `hw_name="GPU 3"`, `hw_state="failed"`)
	g.has("1", "hw_status{", world.GPUs[4].UUID, `hw_state="ok"`)
	require.Eventually(t, func() bool { return slices.Contains(g.events(), "nvidia.gpu.lost") }, patience, 50*time.Millisecond)
	world.Rules = nil
	g.write(world)
	g.has("1", "hw_status{", world.GPUs[3].UUID, `hw_state="ok"`)
	require.Eventually(t, func() bool { return slices.Contains(g.events(), "nvidia.gpu.recovered") }, patience, 50*time.Millisecond)
	assert.Zero(t, g.Stop())
}

// Scenario: a GPU is added to a machine that is read.
// Guarantees: it is found without a restart, and is no recovery of anything.
func TestAGPUThatIsAddedIsFound(t *testing.T) {
	parallel(t)
	g := startGPUsBy(t, "nvml\n    proc_root: DIR/proc")
	list := func(name string) {
		require.NoError(t, os.MkdirAll(filepath.Join(g.dir, "proc/driver/nvidia/gpus", name), 0o750))
	}
	list("0000:00:09.0")
	g.write(fakegpu.Server(1, 0, 0))
	g.install()
	world := fakegpu.Server(2, 0, 0)
	g.has("1", "hw_status{", world.GPUs[0].UUID, `hw_state="ok"`)
	g.write(world)
	time.Sleep(time.Second)
	assert.Empty(t, seriesOf(get(t, g.series), "hw_status{", world.GPUs[1].UUID), "NVML does not find it by itself")
	list("0000:01:09.0")
	g.has("1", "hw_status{", world.GPUs[1].UUID, `hw_state="ok"`)
	assert.Zero(t, g.Stop())
	assert.Empty(t, g.events())
}

// Scenario: nothing but the state of GPUs is told, of cards that cannot be divided, and one is lost.
// Guarantees: that is seen.
func TestALostGPUIsSeenWhereOnlyItsStateIsTold(t *testing.T) {
	parallel(t)
	off := "nvml\n    metrics:"
	for _, name := range gpuMetrics(t) {
		if name != "hw.status" {
			off += fmt.Sprintf("\n      %s: {enabled: false}", name)
		}
	}
	g := startGPUsBy(t, off)
	world := fakegpu.L40S()
	g.write(world)
	g.install()
	id := world.GPUs[0].UUID
	g.has("1", "hw_status{", id, `hw_state="ok"`)
	world.Fail("*", 0, 15)
	g.write(world)
	g.has("1", "hw_status{", id, `hw_state="failed"`)
	assert.NotContains(t, get(t, g.series), "hw_power")
	assert.Zero(t, g.Stop())
}

// gpuMetrics are the names of the metrics that are on by default.
func gpuMetrics(t *testing.T) (names []string) {
	t.Helper()
	for _, m := range gpu.Metrics {
		names = append(names, m.Name)
	}
	require.Contains(t, strings.Join(names, " "), "hw.status")
	return names
}

// Scenario: the host engine hangs for an hour, in a reading and when it is connected to.
// Guarantees: NVML is read on, and the Collector ends when it is asked to.
func TestAHostEngineThatHangsDoesNotStopNVML(t *testing.T) {
	t.Parallel()
	f := func(function string) {
		t.Run(function, func(t *testing.T) {
			parallel(t)
			g := startGPUsBy(t, "auto\n    dcgm_library: DIR/libdcgm.so.4\n    dcgm_endpoint: localhost:5555")
			world := fakegpu.H100()
			hang := fakegpu.Rule{Function: function, GPU: fakegpu.All, Instance: fakegpu.All, Delay: time.Hour}
			if function == "dcgmConnect_v2" {
				world.Rules = append(world.Rules, hang)
			}
			g.write(world)
			_, err := fakegpu.BuildDCGM(g.dir)
			require.NoError(t, err)
			g.install()
			id := world.GPUs[0].UUID
			g.has("1", "hw_gpu_utilization_ratio{", id, `hw_gpu_task="general"`)
			if function != "dcgmConnect_v2" {
				g.WaitLog("DCGM does the profiling", patience)
				world.Rules = append(world.Rules, hang)
				g.write(world)
			}
			g.WaitLog("DCGM does not answer within", patience)
			world.GPUs[0].Set("utilization.gpu", 50)
			g.write(world)
			g.has("0.5", "hw_gpu_utilization_ratio{", id, `hw_gpu_task="general"`)
			assert.Eventually(t, func() bool { return seriesOf(get(t, g.series), "nvidia_gpu_sm_active_ratio{", id) != "" },
				patience, 50*time.Millisecond, "it is NVML's now")
			begin := time.Now()
			assert.Zero(t, g.Stop())
			t.Logf("ended after %s", time.Since(begin))
		})
	}
	f("dcgmEntitiesGetLatestValues")
	f("dcgmConnect_v2")
}

// Scenario: one GPU of four answers a call as if the driver was not there.
// Guarantees: nothing else is lost by that, and no new session begins.
func TestOneGPUThatDeniesTheDriverCostsItsOwnAnswers(t *testing.T) {
	parallel(t)
	g := startGPUs(t)
	world := fakegpu.Server(4, 0, 0)
	world.Fail("nvmlDeviceGetMemoryInfo_v2", 1, 28)
	world.Fail("nvmlDeviceGetMemoryInfo", 1, 28)
	g.write(world)
	g.install()
	for i := range world.GPUs {
		g.has("1", "hw_status{", world.GPUs[i].UUID, `hw_state="ok"`)
	}
	page := ""
	require.Eventually(t, func() bool {
		page = get(t, g.series)
		return seriesOf(page, "hw_gpu_memory_usage_bytes{", world.GPUs[2].UUID) != "" && seriesOf(page, "hw_power_watts{", world.GPUs[1].UUID) != ""
	}, patience, 50*time.Millisecond)
	assert.Empty(t, seriesOf(page, "hw_gpu_memory_usage_bytes{", world.GPUs[1].UUID))
	time.Sleep(time.Second)
	assert.NotContains(t, g.Logs(), "the session with the driver is over")
	assert.Zero(t, g.Stop())
}
