// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
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

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu/fakegputest"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// Guarantees: what is told of three real machines is what was captured there; UPDATE=1 writes what is told.
func TestWhatIsToldOfRealMachines(t *testing.T) {
	for name, world := range map[string]*fakegpu.Scenario{"h100": fakegpu.H100(), "h100_mig": fakegpu.H100MIG(), "l40s": fakegpu.L40S()} {
		t.Run(name, func(t *testing.T) {
			r := start(t, world)
			r.read()
			r.later(10 * time.Second)
			r.read()
			assert.Equal(t, [gpu.Reasons]int64{}, r.snapshot.Refused)
			got := text(&r.snapshot)
			file := filepath.Join("testdata", name+".txt")
			if os.Getenv("UPDATE") != "" {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

// text is a snapshot as lines.
func text(s *gpu.Snapshot) string {
	var out strings.Builder
	fmt.Fprintf(&out, "driver %s\n", s.Driver)
	for _, d := range s.Devices {
		fmt.Fprintf(&out, "\n%s index=%d parent=%q model=%q serial=%q firmware=%q pci=%q profile=%q state=%s mig=%t\n",
			d.UUID, d.Index, d.Parent, d.Model, d.Serial, d.Firmware, d.PCI, d.Profile, d.State, d.MIGEnabled)
		if d.MIG() {
			fmt.Fprintf(&out, "instance %d %d\n", d.GPUInstance, d.ComputeInstance)
		}
		for p := range gpu.DevicePoints {
			if !d.Has(p) {
				continue
			}
			row := &gpu.Rows[p]
			value := strconv.FormatUint(d.Int(p), 10)
			if row.Metric.Double {
				value = strconv.FormatFloat(d.Float(p), 'g', 12, 64)
			}
			fmt.Fprintf(&out, "%s{%s} %s %s\n", row.Metric.Name, row.Value, value, row.Metric.Unit)
		}
		fmt.Fprintf(&out, "processes known=%t\n", d.Known)
		for i := range d.Processes {
			p := &d.Processes[i]
			fmt.Fprintf(&out, "process %d memory=%d utilization=%v\n", p.PID, p.Memory, p.Utilization)
		}
	}
	return out.String()
}

// Guarantees: the goldens above have the values of the captures, in the units of the metrics.
func TestTheGoldensAreTheCaptures(t *testing.T) {
	f := func(golden, capture string) {
		t.Helper()
		told, err := os.ReadFile(filepath.Join("testdata", golden))
		require.NoError(t, err)
		captured, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "testdata", "gpu", capture))
		require.NoError(t, err)
		whole := strings.Split(string(told), "\n\n")[1] // the GPU, before its instances
		checked := 0
		for _, m := range [][2]string{
			{"hw.gpu.memory.limit{}", "memory_total_bytes"}, {"hw.gpu.memory.usage{}", "memory_used_bytes"}, {"nvidia.gpu.memory.reserved{}", "memory_reserved_bytes"},
			{"hw.gpu.utilization{general}", "utilization_gpu_ratio"}, {"hw.gpu.utilization{encoder}", "utilization_encoder_ratio"},
			{"hw.gpu.utilization{decoder}", "utilization_decoder_ratio"}, {"nvidia.gpu.memory_controller.utilization{}", "utilization_memory_ratio"},
			{"hw.power{}", "power_draw_watts"}, {"nvidia.gpu.power.limit{}", "enforced_power_limit_watts"},
			{"hw.temperature{gpu}", "temperature_gpu"}, {"hw.temperature{memory}", "temperature_memory"},
			{"nvidia.gpu.clock.frequency{graphics}", "clocks_current_graphics_clock_hz"}, {"nvidia.gpu.clock.frequency{sm}", "clocks_current_sm_clock_hz"},
			{"nvidia.gpu.clock.frequency{memory}", "clocks_current_memory_clock_hz"}, {"nvidia.gpu.clock.frequency{video}", "clocks_current_video_clock_hz"},
			{"hw.errors{ecc_corrected}", "ecc_errors_corrected_aggregate_total"}, {"hw.errors{ecc_uncorrected}", "ecc_errors_uncorrected_aggregate_total"},
			{"nvidia.gpu.memory.remapped_rows{correctable}", "remapped_rows_correctable"}, {"nvidia.gpu.memory.remapped_rows{uncorrectable}", "remapped_rows_uncorrectable"},
			{"nvidia.gpu.memory.remap.pending{}", "remapped_rows_pending"}, {"nvidia.gpu.memory.remap.failure{}", "remapped_rows_failure"},
			{"nvidia.gpu.throttle.reason{idle}", "clocks_event_reasons_gpu_idle"}, {"nvidia.gpu.throttle.reason{sw_power_cap}", "clocks_event_reasons_sw_power_cap"},
			{"nvidia.gpu.throttle.duration{power}", "clocks_event_reasons_counters_sw_power_cap_seconds"},
		} {
			got, isTold := valueAfter(whole, m[0]+" ")
			want, isCaptured := valueAfter(string(captured), "\nnvidia_smi_"+m[1]+`{uuid="00000000-0000-0000-0000-000000000000"} `)
			assert.Equal(t, isCaptured, isTold, "%s: %s", golden, m[0])
			if isTold && isCaptured {
				assert.InDelta(t, want, got, 1e-9*max(1, want), "%s: %s", golden, m[0])
				checked++
			}
		}
		assert.Greater(t, checked, 12)
		for line := range strings.Lines(string(captured)) {
			if pid, rest, ok := strings.Cut(strings.TrimPrefix(line, `nvidia_smi_compute_app_used_memory_bytes{pid="`), `"`); ok && strings.HasPrefix(line, "nvidia_smi_compute_app_used") {
				memory, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndex(rest, " "):]), 64)
				require.NoError(t, err)
				assert.Contains(t, string(told), fmt.Sprintf("process %s memory=%.0f ", pid, memory))
			}
		}
	}
	f("h100.txt", "h100-80gb-hbm3_590.48.01.metrics")
	f("h100_mig.txt", "h100-mig_590.48.01.metrics")
	f("l40s.txt", "l40s_595.80.metrics")
}

// valueAfter is the number after a prefix.
func valueAfter(text, prefix string) (float64, bool) {
	_, rest, ok := strings.Cut(text, prefix)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	return v, err == nil
}

// Guarantees: what is not wanted is not asked, but for the one call that tells whether a GPU is there.
func TestWhatIsNotWantedCostsNoCall(t *testing.T) {
	r := start(t, fakegpu.Server(1, 2, 4000))
	r.watcher.stop() // whose waiting for Xids costs calls, too
	r.watcher = nil
	r.world.GPUs[0].Remove("mig.current", "mig.pending")
	r.change()
	calls := func(points ...gpu.Point) uint64 {
		t.Helper()
		r.want = gpu.Set{}
		r.want.Add(points...)
		r.read()
		before := fakegputest.Stats(t).Calls
		r.read()
		return fakegputest.Stats(t).Calls - before
	}
	assert.Equal(t, uint64(1), calls())
	assert.Equal(t, uint64(1), calls(gpu.Temperature))
	assert.Equal(t, uint64(1+1), calls(gpu.Utilization, gpu.ControllerUtilization))
	assert.Equal(t, uint64(1+1), calls(gpu.PCIeReceived, gpu.PCIeTransmitted, gpu.PCIeReplays, gpu.MemoryTemperature), "fields come together")
	assert.Equal(t, uint64(1+4), calls(gpu.ProcessMemory), "three lists, one of which is asked for its size first")
	assert.Equal(t, uint64(1+6), calls(gpu.ProcessMemory, gpu.ProcessUtilization))
}

func TestPCIeThroughputIsNeverWaitedFor(t *testing.T) {
	world := fakegpu.Server(8, 0, 0)
	for i := range world.GPUs {
		d := &world.GPUs[i].Device
		for key := range d.Values {
			if strings.HasPrefix(key, "gpm.") {
				d.Remove(key)
			}
		}
		d.Remove("pcie.tx.bytes", "pcie.rx.bytes")
	}
	r := start(t, world)
	r.read()
	require.NotNil(t, r.meter, "the first reading starts the measurements")
	r.rest()
	measured, ready := fakegputest.Stats(t).PcieThroughput, make(chan struct{})
	r.meter = measure(r.cards, func() time.Time { <-ready; return r.clock() })
	for _, d := range r.read() { // who waited would wait for ever
		hasNot(t, d, gpu.PCIeReceived, gpu.PCIeTransmitted, gpu.PCIeReceiveRate)
	}
	close(ready)
	require.Eventually(t, func() bool { return r.read()[7].Has(gpu.PCIeTransmitRate) }, time.Minute, 10*time.Millisecond)
	r.rest()
	assert.GreaterOrEqual(t, fakegputest.Stats(t).PcieThroughput, measured+16)
	for _, d := range r.read() {
		has(t, d, gpu.PCIeReceiveRate, 6346e3)
		has(t, d, gpu.PCIeTransmitRate, 3092e3)
	}
	r.later(measuredWithin + time.Second)
	hasNot(t, r.read()[0], gpu.PCIeReceiveRate)
}

// rest ends the measurements, of which the last remain, and may be called again.
func (r *rig) rest() {
	r.meter.stop()
	r.meter.quit = make(chan struct{})
}

func TestADeviceWithCountersOfBytesIsNotMeasured(t *testing.T) {
	r := start(t, fakegpu.Server(1, 0, 0))
	measured := fakegputest.Stats(t).PcieThroughput
	r.read()
	r.later(time.Second)
	d := r.read()[0]
	has(t, d, gpu.PCIeTransmitted, 1<<40)
	has(t, d, gpu.PCIeReceived, 3<<40)
	has(t, d, gpu.PCIeReceiveRate, 6.25*(1<<20))
	time.Sleep(30 * time.Millisecond)
	assert.Equal(t, measured, fakegputest.Stats(t).PcieThroughput)
}

func TestNVLinkOfBlackwell(t *testing.T) {
	world := fakegpu.Server(1, 0, 0)
	d := &world.GPUs[0].Device
	d.Remove("nvlink.data.tx", "nvlink.data.rx")
	d.Set("nvlink.tx.bytes", 7<<40)
	d.Set("nvlink.rx.bytes", 8<<40)
	got := start(t, world).read()[0]
	has(t, got, gpu.NVLinkTransmitted, 7<<40)
	has(t, got, gpu.NVLinkReceived, 8<<40)
}

func TestProcessesOfADividedGPUStandAtTheirInstances(t *testing.T) {
	world := fakegpu.H100MIG()
	world.GPUs[0].Processes = append(world.GPUs[0].Processes, fakegpu.Process{Kind: fakegpu.Compute, PID: 77, Memory: 5 << 20, GPUInstance: 9, SM: fakegpu.Idle})
	r := start(t, world)
	f := func() {
		t.Helper()
		devices := r.read()
		var at []int
		for _, d := range devices {
			assert.True(t, d.Known)
			at = append(at, len(d.Processes))
		}
		assert.Equal(t, []int{0, 3, 0, 1, 0}, at)
		assert.Equal(t, uint64(5<<20), devices[3].Process(77).Memory)
	}
	f()
	// Who is not privileged asks each instance. That only one of the lists is refused changes nothing.
	refuse := func(instance int, kinds ...string) {
		r.world.Rules = nil
		for _, kind := range kinds {
			r.world.Rules = append(r.world.Rules, fakegpu.Rule{Function: "nvmlDeviceGet" + kind + "RunningProcesses_v3", GPU: 0, Instance: instance, Return: 4})
		}
		r.change()
	}
	refuse(fakegpu.Whole, "Compute", "Graphics", "MPSCompute")
	f()
	refuse(fakegpu.Whole, "Compute")
	f()
	for _, kinds := range [][]string{{"Compute"}, {"Compute", "Graphics", "MPSCompute"}} {
		refuse(fakegpu.All, kinds...)
		for _, d := range r.read() {
			assert.False(t, d.Known, "who may see nothing knows nothing")
			assert.Empty(t, d.Processes)
			hasNot(t, d, gpu.MemoryUnattributed)
		}
	}
}

// Guarantees: instances that come, go, or change places are read as they are, and keep nothing of others.
func TestInstancesComeAndGo(t *testing.T) {
	r := start(t, fakegpu.H100MIG())
	uuids := func() (list []string) {
		for _, d := range r.read()[1:] {
			list = append(list, d.UUID+" "+d.Profile)
		}
		return list
	}
	all := uuids()
	assert.Len(t, all, 4)
	r.later(time.Second)
	r.read()
	g := &r.world.GPUs[0]
	g.Instances[0], g.Instances[1] = g.Instances[1], g.Instances[0]
	r.change()
	want := slices.Clone(all)
	want[0], want[1] = want[1], want[0]
	assert.Equal(t, want, uuids())
	assert.False(t, r.snapshot.Devices[1].Has(gpu.GraphicsActive), "another instance has no sample yet")

	g.Instances = g.Instances[:1]
	r.change()
	assert.Equal(t, want[:1], uuids())
	g.Instances = nil
	g.Set("mig.current", 0)
	r.change()
	devices := r.read()
	require.Len(t, devices, 1)
	assert.False(t, devices[0].MIGEnabled)
	assert.Equal(t, uint64(2), fakegputest.Stats(t).GPMSamples, "those of the GPU")
}

// Guarantees: a reason that a device cannot have is none, and not 0; all are where it does not tell which.
func TestReasonsThatADeviceDoesNotHaveAreAbsent(t *testing.T) {
	world := fakegpu.Server(2, 0, 0)
	world.GPUs[0].Set("event_reasons.supported", 0x1|0x4)
	world.GPUs[1].Remove("event_reasons.supported")
	r := start(t, world)
	devices := r.read()
	has(t, devices[0], gpu.ThrottleIdle, 0)
	has(t, devices[0], gpu.ThrottleSoftwarePower, 0)
	hasNot(t, devices[0], gpu.ThrottleApplicationClocks, gpu.ThrottleHardware, gpu.ThrottleDisplay)
	for p := gpu.ThrottleIdle; p <= gpu.ThrottleDisplay; p++ {
		has(t, devices[1], p, 0)
	}
	r.world.GPUs[0].Set("event_reasons", 0x4|0x8)
	r.change()
	before := fakegputest.Stats(t).Calls
	devices = r.read()
	calls := fakegputest.Stats(t).Calls - before
	has(t, devices[0], gpu.ThrottleSoftwarePower, 1)
	has(t, devices[0], gpu.ThrottleHardware, 1)
	hasNot(t, devices[0], gpu.ThrottleDisplay)
	r.world.GPUs[0].Set("event_reasons", 0)
	r.change()
	has(t, r.read()[0], gpu.ThrottleHardware, 0)
	r.want.Remove(gpu.ThrottleIdle, gpu.ThrottleApplicationClocks, gpu.ThrottleSoftwarePower, gpu.ThrottleHardware, gpu.ThrottleSyncBoost,
		gpu.ThrottleSoftwareThermal, gpu.ThrottleHardwareThermal, gpu.ThrottlePowerBrake, gpu.ThrottleDisplay)
	before = fakegputest.Stats(t).Calls
	r.read()
	assert.Equal(t, calls-2, fakegputest.Stats(t).Calls-before, "which they are was asked once: one call each")
}

func TestWhatMemoryWaitsForIsAState(t *testing.T) {
	r := start(t, fakegpu.Server(1, 0, 0))
	f := func(want gpu.State, pending, failure float64) {
		t.Helper()
		r.world.GPUs[0].Set("remapped.pending", pending)
		r.world.GPUs[0].Set("remapped.failure", failure)
		r.change()
		assert.Equal(t, want, r.read()[0].State)
		cheap := r.want
		r.want = gpu.Set{}
		assert.Equal(t, want, r.read()[0].State, "also when nobody asks for the rows")
		r.want = cheap
	}
	f(gpu.OK, 0, 0)
	f(gpu.Degraded, 1, 0)
	f(gpu.PredictedFailure, 1, 1)
	f(gpu.OK, 0, 0)

	r.world.Fail("*", 0, 999)
	r.change()
	assert.Equal(t, gpu.Degraded, r.read()[0].State, "it does not answer")
}

func TestAnOldDriverIsReadAsFarAsItGoes(t *testing.T) {
	world := fakegpu.Server(2, 3, 4000).Old()
	if !fakegputest.InChild(t, world.Missing...) {
		return
	}
	r := start(t, world)
	for range 2 {
		for _, d := range r.read() {
			has(t, d, gpu.MemoryUsage, 20780679168+502267904)
			hasNot(t, d, gpu.MemoryReserved, gpu.PCIeReceived, gpu.SMActive)
			has(t, d, gpu.Temperature, 59)
			has(t, d, gpu.ThrottleIdle, 0)
			assert.Len(t, d.Processes, 3)
		}
		assert.Zero(t, r.snapshot.Refused)
	}
}
