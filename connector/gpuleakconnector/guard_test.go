// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

// heard is a guard that keeps what it is told.
type heard struct {
	component.StartFunc
	component.ShutdownFunc
	leaks []gpuwatch.Leak
}

func (*heard) Device(gpuwatch.Device) {}
func (*heard) Live(gpuwatch.Live)     {}
func (*heard) Gone(gpuwatch.Process)  {}
func (h *heard) Leak(l gpuwatch.Leak) { h.leaks = append(h.leaks, l) }

func TestAGuardIsToldOfALeak(t *testing.T) {
	r, h := newRig(t, nil), &heard{}
	r.guard = h
	r.run(0, 4)
	require.Len(t, h.leaks, 1)
	got := h.leaks[0]
	assert.NotEmpty(t, got.ID)
	assert.Greater(t, got.At, t0.UnixNano())
	assert.Equal(t, gpuwatch.Leak{ID: got.ID, Open: true, Host: "node-1", PID: 71, Device: "GPU-0", Executable: "python3", Cause: "not_returned", At: got.At, Exhaustion: got.Exhaustion}, got)
	assert.InEpsilon(t, (39-0.4*time.Unix(0, got.At).Sub(t0).Hours())/0.4, got.Exhaustion.Hours(), 0.02, "as the event says")
}

// Guarantees: a guard that begins anew, as after a restart, knows of the leak that was open before.
func TestAGuardIsToldOfALeakThatWasOpenBeforeARestart(t *testing.T) {
	d := &disk{values: map[string][]byte{}}
	host, store := on{componenttest.NewNopHost(), d}, func(cfg *Config) { cfg.Storage = &diskID }
	before := newRigOn(t, host, store)
	before.run(0, 4)
	before.keeper.Save(t.Context())
	after, first, h := newRigOn(t, host, store), &heard{}, &heard{}
	before.guard = first
	before.remindGuard()
	after.guard = h
	after.remindGuard()
	require.Len(t, h.leaks, 1)
	assert.Equal(t, first.leaks[0].ID, h.leaks[0].ID)
	assert.Equal(t, 71, h.leaks[0].PID)
	assert.Equal(t, first.leaks[0].At, h.leaks[0].At)
}

func TestAGuardThatIsNotThereIsAnError(t *testing.T) {
	id := component.MustNewID("gpu_guard")
	r := newRig(t, func(cfg *Config) { cfg.Guard = &id })
	require.EqualError(t, r.Start(t.Context(), componenttest.NewNopHost()), `guard: there is no extension "gpu_guard" under service::extensions`)
}

// Guarantees: only what is not known is 0, and what is far away does not become what was.
func TestHowLongSomethingLasts(t *testing.T) {
	f := func(seconds float64, want time.Duration) {
		t.Helper()
		assert.Equal(t, want, lasts(seconds))
	}
	f(-1, 0)
	f(math.NaN(), 0)
	f(0, 1)
	f(1.5, 1500*time.Millisecond)
	f(1e12, 87600*time.Hour)
	f(math.Inf(1), 87600*time.Hour)
}
