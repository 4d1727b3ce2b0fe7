// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

// heard is a guard that keeps what it is told.
type heard struct {
	component.StartFunc
	component.ShutdownFunc
	devices []gpuwatch.Device
}

func (h *heard) Device(d gpuwatch.Device) { h.devices = append(h.devices, d) }
func (*heard) Live(gpuwatch.Live)         {}
func (*heard) Gone(gpuwatch.Process)      {}
func (*heard) Leak(gpuwatch.Leak)         {}

// guarded is a rig that tells a guard.
func guarded(t *testing.T, read func(*gpu.Snapshot), configure func(*Config)) (*rig, *heard) {
	t.Helper()
	r, h := newRig(t, read, configure), &heard{}
	r.guard, r.who = h, named{42: {Start: 7}}
	r.prepare()
	return r, h
}

func TestAGuardIsToldOfEachReading(t *testing.T) {
	r, h := guarded(t, func(s *gpu.Snapshot) {
		d := s.Add()
		d.UUID, d.Known = "GPU-a", true
		d.SetInt(gpu.MemoryLimit, 1000)
		d.SetInt(gpu.MemoryUsage, 700)
		d.SetInt(gpu.MemoryReserved, 50)
		d.AddProcess(42).Memory = 600
		d.AddProcess(43).Memory = 10
		d.AddProcess(44) // of which the driver does not tell the memory
		divided := s.Add()
		divided.UUID, divided.MIGEnabled = "GPU-b", true
		divided.SetInt(gpu.MemoryLimit, 1000)
		divided.SetInt(gpu.MemoryUsage, 990)
		part := s.Add()
		part.UUID, part.Parent = "MIG-c", "GPU-b"
		part.SetInt(gpu.MemoryLimit, 500)
		part.SetInt(gpu.MemoryUsage, 400)
		lost := s.Add()
		lost.UUID, lost.State = "GPU-d", gpu.Lost
	}, nil)
	r.scrape()
	at := t0.UnixNano()
	assert.Equal(t, []gpuwatch.Device{
		{ID: "GPU-a", Total: 1000, Used: 750, At: at, Processes: []gpuwatch.Held{
			{Process: gpuwatch.Process{PID: 42, StartTime: 7}, Bytes: 600}, {Process: gpuwatch.Process{PID: 43}, Bytes: 10},
		}},
		{ID: "MIG-c", Total: 500, Used: 400, At: at}, // its processes were not read, which is not the same as none
	}, h.devices)
}

// Guarantees: what the guard has to know is read although no metric is made of it, and nothing else is.
func TestAGuardIsToldWithoutAnyMetric(t *testing.T) {
	r, _ := guarded(t, one, nil)
	r.metrics, r.engine.metrics = nil, nil
	r.prepare()
	r.step(t.Context())
	require.NotEmpty(t, r.source.wanted)
	for _, of := range forGuard {
		assert.True(t, r.source.wanted[0].Has(of))
	}
	assert.False(t, r.source.wanted[0].Has(gpu.Power))
}

func TestAGuardThatIsNotThereIsAnError(t *testing.T) {
	id := component.MustNewID("gpu_guard")
	r := newRig(t, one, func(cfg *Config) { cfg.Guard = &id })
	require.EqualError(t, r.Start(t.Context(), componenttest.NewNopHost()), `guard: there is no extension "gpu_guard" under service::extensions`)
}
