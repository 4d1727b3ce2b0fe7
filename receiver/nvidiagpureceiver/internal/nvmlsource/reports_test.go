// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu/fakegputest"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// What users of today's tools have reported, and what is right instead. The numbers are those of the list of reports that
// these tests were written from.

// Report 1 (DCGM#199, dcgm-exporter#418): rare samples of utilization up to 4294967295.
func TestReport1UtilizationThatCannotBeIsRefusedAndCounted(t *testing.T) {
	r := start(t, fakegpu.H100())
	f := func(percent uint64, taken bool) {
		t.Helper()
		for _, key := range []string{"utilization.gpu", "utilization.memory", "utilization.encoder"} {
			r.world.GPUs[0].SetExact(key, percent)
		}
		r.change()
		d := r.read()[0]
		if taken {
			has(t, d, gpu.Utilization, float64(percent)/100)
			assert.Zero(t, r.snapshot.Refused[gpu.OutOfRange])
			return
		}
		hasNot(t, d, gpu.Utilization, gpu.ControllerUtilization, gpu.EncoderUtilization)
		assert.Equal(t, int64(3), r.snapshot.Refused[gpu.OutOfRange])
		has(t, d, gpu.Temperature, 59)
	}
	f(4294967295, false)
	f(101, false)
	f(100, true)
	f(0, true)

	r.world.GPUs[0].Processes[0].SM = 250
	r.change()
	p := r.read()[0].Process(11327)
	assert.Negative(t, p.Utilization[0])
	assert.Equal(t, int64(1), r.snapshot.Refused[gpu.OutOfRange])
}

// Report 2 (slurm-job-exporter#30, #53): blanks exported as 1.4e14 or 9.2e18; a mixed machine fails as a whole.
func TestReport2ABlankIsLeftOutAndNothingElse(t *testing.T) {
	world := fakegpu.Server(2, 1, 4000)
	odd := &world.GPUs[0].Device
	for _, key := range []string{"power", "temperature", "temperature.memory", "clock.sm", "pcie.replay", "energy", "ecc.corrected.aggregate", "pcie.tx.bytes", "nvlink.data.rx"} {
		odd.SetExact(key, fakegpu.Blank)
	}
	odd.Remove("fan.speed", "remapped.correctable", "ecc.uncorrected.aggregate", "power.limit.enforced")
	world.Rules = append(world.Rules, fakegpu.Rule{Function: "nvmlDeviceGetDecoderUtilization", GPU: 0, Instance: fakegpu.All, Return: 999})
	r := start(t, world)
	devices := r.read()
	require.Len(t, devices, 2)
	hasNot(t, devices[0], gpu.Power, gpu.Temperature, gpu.MemoryTemperature, gpu.SMClock, gpu.PCIeReplays, gpu.Energy, gpu.ECCCorrected, gpu.PCIeTransmitted,
		gpu.NVLinkReceived, gpu.RemappedCorrectable, gpu.ECCUncorrected, gpu.PowerLimit, gpu.DecoderUtilization)
	for _, p := range []gpu.Point{gpu.MemoryUsage, gpu.Utilization, gpu.GraphicsClock, gpu.PCIeReceived, gpu.NVLinkTransmitted, gpu.ThrottleIdle} {
		assert.True(t, devices[0].Has(p), gpu.Rows[p].Metric.Name)
	}
	for _, p := range []gpu.Point{gpu.Power, gpu.Temperature, gpu.SMClock, gpu.Energy, gpu.ECCUncorrected, gpu.DecoderUtilization} {
		assert.True(t, devices[1].Has(p), gpu.Rows[p].Metric.Name)
	}
	assert.Equal(t, int64(9), r.snapshot.Refused[gpu.Blank])
	assert.Equal(t, int64(1), r.snapshot.Refused[gpu.Failed])
	assert.Equal(t, gpu.OK, devices[0].State)
}

// Reports 3 and 4 (dcgm-exporter#700, #500, #190): an Xid is seen once and for ever, or not at all; the same twice is one.
// The counters from zero are the receiver's; here each error is told, once.
func TestReport4EachXidIsToldOnce(t *testing.T) {
	r := start(t, fakegpu.Server(2, 0, 0))
	r.world.Xid(1, 31)
	r.world.Xid(1, 31)
	r.world.Xid(0, 79)
	r.world.Add(fakegpu.Event{GPU: 0, Type: 8, Data: 43, GPUInstance: 2, ComputeInstance: 1})
	before := time.Now()
	r.change()
	events := r.told(4)
	after := time.Now()
	for i, want := range []gpu.Event{{UUID: r.world.GPUs[1].UUID, Code: 31}, {UUID: r.world.GPUs[1].UUID, Code: 31}, {UUID: r.world.GPUs[0].UUID, Code: 79},
		{UUID: r.world.GPUs[0].UUID, Code: 43, GPUInstance: 2, ComputeInstance: 1, Instance: true}} {
		assert.GreaterOrEqual(t, events[i].Time, before.UnixNano())
		assert.LessOrEqual(t, events[i].Time, after.UnixNano())
		events[i].Time = 0
		assert.Equal(t, want, events[i])
	}
	time.Sleep(20 * time.Millisecond)
	assert.Len(t, r.told(4), 4)
}

func TestAnXidBeforeTheClosingIsTold(t *testing.T) {
	r := start(t, fakegpu.Server(1, 0, 0))
	for n := range 10 {
		r.world.Xid(0, 31)
		r.change()
		require.NoError(t, r.Close())
		assert.Len(t, r.told(n+1), n+1)
		require.NoError(t, r.Open(t.Context(), r.happened))
	}
}

// Report 7 (dcgm-exporter#706, #716): open handles block unbind, reset and MIG changes.
func TestReport7AllHandlesAreGivenBackOnDemand(t *testing.T) {
	r := start(t, fakegpu.H100MIG())
	r.read()
	r.later(time.Second)
	r.read()
	open := fakegputest.Stats(t)
	assert.Equal(t, uint64(1), open.Initialised)
	assert.Equal(t, uint64(1), open.EventSets)
	assert.Equal(t, uint64(10), open.GPMSamples, "two of the GPU, two of each of its four instances")
	require.NoError(t, r.Close())
	closed := fakegputest.Stats(t)
	assert.Zero(t, closed.Initialised+closed.EventSets+closed.GPMSamples+closed.Waiting+closed.Invalid+closed.Uninitialised)
	require.NoError(t, r.Close(), "closing what is not open does nothing")
	require.ErrorIs(t, r.tryRead(), errClosed)

	// Meanwhile it was divided otherwise; afterwards it is read as it is now.
	r.world.GPUs[0].Instances = r.world.GPUs[0].Instances[1:2]
	r.change()
	require.NoError(t, r.Open(t.Context(), r.happened))
	assert.Len(t, r.read(), 2)
}

// Report 8 (go-nvml#75, #21): several processes, and PIDs and memory are scrambled.
func TestReport8ScrambledProcessesAreNotBelieved(t *testing.T) {
	r := start(t, fakegpu.Server(1, 20, 4000))
	d := r.read()[0]
	require.True(t, d.Known)
	require.Len(t, d.Processes, 20)
	for i := range uint32(20) {
		assert.Equal(t, uint64(512<<20), d.Process(4000+i).Memory)
	}
	r.world.WideProcesses = true
	r.change()
	d = r.read()[0]
	assert.False(t, d.Known)
	assert.Empty(t, d.Processes)
	assert.Equal(t, int64(1), r.snapshot.Refused[gpu.Scrambled])
	hasNot(t, d, gpu.MemoryUnattributed)
	has(t, d, gpu.MemoryUsage, 20780679168)
}

// Scenario: the driver tells of one process more memory than there is. Guarantees: that is refused, and nothing else.
func TestReport8MemoryThatIsNotThereIsNoProcess(t *testing.T) {
	world := fakegpu.Server(1, 2, 4000)
	world.GPUs[0].Processes[1].Memory = 85520809984 + 1
	r := start(t, world)
	f := func() {
		t.Helper()
		d := r.read()[0]
		assert.True(t, d.Known)
		require.Len(t, d.Processes, 2)
		assert.Equal(t, uint64(512<<20), d.Process(4000).Memory)
		assert.Equal(t, uint64(gpu.Unknown), d.Process(4001).Memory)
		assert.Equal(t, int64(1), r.snapshot.Refused[gpu.OutOfRange])
		hasNot(t, d, gpu.MemoryUnattributed)
	}
	f()
	r.want = gpu.Set{} // then nobody knows how much there is
	r.want.Add(gpu.ProcessMemory)
	r.world.GPUs[0].Processes[1].Memory = 1 << 60
	r.change()
	f()
}

// Report 9 (dask/distributed#8739, nvtop#256): the utilization of a divided GPU is shown as 0.
func TestReport9ADividedGPUHasNoUtilizationButThatOfItsInstances(t *testing.T) {
	r := start(t, fakegpu.H100MIG())
	r.read()
	r.later(time.Second)
	devices := r.read()
	require.Len(t, devices, 5)
	for _, d := range devices {
		hasNot(t, d, gpu.Utilization, gpu.ControllerUtilization, gpu.EncoderUtilization, gpu.DecoderUtilization)
	}
	for _, d := range devices[1:] {
		hasNot(t, d, gpu.Power, gpu.Temperature, gpu.RemappedCorrectable, gpu.Energy)
	}
	has(t, devices[1], gpu.SMActive, 0.955)
	has(t, devices[1], gpu.GraphicsActive, 0.985)
	has(t, devices[2], gpu.GraphicsActive, 0)
	assert.Zero(t, r.snapshot.Refused, "what an instance does not have is not asked")
}

// Report 10 (nvtop#466, nvitop#208): the memory of a GB10 is not supported.
func TestReport10APartWithoutMemoryOfItsOwnIsUnified(t *testing.T) {
	r := start(t, fakegpu.GB10())
	d := r.read()[0]
	assert.True(t, d.Unified)
	hasNot(t, d, gpu.MemoryLimit, gpu.MemoryUsage, gpu.MemoryReserved, gpu.MemoryUtilization, gpu.MemoryUnattributed)
	has(t, d, gpu.Utilization, 1)
	assert.Len(t, d.Processes, 3)

	// Memory that we may not see, or that could not be read now, is none of the host's. Nor is that of a GPU that has told its own.
	*r.world = *fakegpu.H100()
	for _, code := range []int{4, 999} {
		r.world.Rules = nil
		r.world.Fail("nvmlDeviceGetMemoryInfo_v2", 0, code)
		r.world.Fail("nvmlDeviceGetMemoryInfo", 0, code)
		r.change()
		d = r.read()[0]
		assert.False(t, d.Unified)
		hasNot(t, d, gpu.MemoryLimit)
	}
	r.world.Rules = nil
	r.change()
	has(t, r.read()[0], gpu.MemoryLimit, 85520809984)
	r.world.Fail("nvmlDeviceGetMemoryInfo_v2", 0, 3)
	r.world.Fail("nvmlDeviceGetMemoryInfo", 0, 3)
	r.change()
	assert.False(t, r.read()[0].Unified)
}

// Report 12 (dcgm-exporter#569): idle GPUs vanish.
func TestReport12EveryGPUIsAlwaysThere(t *testing.T) {
	world := fakegpu.Server(8, 0, 0)
	for i := range world.GPUs {
		world.GPUs[i].Set("utilization.gpu", 0)
		world.GPUs[i].Set("memory.used", 0)
	}
	r := start(t, world)
	for range 3 {
		devices := r.read()
		require.Len(t, devices, 8)
		for i, d := range devices {
			assert.Equal(t, world.GPUs[i].UUID, d.UUID)
			assert.Equal(t, i, d.Index)
			has(t, d, gpu.Utilization, 0)
			has(t, d, gpu.MemoryUsage, 0)
			has(t, d, gpu.MemoryUnattributed, 0)
			assert.Equal(t, gpu.OK, d.State)
		}
	}
}

// Report 14 (dcgm-exporter#348, NVSentinel#195): one GPU is lost, and nothing is told of the others.
func TestReport14ALostGPUIsFailedAndTheOthersGoOn(t *testing.T) {
	r := start(t, fakegpu.Server(8, 2, 4000))
	r.read()
	f := func(function string, code int) {
		t.Helper()
		r.world.Rules = nil
		r.world.Fail(function, 3, code)
		r.change()
		devices := r.read()
		require.Len(t, devices, 8)
		for i, d := range devices {
			if i != 3 {
				assert.Equal(t, gpu.OK, d.State)
				has(t, d, gpu.Temperature, 59)
				assert.Len(t, d.Processes, 2)
				continue
			}
			assert.Equal(t, gpu.Lost, d.State)
			assert.Equal(t, r.world.GPUs[3].UUID, d.UUID)
			assert.Equal(t, "NVIDIA H100 80GB HBM3", d.Model)
			for p := range gpu.DevicePoints {
				hasNot(t, d, p)
			}
			assert.Empty(t, d.Processes)
			assert.False(t, d.Known)
		}
	}
	f("*", 15)
	f("nvmlDeviceGetTemperature", 15) // it is lost in the middle of a reading
	f("nvmlDeviceGetUtilizationRates", 16)
	f("nvmlDeviceGetMPSComputeRunningProcesses_v3", 15)
}

func TestALostGPUThatWasResetComesBack(t *testing.T) {
	r := start(t, fakegpu.Server(4, 1, 4000))
	r.stop()
	r.world.Fail("*", 1, 15)
	r.change()
	states := func() (lost []bool) {
		for _, d := range r.read() {
			lost = append(lost, d.State == gpu.Lost)
		}
		return lost
	}
	one := []bool{false, true, false, false}
	assert.Equal(t, one, states())
	opened := r.lib
	assert.Equal(t, one, states())
	assert.Same(t, opened, r.lib, "not at every reading")
	r.later(firstReopening)
	assert.Equal(t, one, states())
	assert.NotSame(t, opened, r.lib)
	opened = r.lib
	assert.Equal(t, one, states(), "the handle cannot be had, but it was seen")
	r.later(firstReopening)
	assert.Equal(t, one, states())
	assert.Same(t, opened, r.lib, "ever more seldom")

	r.world.Rules = nil
	r.change()
	assert.Equal(t, one, states(), "its handle is of no session")
	r.later(askAgain)
	states()
	assert.Equal(t, make([]bool, 4), states())
	r.world.Xid(1, 79)
	r.change()
	assert.Equal(t, r.world.GPUs[1].UUID, r.told(1)[0].UUID, "and its errors are heard again")
}

// Report 16 (VisEdit#5, vllm#42017): memory that no visible process uses.
func TestReport16MemoryOfNoProcessIsASeriesOfItsOwn(t *testing.T) {
	r := start(t, fakegpu.H100())
	d := r.read()[0]
	const held = 2690646016 + 1616904192 + 16452157440
	has(t, d, gpu.MemoryUsage, 20780679168)
	has(t, d, gpu.MemoryReserved, 502267904)
	has(t, d, gpu.MemoryUnattributed, 20780679168-held)

	// A process that is not seen holds 10 GiB.
	r.world.GPUs[0].Set("memory.used", 20780679168+10<<30)
	r.change()
	has(t, r.read()[0], gpu.MemoryUnattributed, 20780679168+10<<30-held)

	// A list that may not be seen is no empty one.
	r.world.Fail("nvmlDeviceGetComputeRunningProcesses_v3", 0, 4)
	r.change()
	d = r.read()[0]
	assert.False(t, d.Known)
	hasNot(t, d, gpu.MemoryUnattributed)
	r.world.Rules = nil

	// Of one the driver does not tell the memory: then nobody knows.
	r.world.GPUs[0].Processes[0].Memory = fakegpu.Blank
	r.change()
	d = r.read()[0]
	assert.Equal(t, uint64(gpu.Unknown), d.Process(11327).Memory)
	hasNot(t, d, gpu.MemoryUnattributed)
}

// Guarantees: a driver that was unloaded, restarted or changed ends the session, whatever the function that says so.
func TestADriverThatWentAwayEndsTheSession(t *testing.T) {
	r := start(t, fakegpu.Server(2, 1, 4000))
	f := func(function string, gpu, code int) {
		t.Helper()
		r.world.Rules = nil
		r.change()
		r.read()
		r.world.Fail(function, gpu, code)
		r.change()
		require.ErrorIs(t, r.tryRead(), errOver)
		require.NoError(t, r.Close())
		r.world.Rules = nil
		r.change()
		require.NoError(t, r.Open(t.Context(), r.happened))
	}
	f("*", fakegpu.All, 1)
	f("*", fakegpu.All, 9)
	f("*", fakegpu.All, 18)
	f("*", fakegpu.All, 28)

	fakegputest.Unload(t)
	require.ErrorIs(t, r.tryRead(), errOver)
	require.NoError(t, r.Close())
	require.ErrorIs(t, r.Open(t.Context(), r.happened), gpu.ErrUnavailable)
	r.change()
	require.NoError(t, r.Open(t.Context(), r.happened))
	assert.Len(t, r.read(), 2)
}

func TestNoGPUIsUnavailable(t *testing.T) {
	f := func(world *fakegpu.Scenario) {
		t.Helper()
		fakegputest.Change(t, world)
		s := New(Options{Library: fakegputest.Library()})
		require.ErrorIs(t, s.Open(t.Context(), nil), gpu.ErrUnavailable)
		require.NoError(t, s.Close())
		assert.Zero(t, fakegputest.Stats(t).Initialised, "nothing is left open")
		fakegputest.Unload(t)
	}
	f(fakegpu.Server(0, 0, 0))
	for _, code := range []int{9, 4, 18, 28, 999} {
		world := fakegpu.H100()
		world.Fail("nvmlInit", fakegpu.All, code)
		f(world)
	}
	for _, function := range []string{"nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID"} {
		world := fakegpu.H100()
		world.Fail(function, fakegpu.All, 999)
		f(world)
	}
}
