// SPDX-License-Identifier: Apache-2.0

package dcgmsource

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

var library, scenario string // a fake, and what it shows

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "dcgmsource")
	if err != nil {
		panic(err)
	}
	scenario = filepath.Join(dir, "scenario")
	if err := os.Setenv(fakegpu.Variable, scenario); err != nil {
		panic(err)
	}
	if library, err = fakegpu.BuildDCGM(dir); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// rig is a source on a world that changes.
type rig struct {
	*Source
	t      *testing.T
	world  *fakegpu.Scenario
	s      gpu.Snapshot
	events []gpu.Event
}

func newRig(t *testing.T, world *fakegpu.Scenario, configure func(*Options)) *rig {
	t.Helper()
	opts := Options{Library: library, Embedded: true, Interval: func(gpu.Group) time.Duration { return 10 * time.Second }, Points: everything()}
	if configure != nil {
		configure(&opts)
	}
	r := &rig{Source: New(opts), t: t, world: world}
	r.change(func(*fakegpu.Scenario) {})
	t.Cleanup(func() {
		require.NoError(t, r.Close())
		stats, err := fakegpu.DCGMStats(scenario)
		require.NoError(t, err)
		assert.Zero(t, stats.Initialised, "the library is not shut down")
		assert.Zero(t, stats.EventSets, "sessions are left open")
		assert.Zero(t, stats.Invalid)
		assert.Zero(t, stats.Uninitialised)
	})
	return r
}

func everything() (s gpu.Set) {
	for p := range gpu.DevicePoints {
		s.Add(p)
	}
	return s
}

func (r *rig) change(how func(*fakegpu.Scenario)) {
	r.t.Helper()
	how(r.world)
	require.NoError(r.t, r.world.Write(scenario))
}

func (r *rig) open() {
	r.t.Helper()
	require.NoError(r.t, r.Open(r.t.Context(), func(e gpu.Event) { r.events = append(r.events, e) }))
}

func (r *rig) read() error {
	want := everything()
	r.s.Reset()
	return r.Read(r.t.Context(), &want, &r.s)
}

func rule(function string, code int) fakegpu.Rule {
	return fakegpu.Rule{Function: function, GPU: fakegpu.All, Instance: fakegpu.All, Return: code}
}

// Guarantees: each value of the captured H100 comes out in the unit of the table.
func TestAnH100(t *testing.T) {
	r := newRig(t, fakegpu.H100(), nil)
	r.open()
	require.NoError(t, r.read())
	require.Len(t, r.s.Devices, 1)
	d := r.s.Devices[0]
	assert.Equal(t, "590.48.01", r.s.Driver)
	assert.Equal(t, "GPU-00000000-0000-0000-0000-000000000000", d.UUID)
	assert.Equal(t, "NVIDIA H100 80GB HBM3", d.Model)
	assert.Equal(t, "96.00.A5.00.01", d.Firmware)
	assert.Equal(t, "0000:00:09.0", d.PCI, "as the kernel spells it")
	assert.Equal(t, 0, d.Minor)
	assert.Equal(t, gpu.OK, d.State)
	assert.False(t, d.Known)
	for p, want := range map[gpu.Point]uint64{
		gpu.MemoryLimit: 85520809984 >> 20 << 20, gpu.MemoryUsage: 20780679168 >> 20 << 20, gpu.MemoryReserved: 502267904 >> 20 << 20,
		gpu.SMClock: 1980e6, gpu.MemoryClock: 2619e6, gpu.VideoClock: 1545e6, gpu.PCIeReplays: 9,
		gpu.ThrottleIdle: 0, gpu.ThrottlePowerBrake: 0, gpu.ECCCorrected: 0, gpu.RemapPending: 0,
	} {
		assert.True(t, d.Has(p), "%s %s", gpu.Rows[p].Metric.Name, gpu.Rows[p].Value)
		assert.Equal(t, want, d.Int(p), "%s %s", gpu.Rows[p].Metric.Name, gpu.Rows[p].Value)
	}
	for p, want := range map[gpu.Point]float64{
		gpu.Utilization: 1, gpu.ControllerUtilization: 0.11, gpu.Power: 631.95, gpu.PowerLimit: 700, gpu.Energy: 123456.789, gpu.Temperature: 59,
		gpu.MemoryTemperature: 54, gpu.PowerViolation: 0, gpu.GraphicsActive: 0.995, gpu.SMActive: 0.9725, gpu.SMOccupancy: 0.485,
		gpu.TensorActive: 0.7175, gpu.DRAMActive: 0.225, gpu.PCIeTransmitRate: 3 << 20, gpu.PCIeReceiveRate: 6.25 * (1 << 20),
		gpu.NVLinkReceiveRate: 1 << 30, gpu.NVLinkTransmitRate: 2 << 30,
	} {
		assert.True(t, d.Has(p), gpu.Rows[p].Metric.Name)
		assert.InDelta(t, want, d.Float(p), 1e-6, gpu.Rows[p].Metric.Name)
	}
	for _, p := range []gpu.Point{gpu.GraphicsClock, gpu.PCIeReceived, gpu.NVLinkReceived, gpu.RetiredSingleBit, gpu.SlowdownTemperature} {
		assert.False(t, d.Has(p), gpu.Rows[p].Metric.Name)
	}
	assert.Zero(t, r.s.Refused, "what is not supported is no value that was refused")
}

// Guarantees: an instance has its own memory and profiling, by a name that NVML knows; what MIG does not have is absent.
func TestADividedH100(t *testing.T) {
	r := newRig(t, fakegpu.H100MIG(), nil)
	r.open()
	require.NoError(t, r.read())
	require.Len(t, r.s.Devices, 5)
	whole, first := r.s.Devices[0], r.s.Devices[1]
	assert.True(t, whole.MIGEnabled)
	assert.False(t, whole.Has(gpu.Utilization))
	assert.Equal(t, "MIG-00000000-0000-0000-0000-000000000000", first.UUID)
	assert.Equal(t, whole.UUID, first.Parent)
	assert.Equal(t, "3g.40gb", first.Profile)
	assert.Equal(t, uint32(2), first.GPUInstance)
	assert.Equal(t, uint64(40448<<20), first.Int(gpu.MemoryLimit))
	assert.Equal(t, uint64(11091<<20), first.Int(gpu.MemoryUsage))
	assert.InDelta(t, 0.955, first.Float(gpu.SMActive), 1e-9)
	assert.False(t, r.s.Devices[2].Has(gpu.SMActive))
	for _, d := range r.s.Devices[1:] {
		for _, p := range []gpu.Point{gpu.Utilization, gpu.EncoderUtilization, gpu.Power, gpu.Temperature} {
			assert.False(t, d.Has(p))
		}
	}
}

// Guarantees: a GPU that is divided otherwise is followed without another session.
func TestInstancesComeAndGo(t *testing.T) {
	r := newRig(t, fakegpu.H100(), nil)
	r.open()
	require.NoError(t, r.read())
	require.Len(t, r.s.Devices, 1)
	r.change(func(w *fakegpu.Scenario) { *w = *fakegpu.H100MIG() })
	require.NoError(t, r.read())
	require.Len(t, r.s.Devices, 5)
	assert.True(t, r.s.Devices[0].MIGEnabled)
	assert.True(t, r.s.Devices[1].Has(gpu.SMActive), "it is watched")
	r.change(func(w *fakegpu.Scenario) { *w = *fakegpu.H100() })
	require.NoError(t, r.read())
	require.Len(t, r.s.Devices, 1)
	assert.False(t, r.s.Devices[0].MIGEnabled)
}

// Guarantees: a GPU can be divided otherwise as often as one likes: nothing is left in the host engine each time.
func TestDivisionsAreFollowedForEver(t *testing.T) {
	r := newRig(t, fakegpu.H100(), nil)
	r.open()
	session := r.session
	for range 50 {
		r.change(func(w *fakegpu.Scenario) { *w = *fakegpu.H100MIG() })
		require.NoError(t, r.read())
		require.Len(t, r.s.Devices, 5)
		assert.True(t, r.s.Devices[1].Has(gpu.SMActive))
		r.change(func(w *fakegpu.Scenario) { *w = *fakegpu.H100() })
		require.NoError(t, r.read())
	}
	assert.Same(t, session, r.session)
}

func TestOnlyWhatIsWantedIsTold(t *testing.T) {
	r := newRig(t, fakegpu.H100(), nil)
	r.open()
	var want gpu.Set
	want.Add(gpu.MemoryUtilization, gpu.MemoryLimit, gpu.MemoryUsage)
	require.NoError(t, r.Read(t.Context(), &want, &r.s))
	for p := range gpu.DevicePoints {
		assert.Equal(t, want.Has(p) && p != gpu.MemoryUtilization, r.s.Devices[0].Has(p), gpu.Rows[p].Metric.Name)
	}
}

// Guarantees: no library, no host engine and no driver are what a source waits for.
func TestWithoutDCGMItIsNotAvailable(t *testing.T) {
	away := func(w *fakegpu.Scenario) { w.Rules = []fakegpu.Rule{rule("dcgmConnect_v2", -21)} }
	t.Run("no library", func(t *testing.T) {
		r := newRig(t, fakegpu.H100(), func(o *Options) { o.Library = "/nowhere/libdcgm.so.4" })
		require.ErrorIs(t, r.Open(t.Context(), nil), gpu.ErrUnavailable)
	})
	t.Run("no host engine", func(t *testing.T) {
		r := newRig(t, fakegpu.H100(), func(o *Options) { o.Endpoint = "localhost:5555" })
		r.change(away)
		require.ErrorIs(t, r.Open(t.Context(), nil), gpu.ErrUnavailable)
		r.change(func(w *fakegpu.Scenario) { w.Rules = nil })
		r.open()
		require.NoError(t, r.read())
	})
	t.Run("none on this machine, and none is to be run", func(t *testing.T) {
		r := newRig(t, fakegpu.H100(), func(o *Options) { o.Embedded = false })
		r.change(away)
		require.ErrorIs(t, r.Open(t.Context(), nil), gpu.ErrUnavailable)
	})
	t.Run("one is run in here", func(t *testing.T) {
		r := newRig(t, fakegpu.H100(), nil)
		r.change(away)
		r.open()
		require.NoError(t, r.read())
	})
}

// Scenario: the host engine is restarted.
// Guarantees: the session is over, and the next one reads; report 5.
func TestARestartedHostEngineEndsTheSession(t *testing.T) {
	r := newRig(t, fakegpu.H100(), func(o *Options) { o.Endpoint = "unix:///run/nvidia-hostengine/socket" })
	r.open()
	require.NoError(t, r.read())
	r.change(func(w *fakegpu.Scenario) { w.Rules = []fakegpu.Rule{rule(fakegpu.RuleHostEngine, 1)} })
	require.Error(t, r.read())
	require.NoError(t, r.Close())
	r.open()
	require.NoError(t, r.read())
}

// Guarantees: values that are not renewed are not told; when none is any more, the session is over; report 5.
func TestStaleValuesAreNotTold(t *testing.T) {
	r := newRig(t, fakegpu.H100(), nil)
	r.open()
	r.change(func(w *fakegpu.Scenario) { w.Rules = []fakegpu.Rule{rule("dcgm.203", fakegpu.NotRenewed)} })
	require.NoError(t, r.read())
	assert.False(t, r.s.Devices[0].Has(gpu.Utilization))
	assert.True(t, r.s.Devices[0].Has(gpu.Power))
	assert.Equal(t, int64(1), r.s.Refused[gpu.Stale])

	var want gpu.Set
	want.Add(gpu.Utilization)
	r.s.Reset()
	require.NoError(t, r.Read(t.Context(), &want, &r.s), "that nothing of what is wanted now is renewed is not the end")
	assert.Equal(t, int64(1), r.s.Refused[gpu.Stale])

	r.change(func(w *fakegpu.Scenario) { w.Rules = allStale() })
	require.ErrorIs(t, r.Read(t.Context(), &want, &r.s), errStale)
	require.ErrorIs(t, r.read(), errStale)

	// Another session with the same host engine is no better: it is not available until it is.
	require.NoError(t, r.Close())
	for range 3 {
		err := r.Open(t.Context(), nil)
		require.ErrorIs(t, err, errStale)
		require.ErrorIs(t, err, gpu.ErrUnavailable)
	}
	r.change(func(w *fakegpu.Scenario) { w.Rules = nil })
	r.open()
	require.NoError(t, r.read())
	assert.True(t, r.s.Devices[0].Has(gpu.Utilization))
}

// allStale lets the host engine renew nothing that is watched.
func allStale() (rules []fakegpu.Rule) {
	for _, f := range fieldsOf(everything()) {
		rules = append(rules, rule(fmt.Sprintf("dcgm.%d", f.id), fakegpu.NotRenewed))
	}
	return rules
}

// Scenario: the host engine's clock is an hour before or behind ours. Guarantees: its values are as old as they are, and events
// are in our time.
func TestAHostEngineHasAClockOfItsOwn(t *testing.T) {
	f := func(t *testing.T, ahead time.Duration) {
		r := newRig(t, fakegpu.H100(), nil)
		r.now = func() time.Time { return time.Now().Add(-ahead) }
		r.open()
		require.NoError(t, r.read())
		assert.True(t, r.s.Devices[0].Has(gpu.Utilization))
		assert.Zero(t, r.s.Refused[gpu.Stale])
		r.events = nil
		r.change(func(w *fakegpu.Scenario) { // one that no other test has had
			w.Events = []fakegpu.Event{{Sequence: uint64(time.Now().UnixNano()), Type: 8, Data: 79, GPUInstance: fakegpu.NoInstance, ComputeInstance: fakegpu.NoInstance}}
		})
		require.NoError(t, r.read())
		require.Len(t, r.events, 1)
		assert.InDelta(t, r.now().UnixNano(), r.events[0].Time, float64(time.Minute))

		r.now = func() time.Time { return time.Now().Add(-ahead).Add(2 * time.Minute) }
		require.ErrorIs(t, r.read(), errStale)
	}
	t.Run("before", func(t *testing.T) { f(t, time.Hour) })
	t.Run("behind", func(t *testing.T) { f(t, -time.Hour) })
}

// Guarantees: a GPU that is lost is told to be, and its neighbour reports on; report 14.
func TestALostGPUIsTold(t *testing.T) {
	r := newRig(t, fakegpu.Server(2, 0, 1), nil)
	r.open()
	r.change(func(w *fakegpu.Scenario) { w.Fail("*", 0, 15) })
	require.NoError(t, r.read())
	assert.Equal(t, gpu.Lost, r.s.Devices[0].State)
	assert.False(t, r.s.Devices[0].Has(gpu.Power))
	assert.Equal(t, gpu.OK, r.s.Devices[1].State)
	assert.True(t, r.s.Devices[1].Has(gpu.Power))
}

// Guarantees: a GPU that is lost when the session begins is there as a lost one, and another session begins when it answers, or
// when the host engine has another one.
func TestAGPUThatIsLostFromTheStartIsThere(t *testing.T) {
	world := fakegpu.Server(3, 0, 1)
	world.Fail("*", 1, 15)
	r := newRig(t, world, nil)
	r.open()
	require.NoError(t, r.read())
	require.Len(t, r.s.Devices, 3)
	for i, d := range r.s.Devices {
		assert.Equal(t, i, d.Index)
		assert.Equal(t, i == 1, d.State == gpu.Lost)
		assert.Equal(t, i == 1, d.UUID == "")
		assert.Equal(t, i != 1, d.Has(gpu.Power))
	}
	r.change(func(w *fakegpu.Scenario) { w.Rules = nil })
	require.NoError(t, r.read())
	assert.Equal(t, gpu.Lost, r.s.Devices[1].State)
	assert.False(t, r.s.Devices[1].Has(gpu.Power))
	r.now = func() time.Time { return time.Now().Add(askAgain) }
	require.ErrorIs(t, r.read(), errOthers)
	require.NoError(t, r.Close())
	r.open()
	require.NoError(t, r.read())
	assert.Equal(t, world.GPUs[1].UUID, r.s.Devices[1].UUID)

	r.change(func(w *fakegpu.Scenario) { *w = *fakegpu.Server(4, 0, 1) })
	require.ErrorIs(t, r.read(), errOthers)
}

// Guarantees: the same Xid twice is two, and one from before is none; report 4.
func TestXidsAreToldOnce(t *testing.T) {
	world := fakegpu.H100()
	world.Xid(0, 31)
	r := newRig(t, world, nil)
	r.open()
	require.NoError(t, r.read())
	r.events = nil // of the fake, which cannot know what was before it was loaded
	for range 2 {
		r.change(func(w *fakegpu.Scenario) { w.Xid(0, 79) })
		require.NoError(t, r.read())
		require.NoError(t, r.read())
	}
	require.Len(t, r.events, 2)
	for _, e := range r.events {
		assert.Equal(t, uint64(79), e.Code)
		assert.Equal(t, r.s.Devices[0].UUID, e.UUID)
	}
}

func TestXidsThatCannotBeHeardAreNoZeros(t *testing.T) {
	r := newRig(t, fakegpu.H100(), nil)
	r.open()
	require.NoError(t, r.read())
	assert.False(t, r.s.Devices[0].Deaf)
	r.change(func(w *fakegpu.Scenario) { w.Rules = []fakegpu.Rule{rule("dcgm.230", -6)} })
	require.NoError(t, r.read())
	assert.True(t, r.s.Devices[0].Deaf)
	assert.Equal(t, gpu.OK, r.s.Devices[0].State)
}

// Guarantees: where profiling is not supported, in part or as a whole, the rest is told; report 2.
func TestWithoutProfilingTheRestIsTold(t *testing.T) {
	world := fakegpu.H100()
	world.Rules = []fakegpu.Rule{rule(fakegpu.RuleProfiling, -36)}
	r := newRig(t, world, nil)
	r.open()
	require.NoError(t, r.read())
	assert.True(t, r.s.Devices[0].Has(gpu.Power))
	assert.False(t, r.s.Devices[0].Has(gpu.SMActive))
}

func TestBlanksAreCountedAndNothingElseIsLost(t *testing.T) {
	world := fakegpu.H100()
	world.GPUs[0].SetExact("power", fakegpu.Blank)
	world.GPUs[0].Set("utilization.gpu", 4294967295)
	r := newRig(t, world, nil)
	r.open()
	require.NoError(t, r.read())
	assert.False(t, r.s.Devices[0].Has(gpu.Power))
	assert.False(t, r.s.Devices[0].Has(gpu.Utilization))
	assert.True(t, r.s.Devices[0].Has(gpu.Temperature))
	assert.Equal(t, int64(1), r.s.Refused[gpu.Blank])
	assert.Equal(t, int64(1), r.s.Refused[gpu.OutOfRange])
}

func TestAGPUWithoutMemoryOfItsOwnSaysSo(t *testing.T) {
	r := newRig(t, fakegpu.GB10(), nil)
	r.open()
	require.NoError(t, r.read())
	assert.True(t, r.s.Devices[0].Unified)
}

func TestInAutoOnlyProfilingIsWatched(t *testing.T) {
	r := newRig(t, fakegpu.H100(), func(o *Options) { o.Points = gpu.Profiled })
	r.open()
	require.NoError(t, r.read())
	assert.True(t, r.s.Devices[0].Has(gpu.SMActive))
	assert.False(t, r.s.Devices[0].Has(gpu.Power))
}
