// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu/fakegputest"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// Guarantees: a GPU that is lost when the session begins is there as a lost one, and is read once it answers.
func TestAGPUThatIsLostFromTheStartIsThere(t *testing.T) {
	read := func(t *testing.T, function string, code int) {
		world := fakegpu.Server(8, 0, 0)
		world.Fail(function, 3, code)
		r := start(t, world)
		devices := r.read()
		require.Len(t, devices, 8)
		for i, d := range devices {
			assert.Equal(t, i, d.Index)
			assert.Equal(t, i == 3, d.State == gpu.Lost)
			assert.Equal(t, i == 3, d.UUID == "")
		}
		r.world.Rules = nil
		r.change()
		r.later(firstReopening)
		r.read()
		devices = r.read()
		require.Len(t, devices, 8)
		assert.Equal(t, r.world.GPUs[3].UUID, devices[3].UUID)
		has(t, devices[3], gpu.Temperature, 59)

		// One that was seen and is silent now is not there twice.
		r.world.Fail(function, 3, 15)
		r.change()
		assert.Len(t, r.read(), 8)
		r.later(lastReopening)
		r.read()
		devices = r.read()
		require.Len(t, devices, 8)
		assert.Equal(t, r.world.GPUs[3].UUID, devices[3].UUID)
	}
	f := func(function string, code int) {
		t.Run(fmt.Sprint(function, code), func(t *testing.T) { read(t, function, code) })
	}
	f("*", 15)
	f("*", 16)
	f("nvmlDeviceGetHandleByIndex_v2", 999)
	f("nvmlDeviceGetUUID", 15)
	f("*", 28)
}

// Scenario: a GPU is lost for an hour, and its neighbour works on. Guarantees: of the neighbour, no profiling is missing,
// whatever the interval, and no Xid; the library is opened anew ever more seldom.
func TestALostGPUCostsItsNeighbourNothing(t *testing.T) {
	f := func(t *testing.T, every time.Duration, cheap int) {
		r := start(t, fakegpu.Server(2, 0, 0))
		everything, often := r.want, groups(gpu.Cheap)
		r.read()
		r.world.Fail("*", 1, 15)
		opened, openings := r.lib, 0
		r.patience = time.Millisecond
		readings, xids := int(time.Hour/every), 0
		for i := range readings {
			if i%max(1, readings/100) == 0 {
				r.world.Xid(0, 31)
				xids++
				r.change()
			}
			r.want = often
			for range cheap {
				r.later(every / time.Duration(cheap+1))
				r.read()
			}
			r.want = everything
			r.later(every / time.Duration(cheap+1))
			devices := r.read()
			require.Equal(t, gpu.Lost, devices[1].State)
			has(t, devices[0], gpu.SMActive, 0.9725)
			if r.lib != opened {
				opened = r.lib
				openings++
			}
		}
		assert.Len(t, r.told(xids), xids)
		assert.Less(t, openings, 13)
		assert.Greater(t, openings, 5)
	}
	t.Run("1s", func(t *testing.T) { f(t, time.Second, 0) })
	t.Run("60s", func(t *testing.T) { f(t, time.Minute, 5) })
}

// Scenario: another GPU has the place of one that is lost. Guarantees: that is no reason to open the library again and again.
func TestAPlaceThatIsTakenIsNoReturn(t *testing.T) {
	world := fakegpu.Server(2, 0, 0)
	r := start(t, world)
	r.world.Fail("*", 0, 15)
	r.change()
	r.read()
	r.later(firstReopening)
	r.read()
	r.world.Rules, r.world.GPUs[0] = nil, r.world.GPUs[1]
	r.change()
	opened := r.lib
	r.later(askAgain)
	r.read()
	assert.Same(t, opened, r.lib)
}

// Guarantees: profiling that could not be sampled once is asked for again, and not only in the next session.
func TestProfilingThatWasRefusedOnceIsAskedForAgain(t *testing.T) {
	r := start(t, fakegpu.Server(1, 0, 0))
	again := func() *gpu.Device {
		r.change()
		r.later(time.Second)
		return r.read()[0]
	}
	again()
	has(t, again(), gpu.SMActive, 0.9725)
	r.world.Fail("nvmlGpmSampleGet", 0, 3)
	for range 3 {
		hasNot(t, again(), gpu.SMActive)
	}
	r.world.Rules = nil
	hasNot(t, again(), gpu.SMActive)
	has(t, again(), gpu.SMActive, 0.9725)
	r.world.Fail("nvmlGpmSampleGet", 0, 999)
	hasNot(t, again(), gpu.SMActive)
	r.world.Rules = nil
	has(t, again(), gpu.SMActive, 0.9725)
}

// Guarantees: a GPU that says once that it has no performance monitoring, or no MIG, is not believed for ever.
func TestWhatIsNotSupportedOnceMayBeLater(t *testing.T) {
	world := fakegpu.H100MIG()
	world.Fail("nvmlGpmQueryDeviceSupport", 0, 3)
	r := start(t, world)
	again := func(after time.Duration) []*gpu.Device {
		r.change()
		r.read()
		r.later(after)
		return r.read()
	}
	hasNot(t, again(time.Second)[1], gpu.SMActive)
	r.world.Rules = nil
	hasNot(t, again(time.Second)[1], gpu.SMActive)
	again(askAbleAgain)
	has(t, again(time.Second)[1], gpu.SMActive, 0.955)

	r.world.Fail("nvmlDeviceGetMigMode", 0, 3)
	devices := again(time.Second)
	require.Len(t, devices, 5)
	assert.True(t, devices[0].MIGEnabled)
	assert.Equal(t, gpu.Degraded, devices[1].State)
	r.world.Rules = nil
	devices = again(time.Second)
	require.Len(t, devices, 5)
	assert.Equal(t, gpu.OK, devices[1].State)
}

// Guarantees: a counter that failed once has no other one's value: that would be a step.
func TestAFieldThatFailedIsNotTakenFromAnotherOne(t *testing.T) {
	world := fakegpu.Server(1, 0, 0)
	d := &world.GPUs[0].Device
	d.Set("nvlink.tx.bytes", 7<<40)
	r := start(t, world)
	has(t, r.read()[0], gpu.NVLinkTransmitted, 5<<40)
	r.world.GPUs[0].SetExact("nvlink.data.tx", fakegpu.Blank)
	r.change()
	hasNot(t, r.read()[0], gpu.NVLinkTransmitted)
}

// Guarantees: of two readings closer than NVML can measure, the second has what the first one had: a timer that is early ends
// no series.
func TestReadingsThatAreTooCloseHaveTheSameProfiling(t *testing.T) {
	r := start(t, fakegpu.Server(1, 0, 0))
	now := time.Now()
	r.now = func() time.Time { return now }
	r.read()
	for _, ms := range []time.Duration{100, 97, 103, 20, 100} {
		now = now.Add(ms * time.Millisecond)
		has(t, r.read()[0], gpu.SMActive, 0.9725)
	}
	now = now.Add(time.Millisecond)
	r.want = gpu.Set{}
	r.want.Add(gpu.TensorActive)
	d := r.read()[0]
	has(t, d, gpu.TensorActive, 0.7175)
	hasNot(t, d, gpu.SMActive)
}

func TestTheOnlyGPUMayBeLost(t *testing.T) {
	world := fakegpu.Server(1, 0, 0)
	world.Fail("nvmlDeviceGetHandleByIndex_v2", 0, 15)
	r := start(t, world)
	devices := r.read()
	require.Len(t, devices, 1)
	assert.Equal(t, gpu.Lost, devices[0].State)
	assert.True(t, devices[0].Deaf)
}

// Scenario: the kernel's driver gets one more GPU. Guarantees: it is read after the next look.
func TestAGPUThatIsAddedIsFound(t *testing.T) {
	listing := t.TempDir()
	list := func(name string) { require.NoError(t, os.Mkdir(filepath.Join(listing, name), 0o700)) }
	list("0000:00:09.0")
	r := start(t, fakegpu.Server(1, 0, 0))
	r.stop()
	require.NoError(t, r.Close())
	r.opts.Listing, r.opts.Look = listing, 10*time.Second
	require.NoError(t, r.Open(t.Context(), r.happened))
	opened := r.lib
	*r.world = *fakegpu.Server(2, 0, 0)
	r.change()
	r.later(r.opts.Look)
	assert.Len(t, r.read(), 1)
	assert.Same(t, opened, r.lib, "what is listed is what was")
	list("0000:00:0a.0")
	assert.Len(t, r.read(), 1)
	r.later(r.opts.Look)
	assert.Len(t, r.read(), 1, "behind this reading")
	assert.Len(t, r.read(), 2)
}

// Guarantees: a GPU is asked whether it is there, whatever is wanted and whatever it can do.
func TestALostGPUIsSeenWithoutAnyMetric(t *testing.T) {
	r := start(t, fakegpu.Server(2, 0, 0))
	for i := range r.world.GPUs {
		r.world.GPUs[i].Remove("mig.current", "mig.pending")
	}
	r.want = gpu.Set{}
	r.change()
	r.read()
	r.world.Fail("*", 1, 15)
	r.change()
	devices := r.read()
	assert.Equal(t, gpu.OK, devices[0].State)
	assert.Equal(t, gpu.Lost, devices[1].State)
}

func TestALostGPUIsSeenByADriverWithoutTemperature(t *testing.T) {
	if !fakegputest.InChild(t, "nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV") {
		return
	}
	TestALostGPUIsSeenWithoutAnyMetric(t)
}

// Guarantees: an instance that does not tell its number has no profiling until it does, and never the GPU's.
func TestAnInstanceWithoutANumberHasNoProfiling(t *testing.T) {
	world := fakegpu.H100MIG()
	world.Rules = append(world.Rules, fakegpu.Rule{Function: "nvmlDeviceGetGpuInstanceId", GPU: 0, Instance: fakegpu.All, Return: 999})
	r := start(t, world)
	again := func() []*gpu.Device {
		r.read()
		r.later(time.Second)
		return r.read()
	}
	for _, d := range again()[1:] {
		hasNot(t, d, gpu.SMActive, gpu.GraphicsActive)
		assert.Empty(t, d.Processes)
	}
	r.world.Rules = nil
	r.change()
	devices := again()
	has(t, devices[1], gpu.SMActive, 0.955)
	assert.Equal(t, uint32(2), devices[1].GPUInstance)
	assert.Len(t, devices[1].Processes, 3)
}

func TestADriverThatDoesNotNumberInstancesHasNoProfilingOfThem(t *testing.T) {
	if !fakegputest.InChild(t, "nvmlDeviceGetGpuInstanceId") {
		return
	}
	r := start(t, fakegpu.H100MIG())
	r.read()
	r.later(time.Second)
	devices := r.read()
	require.Len(t, devices, 5)
	for _, d := range devices[1:] {
		hasNot(t, d, gpu.SMActive, gpu.GraphicsActive)
		assert.True(t, d.Has(gpu.MemoryUsage))
	}
}

// Guarantees: what failed once while a GPU or an instance was got to know is asked for again.
func TestWhoADeviceIsIsAskedUntilItIsTold(t *testing.T) {
	world := fakegpu.H100MIG()
	for _, function := range []string{"nvmlDeviceGetName", "nvmlDeviceGetSerial", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetVbiosVersion", "nvmlGpmQueryDeviceSupport"} {
		world.Fail(function, 0, 999)
	}
	r := start(t, world)
	d := r.read()[0]
	assert.Empty(t, d.Model+d.Firmware+d.PCI)
	r.world.Rules = nil
	r.change()
	r.read()
	r.later(time.Second)
	devices := r.read()
	assert.Equal(t, "NVIDIA H100 80GB HBM3", devices[0].Model)
	assert.Equal(t, "0000:00:09.0", devices[0].PCI)
	assert.Equal(t, "3g.40gb", devices[1].Profile)
	has(t, devices[1], gpu.SMActive, 0.955)
}

// Guarantees: a question about the division that fails is no other division: the instances are there, and say nothing.
func TestAFailureIsNoOtherDivision(t *testing.T) {
	r := start(t, fakegpu.H100MIG())
	r.read()
	f := func(function string, instance int) {
		t.Helper()
		r.world.Rules = []fakegpu.Rule{{Function: function, GPU: 0, Instance: instance, Return: 999}}
		r.change()
		devices := r.read()
		require.Len(t, devices, 5, function)
		assert.True(t, devices[0].MIGEnabled)
		assert.Equal(t, gpu.OK, devices[0].State)
		assert.Equal(t, gpu.Degraded, devices[1].State)
		assert.Equal(t, r.world.GPUs[0].Instances[0].UUID, devices[1].UUID)
		assert.Equal(t, "3g.40gb", devices[1].Profile)
		hasNot(t, devices[1], gpu.MemoryUsage, gpu.SMActive)
		assert.Len(t, devices[1].Processes, 3)
		r.world.Rules = nil
		r.change()
		devices = r.read()
		assert.Equal(t, gpu.OK, devices[1].State)
		assert.True(t, devices[1].Has(gpu.MemoryUsage))
	}
	f("nvmlDeviceGetMigMode", fakegpu.All)
	f("nvmlDeviceGetMaxMigDeviceCount", fakegpu.All)
	f("nvmlDeviceGetMigDeviceHandleByIndex", fakegpu.All)
	f("nvmlDeviceGetUUID", 0)
}

// Scenario: two compute instances share a GPU instance. Guarantees: what is measured of both together is told of neither.
func TestWhatInstancesShareIsNobodysProfiling(t *testing.T) {
	world := fakegpu.H100MIG()
	g := &world.GPUs[0]
	second := g.Instances[0]
	second.UUID = "MIG-11111111-0000-0000-0000-000000000000"
	second.Values = map[string]float64{}
	for k, v := range g.Instances[0].Values {
		second.Values[k] = v
	}
	second.Set("ci", 1)
	g.Instances = append(g.Instances, second)
	r := start(t, world)
	again := func() []*gpu.Device {
		r.read()
		r.later(time.Second)
		return r.read()
	}
	devices := again()
	require.Len(t, devices, 6)
	for _, d := range []*gpu.Device{devices[1], devices[5]} {
		hasNot(t, d, gpu.SMActive, gpu.GraphicsActive, gpu.MemoryUnattributed)
		assert.True(t, d.Has(gpu.MemoryUsage))
		assert.True(t, d.Shared)
	}
	has(t, devices[2], gpu.GraphicsActive, 0)
	assert.Equal(t, uint64(2+3*2), fakegputest.Stats(t).GPMSamples)
	assert.True(t, devices[0].Has(gpu.MemoryUnattributed))

	g.Instances = g.Instances[:4]
	r.change()
	has(t, again()[1], gpu.SMActive, 0.955)
}

// Guarantees: a GPU whose Xids cannot be heard says so, and why is told once.
func TestXidsThatCannotBeHeardAreNoZeros(t *testing.T) {
	hear := func(t *testing.T, gpus, deaf int, function string) {
		world := fakegpu.Server(2, 0, 0)
		world.Fail(function, gpus, 3)
		r := start(t, world)
		require.NoError(t, r.Close())
		var told [][]string
		r.deaf = nil
		r.opts.Deaf = func(gpus []string) { told = append(told, gpus) }
		for range 2 {
			require.NoError(t, r.Open(t.Context(), r.happened))
			n := 0
			for _, d := range r.read() {
				if d.Deaf {
					n++
				}
			}
			assert.Equal(t, deaf, n)
			require.NoError(t, r.Close())
		}
		if deaf == 0 {
			assert.Empty(t, told)
			return
		}
		require.Len(t, told, 1)
		assert.Len(t, told[0], deaf)
		assert.Contains(t, told[0][0], "unsupported")
	}
	f := func(gpus, deaf int, function string) {
		t.Run(function, func(t *testing.T) { hear(t, gpus, deaf, function) })
	}
	f(1, 1, "nvmlDeviceRegisterEvents")
	f(0, 1, "nvmlDeviceGetSupportedEventTypes")
	f(fakegpu.All, 2, "nvmlEventSetCreate")
	f(fakegpu.All, 0, "nvmlDeviceGetPowerUsage")
}

func TestWithoutEventsXidsAreNotHeard(t *testing.T) {
	if !fakegputest.InChild(t, "nvmlEventSetCreate") {
		return
	}
	r := start(t, fakegpu.Server(1, 0, 0))
	assert.True(t, r.read()[0].Deaf)
}

// Guarantees: a GPU that answers as if there were no driver is alone with that: one call costs what it tells, all of them the GPU.
func TestOneGPUThatDeniesTheDriverIsNotTheEnd(t *testing.T) {
	f := func(t *testing.T, code int) {
		r := start(t, fakegpu.Server(4, 1, 4000))
		opened := r.lib
		r.read()
		for _, function := range []string{"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetFieldValues", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetTemperature"} {
			r.world.Rules = nil
			r.world.Fail(function, 1, code)
			r.change()
			devices := r.read()
			require.Len(t, devices, 4)
			assert.Equal(t, gpu.OK, devices[1].State)
			has(t, devices[1], gpu.GraphicsClock, 1980e6)
			assert.Positive(t, r.snapshot.Refused[gpu.Failed])
			has(t, devices[2], gpu.Temperature, 59)
		}
		r.world.Rules = nil
		r.world.Fail("*", 1, code)
		r.change()
		devices := r.read()
		require.Len(t, devices, 4)
		assert.Equal(t, gpu.Lost, devices[1].State)
		hasNot(t, devices[1], gpu.MemoryUsage, gpu.Temperature)
		has(t, devices[3], gpu.Temperature, 59)
		assert.Same(t, opened, r.lib)
	}
	for _, code := range []int{1, 9, 18, 28} {
		t.Run(fmt.Sprint(code), func(t *testing.T) { f(t, code) })
	}
}
