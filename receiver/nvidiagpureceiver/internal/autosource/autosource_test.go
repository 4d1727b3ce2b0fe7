// SPDX-License-Identifier: Apache-2.0

package autosource

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// plain is a source of one busy GPU and one instance, with a value for what is wanted.
type plain struct {
	value         float64 // of sm.active
	down          error
	instance      string
	opened, open  int
	wanted        gpu.Set
	events        func(gpu.Event)
	knowsProfiled bool
	hang          chan struct{} // while it is there, nothing is answered before it is closed
}

func (p *plain) wait() {
	if p.hang != nil {
		<-p.hang
	}
}

func (p *plain) Open(_ context.Context, events func(gpu.Event)) error {
	p.wait()
	if p.down != nil {
		return p.down
	}
	p.opened++
	p.open++
	p.events = events
	return nil
}

func (p *plain) Close() error {
	p.wait()
	p.open = 0
	return nil
}

func (p *plain) Read(_ context.Context, want *gpu.Set, s *gpu.Snapshot) error {
	p.wait()
	if p.down != nil {
		return p.down
	}
	p.wanted = *want
	d := s.Add()
	d.UUID = "GPU-1"
	m := s.Add()
	m.UUID, m.Parent, m.GPUInstance = p.instance, "GPU-1", 3
	if !p.knowsProfiled {
		d.Set(gpu.Utilization, 1)
	}
	for _, d := range s.Devices {
		if want.Has(gpu.SMActive) {
			d.Set(gpu.SMActive, p.value)
		}
	}
	return nil
}

const again = 10 * time.Second

type rig struct {
	*Source
	nvml, dcgm *plain
	clock      time.Time
	told       []error
	s          gpu.Snapshot
}

func newRig(t *testing.T) *rig {
	r := &rig{
		nvml: &plain{value: 0.25, instance: "MIG-1"}, dcgm: &plain{value: 0.75, instance: "MIG-GPU-1/3/0", knowsProfiled: true},
		clock: time.Unix(1_700_000_000, 0),
	}
	r.Source = New(r.nvml, r.dcgm, again, func(err error) { r.told = append(r.told, err) })
	r.now = func() time.Time { return r.clock }
	r.Patience = time.Hour // only what hangs is not waited for, however slow the machine is
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	return r
}

// read returns sm.active of the GPU and of its instance, -1 where there is none.
func (r *rig) read(t *testing.T, points ...gpu.Point) (values [2]float64) {
	t.Helper()
	var want gpu.Set
	want.Add(points...)
	r.s.Reset()
	require.NoError(t, r.Read(t.Context(), &want, &r.s))
	for i, d := range r.s.Devices {
		values[i] = -1
		if d.Has(gpu.SMActive) {
			values[i] = d.Float(gpu.SMActive)
		}
	}
	return values
}

var all = []gpu.Point{gpu.Utilization, gpu.Power, gpu.SMActive}

// Guarantees: DCGM tells profiling, NVML all else, and what one tells the other is not asked for.
func TestEachIsAskedForWhatItKnows(t *testing.T) {
	r := newRig(t)
	require.NoError(t, r.Open(t.Context(), func(gpu.Event) {}))
	assert.Equal(t, [2]float64{0.75, 0.75}, r.read(t, all...), "the instance is found by its numbers")
	assert.True(t, r.nvml.wanted.Has(gpu.Power))
	assert.False(t, r.nvml.wanted.Has(gpu.SMActive))
	assert.False(t, r.dcgm.wanted.Has(gpu.Power))
	assert.Equal(t, []error{nil}, r.told)

	r.dcgm.wanted = gpu.Set{}
	r.read(t, gpu.Power)
	assert.True(t, r.dcgm.wanted.Empty(), "it is not asked where no profiling is wanted")
}

// Guarantees: without DCGM, profiling is GPM's; one that comes later, or again, is taken up; its Xids are not counted twice.
func TestDCGMComesAndGoes(t *testing.T) {
	r := newRig(t)
	down := errors.New("no host engine")
	r.dcgm.down = down
	heard := 0
	require.NoError(t, r.Open(t.Context(), func(gpu.Event) { heard++ }))
	assert.Equal(t, [2]float64{0.25, 0.25}, r.read(t, all...))
	r.dcgm.down = nil
	assert.Equal(t, [2]float64{0.25, 0.25}, r.read(t, all...), "it is not looked for at each reading")
	r.clock = r.clock.Add(again)
	assert.Equal(t, [2]float64{0.75, 0.75}, r.read(t, all...))
	r.dcgm.events(gpu.Event{})
	r.nvml.events(gpu.Event{})
	assert.Equal(t, 1, heard)

	r.dcgm.down = down
	assert.Equal(t, [2]float64{0.25, 0.25}, r.read(t, all...))
	assert.Zero(t, r.dcgm.open)
	r.dcgm.down = nil
	r.clock = r.clock.Add(again)
	assert.Equal(t, [2]float64{0.75, 0.75}, r.read(t, all...))
	assert.Equal(t, []error{down, nil, down, nil}, r.told)
}

// Guarantees: DCGM's profiling that says 0 of a busy device is not told, and NVML's is instead, until DCGM's is right again;
// report 13.
func TestProfilingThatIsNotBelievedFallsBack(t *testing.T) {
	r := newRig(t)
	require.NoError(t, r.Open(t.Context(), func(gpu.Event) {}))
	r.dcgm.value = 0
	assert.Equal(t, [2]float64{0, 0}, r.read(t, all...), "a job has just begun, or its profiling is late")
	assert.Equal(t, [2]float64{0, 0}, r.read(t, all...))
	assert.False(t, r.s.Devices[0].Implausible)
	assert.Equal(t, [2]float64{-1, 0}, r.read(t, all...), "nothing is known of the GPU; an instance has no utilization to hold it against")
	assert.True(t, r.s.Devices[0].Implausible)
	assert.Equal(t, int64(1), r.s.Refused[gpu.Implausible])
	assert.Equal(t, [2]float64{0.25, 0}, r.read(t, all...))
	assert.True(t, r.s.Devices[0].Implausible)
	r.dcgm.value = 0.5
	assert.Equal(t, [2]float64{0.5, 0.5}, r.read(t, all...))
	assert.False(t, r.s.Devices[0].Implausible)
	r.read(t, all...)
	assert.False(t, r.nvml.wanted.Has(gpu.SMActive))
}

// Scenario: a host engine hangs, in a reading or while it is looked for, and answers again at last.
// Guarantees: readings wait for it once and a little, NVML is asked for all, it is taken up when it answers; and a closing does
// not wait for it either, and has it closed when it answers.
func TestAHostEngineThatHangsStopsNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	r := newRig(t)
	require.NoError(t, r.Open(t.Context(), func(gpu.Event) {}))
	assert.Equal(t, [2]float64{0.75, 0.75}, r.read(t, all...))
	r.dcgm.hang = make(chan struct{})
	r.Patience = time.Millisecond
	assert.Equal(t, [2]float64{0.25, 0.25}, r.read(t, all...))
	r.Patience = time.Hour // which nobody waits any more
	for range 100 {
		assert.Equal(t, [2]float64{0.25, 0.25}, r.read(t, all...))
	}
	assert.Equal(t, []error{nil, errSlow}, r.told)
	close(r.dcgm.hang)
	assert.Eventually(t, func() bool { return r.read(t, all...) == [2]float64{0.75, 0.75} }, time.Minute, time.Millisecond)
	assert.Equal(t, []error{nil, errSlow, nil}, r.told)

	r.dcgm.hang = make(chan struct{}) // nobody has DCGM now
	r.Patience = time.Millisecond
	require.ErrorIs(t, r.Close(), errHeld)
	assert.Zero(t, r.nvml.open, "it does not keep NVML's handles")
	require.ErrorIs(t, r.Close(), errHeld, "nor is it forgotten")
	require.NoError(t, r.Open(t.Context(), func(gpu.Event) {}))
	assert.Equal(t, [2]float64{0.25, 0.25}, r.read(t, all...))
	require.ErrorIs(t, r.Close(), errHeld)
	r.Patience = time.Hour
	close(r.dcgm.hang)
	require.NoError(t, r.Open(t.Context(), func(gpu.Event) {}))
	assert.Eventually(t, func() bool { return r.read(t, all...) == [2]float64{0.75, 0.75} }, time.Minute, time.Millisecond)
	require.NoError(t, r.Close())
	assert.Zero(t, r.dcgm.open)
}

func TestAHostEngineOutOfReachStopsNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	r := newRig(t)
	r.dcgm.hang = make(chan struct{})
	r.Patience = time.Millisecond
	require.NoError(t, r.Open(t.Context(), func(gpu.Event) {}))
	r.Patience = time.Hour // which nobody waits any more
	for range 100 {
		r.clock = r.clock.Add(again)
		assert.Equal(t, [2]float64{0.25, 0.25}, r.read(t, all...))
	}
	r.Patience = time.Millisecond
	require.ErrorIs(t, r.Close(), errHeld)
	close(r.dcgm.hang)
}

func TestWithoutNVMLThereIsNoSession(t *testing.T) {
	r := newRig(t)
	r.nvml.down = gpu.ErrUnavailable
	require.ErrorIs(t, r.Open(t.Context(), func(gpu.Event) {}), gpu.ErrUnavailable)
	assert.Zero(t, r.dcgm.opened)
	r.nvml.down = nil
	require.NoError(t, r.Open(t.Context(), func(gpu.Event) {}))
	r.nvml.down = errors.New("gone")
	var want gpu.Set
	want.Add(all...)
	assert.Error(t, r.Read(t.Context(), &want, &r.s))
}
