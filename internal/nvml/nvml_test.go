// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu/fakegputest"
)

func TestMain(m *testing.M) { os.Exit(fakegputest.Main(m)) }

// open opens the fake on the scenario and takes the handle of its first GPU.
func open(t *testing.T, s *fakegpu.Scenario) (*Library, Device) {
	t.Helper()
	fakegputest.Show(t, s)
	l, err := Open(fakegputest.Library())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	d, o := l.Device(0)
	require.Equal(t, OK, o)
	return l, d
}

func TestEachReturnHasItsOutcome(t *testing.T) {
	f := func(want Outcome, codes ...nvml.Return) {
		t.Helper()
		for _, code := range codes {
			assert.Equal(t, want, outcome(code), int(code))
		}
	}
	f(OK, nvml.SUCCESS)
	f(Unsupported, nvml.ERROR_NOT_SUPPORTED)
	f(Absent, nvml.ERROR_NO_PERMISSION, nvml.ERROR_NOT_FOUND, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_TIMEOUT)
	f(Lost, nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED)
	f(Over, nvml.ERROR_UNINITIALIZED, nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_LIB_RM_VERSION_MISMATCH, nvml.ERROR_GPU_NOT_FOUND)
	f(Failed, nvml.ERROR_UNKNOWN, nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_INSUFFICIENT_SIZE, 12345)
}

func TestALibraryThatIsNotThereCanComeLater(t *testing.T) {
	if !fakegputest.InChild(t) {
		return
	}
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	_, err := Open(path)
	require.ErrorIs(t, err, ErrUnavailable)

	// The library is there, the driver is not loaded.
	require.NoError(t, os.Link(fakegputest.Library(), path))
	for range 3 {
		_, err = Open(path)
		require.ErrorIs(t, err, ErrUnavailable)
		assert.ErrorContains(t, err, "not loaded")
	}

	fakegputest.Show(t, fakegpu.H100())
	l, err := Open(path)
	require.NoError(t, err)
	assert.Equal(t, "590.48.01", l.Driver())
	n, o := l.Count()
	assert.Equal(t, OK, o)
	assert.Equal(t, 1, n)
	require.NoError(t, l.Close())
}

func TestALibraryThatIsNotNVMLIsRefused(t *testing.T) {
	_, err := Open("libm.so.6")
	require.ErrorContains(t, err, "no NVML: it has no nvmlInit_v2 and no nvmlInit")
	assert.NotErrorIs(t, err, ErrUnavailable)
}

func TestASecondLibraryIsRefused(t *testing.T) {
	open(t, fakegpu.H100())
	_, err := Open("libnvidia-ml.so.2")
	assert.ErrorContains(t, err, "start it again to use the other")
}

// Guarantees: with a library that lacks all that can be lacking, everything answers, nothing is called, and the process lives.
func TestWhatADriverLacksIsAbsent(t *testing.T) {
	var missing []string
	for fn, names := range symbols {
		if !slices.Contains(needed[:], function(fn)) {
			missing = append(missing, names...)
		}
	}
	if !fakegputest.InChild(t, missing...) {
		return
	}
	l, d := open(t, fakegpu.H100MIG())
	assert.Empty(t, l.Driver())
	before := fakegputest.Stats(t).Calls
	outcomes := everything(l, d)
	for name, o := range outcomes {
		assert.Equal(t, Absent, o, name)
	}
	assert.Equal(t, before, fakegputest.Stats(t).Calls)
}

// Scenario: the library is replaced in place, by one that has more functions. Guarantees: what is called is what was bound, so
// that a function of the other one does not end the process; and an opening that the driver refuses says what to do.
func TestALibraryThatWasReplacedHasNoMoreFunctions(t *testing.T) {
	if !fakegputest.InChild(t) {
		return
	}
	path := filepath.Join(t.TempDir(), fakegpu.NVMLLibrary)
	_, err := fakegpu.Build(filepath.Dir(path), "nvmlDeviceGetPowerUsage")
	require.NoError(t, err)
	world := fakegputest.Show(t, fakegpu.H100())
	f := func(want Outcome) {
		t.Helper()
		l, err := Open(path)
		require.NoError(t, err)
		d, o := l.Device(0)
		require.Equal(t, OK, o)
		_, o = d.Power()
		assert.Equal(t, want, o)
		_, o = d.Temperature()
		assert.Equal(t, OK, o)
		require.NoError(t, l.Close())
	}
	f(Absent)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Link(fakegputest.Library(), path))
	f(Absent)

	world.Fail("nvmlInit", fakegpu.All, 18)
	fakegputest.Change(t, world)
	_, err = Open(path)
	require.ErrorIs(t, err, ErrUnavailable)
	assert.ErrorContains(t, err, "after an upgrade of the driver, start this process again")
}

// Guarantees: the oldest driver that is supported tells what it can under its own names.
func TestAnOldDriverIsReadUnderItsOwnNames(t *testing.T) {
	world := fakegpu.H100().Old()
	if !fakegputest.InChild(t, world.Missing...) {
		return
	}
	world.GPUs[0].Set("event_reasons", 4)
	l, d := open(t, world)
	assert.Equal(t, "450.80.02", l.Driver())
	m, o := d.Memory()
	assert.Equal(t, OK, o)
	assert.Equal(t, Memory{Total: 85520809984, Used: 20780679168 + 502267904}, m, "an old driver counts in what is reserved")
	bits, o := d.EventReasons()
	assert.Equal(t, OK, o)
	assert.Equal(t, uint64(4), bits)
	list, sane, o := d.Processes(nil)
	assert.Equal(t, OK, o)
	assert.True(t, sane)
	assert.Equal(t, []Process{{11327, 2690646016, NoInstance, NoInstance}, {11328, 1616904192, NoInstance, NoInstance}, {11345, 16452157440, NoInstance, NoInstance}}, list)
	able, o := d.MeasuresPerformance()
	assert.False(t, able)
	assert.Equal(t, OK, o)
}

func TestTemperatureOfADriverThatLostTheOldFunction(t *testing.T) {
	if !fakegputest.InChild(t, "nvmlDeviceGetTemperature") {
		return
	}
	_, d := open(t, fakegpu.H100())
	v, o := d.Temperature()
	assert.Equal(t, OK, o)
	assert.Equal(t, uint32(59), v)
}

// everything calls all there is, on a device that is divided.
func everything(l *Library, d Device) map[string]Outcome {
	out := map[string]Outcome{}
	for name, read := range map[string]func(Device) (uint32, Outcome){
		"encoder": Device.Encoder, "decoder": Device.Decoder, "power": Device.Power, "limit": Device.PowerLimit, "temperature": Device.Temperature,
		"slowdown": Device.Slowdown, "shutdown": Device.Shutdown,
		"clock":      func(d Device) (uint32, Outcome) { return d.Clock(SMClock) },
		"throughput": func(d Device) (uint32, Outcome) { return d.PCIeThroughput(true) },
	} {
		_, out[name] = read(d)
	}
	for name, read := range map[string]func(Device) (uint64, Outcome){
		"energy": Device.Energy, "reasons": Device.EventReasons, "ecc": func(d Device) (uint64, Outcome) { return d.ECC(true) },
	} {
		_, out[name] = read(d)
	}
	for name, read := range map[string]func(Device) (string, Outcome){"name": Device.Name, "serial": Device.Serial, "vbios": Device.VBIOS, "pci": Device.PCI} {
		_, out[name] = read(d)
	}
	_, out["memory"] = d.Memory()
	_, _, out["utilization"] = d.Utilization()
	_, out["remapped"] = d.Remapped()
	_, out["retired"] = d.RetiredPages(true)
	_, out["retirement"] = d.RetirementPending()
	var fields Fields
	fields.Add(82, 0)
	out["fields"] = d.Read(&fields)
	_, out["field"] = fields.Uint(0)
	_, _, out["processes"] = d.Processes(nil)
	_, out["loads"] = d.ProcessLoads(0)
	_, out["mig"] = d.MIGEnabled()
	_, out["instances"] = d.MaxInstances()
	_, out["instance"] = d.Instance(0)
	_, _, out["ids"] = d.InstanceIDs()
	_, out["events"] = l.NewEvents()
	_, out["sample"] = l.NewSample()
	out["take"] = Sample{lib: l}.Take(d)
	out["take instance"] = Sample{lib: l}.TakeInstance(d, 2)
	var p Performance
	p.Ask([]uint32{2})
	out["metrics"] = p.Between(Sample{lib: l}, Sample{lib: l})
	return out
}

// Guarantees: report 2 of field-notes/gpu.md: what stands for no value is none.
func TestBlanksAreNoValues(t *testing.T) {
	world := fakegpu.H100()
	d := &world.GPUs[0].Device
	for key := range d.Values {
		d.SetExact(key, fakegpu.Blank)
	}
	d.Set("mig.max", 7)
	_, dev := open(t, world)
	for name, read := range map[string]func(Device) (uint32, Outcome){
		"power": Device.Power, "limit": Device.PowerLimit, "temperature": Device.Temperature,
		"clock": func(d Device) (uint32, Outcome) { return d.Clock(SMClock) },
	} {
		_, o := read(dev)
		assert.Equal(t, Blank, o, name)
	}
	for name, read := range map[string]func(Device) (uint64, Outcome){
		"energy": Device.Energy, "reasons": Device.EventReasons, "ecc": func(d Device) (uint64, Outcome) { return d.ECC(true) },
	} {
		_, o := read(dev)
		assert.Equal(t, Blank, o, name)
	}
	_, o := dev.Memory()
	assert.Equal(t, Blank, o)
	var fields Fields
	for _, id := range []uint32{82, 83, 94, 185, 197} {
		fields.Add(id, 0)
	}
	require.Equal(t, OK, dev.Read(&fields))
	for i := range fields.Len() {
		_, o := fields.Uint(i)
		assert.Equal(t, Blank, o, i)
	}
}

func TestAFieldHasTheOutcomeOfItsOwn(t *testing.T) {
	world := fakegpu.H100()
	world.GPUs[0].Remove("temperature.memory")
	world.GPUs[0].Set("field.74", 5)
	_, dev := open(t, world)
	var fields Fields
	memory, energy, replay, none, total, link, policy := fields.Add(82, 0), fields.Add(83, 0), fields.Add(94, 0), fields.Add(9999, 0), fields.Add(138, AllLinks), fields.Add(138, 3), fields.Add(74, 0)
	require.Equal(t, OK, dev.Read(&fields))
	f := func(place int, want uint64, outcome Outcome) {
		t.Helper()
		v, o := fields.Uint(place)
		assert.Equal(t, outcome, o)
		assert.Equal(t, want, v)
	}
	f(memory, 0, Unsupported)
	f(energy, 123456789, OK)
	f(replay, 9, OK)
	f(none, 0, Absent)
	f(total, 5<<30, OK)
	f(link, 5<<30/18, OK)
	f(policy, 5, OK)
	_, o := fields.Counter(replay)
	assert.Equal(t, Absent, o, "a counter of 32 bits is none")
	_, o = fields.Counter(energy)
	assert.Equal(t, OK, o)
}

// Guarantees: report 8: what a driver writes in another structure than the header has is refused as a whole.
func TestScrambledProcessesAreRefused(t *testing.T) {
	world := fakegpu.Server(1, 20, 4000)
	world.WideProcesses = true
	_, d := open(t, world)
	list, sane, o := d.Processes(nil)
	assert.Equal(t, OK, o)
	assert.False(t, sane)
	assert.Empty(t, list)
}

// Guarantees: report 8: of a driver that is known to write beyond the memory that it is given, the processes are told all the
// same, by the version of the call that is as it should be.
func TestADriverThatScramblesProcessesIsAskedOtherwise(t *testing.T) {
	world := fakegpu.Server(1, 20, 4000)
	world.Driver, world.WideProcesses = "535.54.03", true
	world.GPUs[0].Processes[3].Kind = fakegpu.Graphics
	_, d := open(t, world)
	list, sane, o := d.Processes(nil)
	assert.Equal(t, OK, o)
	assert.True(t, sane)
	require.Len(t, list, 20)
	assert.Contains(t, list, Process{4003, 512 << 20, NoInstance, NoInstance})
	assert.Contains(t, list, Process{4019, 512 << 20, NoInstance, NoInstance})

	world.Fail("nvmlDeviceGetComputeRunningProcesses_v2", 0, 15)
	fakegputest.Change(t, world)
	_, _, o = d.Processes(nil)
	assert.Equal(t, Lost, o)

	for driver, want := range map[string]bool{"535.43.02": true, "535.86.10": true, "535.98": false, "535.104.05": false, "530.30.02": false, "": false, "545": false} {
		assert.Equal(t, want, scramblesProcesses(driver), driver)
	}
}

// Guarantees: a list that is not told is no empty one: then nobody knows the processes.
func TestAListOfProcessesThatIsNotToldLeavesNoneKnown(t *testing.T) {
	world := fakegpu.H100()
	_, d := open(t, world)
	f := func(want Outcome, kind string, code int) {
		t.Helper()
		world.Rules = nil
		world.Fail("nvmlDeviceGet"+kind+"RunningProcesses_v3", 0, code)
		fakegputest.Change(t, world)
		list, sane, o := d.Processes(nil)
		assert.Equal(t, want, o, "%s %d", kind, code)
		assert.True(t, sane)
		assert.Equal(t, want == OK, len(list) == 3)
	}
	for _, code := range []int{4, 6, 10} {
		f(Absent, "Compute", code)
		f(Absent, "Graphics", code)
		f(Absent, "MPSCompute", code)
	}
	f(Failed, "Compute", 999)
	f(Failed, "MPSCompute", 999)
	f(Unsupported, "Compute", 3)
	f(OK, "Graphics", 3)
	f(OK, "MPSCompute", 3)
}

func TestADriverWithoutTheListOfProcessesTellsNone(t *testing.T) {
	if !fakegputest.InChild(t, symbols[fnCompute]...) {
		return
	}
	_, d := open(t, fakegpu.H100())
	_, _, o := d.Processes(nil)
	assert.Equal(t, Absent, o)
}

// Guarantees: what is reserved is not in what is used from one moment to the next: only a driver that does not know the
// structure is asked for the other one.
func TestAFailureDoesNotChangeWhatIsUsed(t *testing.T) {
	world := fakegpu.H100()
	fail := func(code int) { world.Rules = nil; world.Fail("nvmlDeviceGetMemoryInfo_v2", 0, code) }
	fail(13)
	_, d := open(t, world)
	f := func(want Outcome, reserved bool) {
		t.Helper()
		fakegputest.Change(t, world)
		m, o := d.Memory()
		assert.Equal(t, want, o)
		assert.Equal(t, reserved, m.HasReserved)
	}
	for _, code := range []int{2, 3, 13, 25} { // R510 before it was finished: NVIDIA/nvidia-settings#78
		fail(code)
		f(OK, false)
	}
	fail(999)
	f(Failed, false)
	fail(4)
	f(Absent, false)
	world.Rules = nil
	f(OK, true)
	fail(2)
	f(Failed, false)
	fail(3)
	f(Unsupported, false)
}

func TestAProcessOfSeveralKindsIsOne(t *testing.T) {
	world := fakegpu.H100()
	process := func(kind fakegpu.Kind, pid uint32, memory uint64) fakegpu.Process {
		return fakegpu.Process{Kind: kind, PID: pid, Memory: memory, GPUInstance: fakegpu.NoInstance, ComputeInstance: fakegpu.NoInstance, SM: fakegpu.Idle}
	}
	world.GPUs[0].Processes = []fakegpu.Process{
		process(fakegpu.Compute, 1, 100), process(fakegpu.Graphics, 1, 100), process(fakegpu.MPS, 2, 50), process(fakegpu.Compute, 3, fakegpu.Blank),
		process(fakegpu.Graphics, 3, 7), process(fakegpu.Compute, 4, fakegpu.Blank),
	}
	_, d := open(t, world)
	list, sane, o := d.Processes(nil)
	assert.Equal(t, OK, o)
	assert.True(t, sane)
	assert.ElementsMatch(t, []Process{{1, 100, NoInstance, NoInstance}, {2, 50, NoInstance, NoInstance}, {3, 7, NoInstance, NoInstance}, {4, UnknownMemory, NoInstance, NoInstance}}, list)
}

func TestIdleProcessesAreNoError(t *testing.T) {
	world := fakegpu.Server(1, 2, 4000)
	_, d := open(t, world)
	loads, o := d.ProcessLoads(0)
	assert.Equal(t, OK, o)
	assert.Len(t, loads, 2)
	loads, o = d.ProcessLoads(uint64(time.Now().Add(time.Hour).UnixMicro()))
	assert.Equal(t, OK, o, "nothing is newer than that")
	assert.Empty(t, loads)
	for i := range world.GPUs[0].Processes {
		world.GPUs[0].Processes[i].SM = fakegpu.Idle
	}
	fakegputest.Change(t, world)
	loads, o = d.ProcessLoads(0)
	assert.Equal(t, OK, o)
	assert.Empty(t, loads)
}

func TestXidsOfARegisteredDeviceAreToldOnce(t *testing.T) {
	world := fakegpu.Server(2, 0, 0)
	world.Xid(0, 31) // long ago
	l, first := open(t, world)
	second, _ := l.Device(1)
	events, o := l.NewEvents()
	require.Equal(t, OK, o)
	defer events.Free()
	require.Equal(t, OK, events.Register(first))
	_, o = events.Wait(time.Millisecond)
	assert.Equal(t, Absent, o)
	world.Xid(1, 13) // of one that is not registered
	world.Xid(0, 79)
	world.Add(fakegpu.Event{GPU: 0, Type: 8, Data: 79, GPUInstance: 2, ComputeInstance: 0})
	fakegputest.Change(t, world)
	for _, instance := range []uint32{NoInstance, 2} {
		xid, o := events.Wait(time.Second)
		assert.Equal(t, OK, o)
		assert.True(t, xid.Device.Same(first))
		assert.False(t, xid.Device.Same(second))
		assert.Equal(t, uint64(79), xid.Code)
		assert.Equal(t, instance, xid.GPUInstance)
	}
	_, o = events.Wait(time.Millisecond)
	assert.Equal(t, Absent, o)
}

func TestAHandleOfAClosedLibraryIsNotUsed(t *testing.T) {
	l, d := open(t, fakegpu.H100())
	other, err := Open(fakegputest.Library())
	require.NoError(t, err, "openings are counted")
	require.NoError(t, other.Close())
	_, o := d.Temperature()
	assert.Equal(t, OK, o)
	_, o = l.Count()
	assert.Equal(t, OK, o)
}
