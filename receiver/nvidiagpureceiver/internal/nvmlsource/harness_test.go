// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu/fakegputest"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

func TestMain(m *testing.M) { os.Exit(fakegputest.Main(m)) }

// rig is a source on a scenario, with a clock that the test moves.
type rig struct {
	t     *testing.T
	world *fakegpu.Scenario
	*Source
	snapshot gpu.Snapshot
	want     gpu.Set

	mu     sync.Mutex
	stands time.Time // where the clock stands still but for what the test moves it; zero where it goes
	ahead  time.Duration
	events []gpu.Event
}

// start opens a source on the scenario. All points are wanted.
func start(t *testing.T, world *fakegpu.Scenario) *rig {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	r := &rig{t: t, world: fakegputest.Show(t, world), Source: New(Options{Library: fakegputest.Library()})}
	r.now = r.clock
	for p := range gpu.Points {
		r.want.Add(p)
	}
	require.NoError(t, r.Open(t.Context(), r.happened))
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stands.IsZero() {
		return r.stands.Add(r.ahead)
	}
	return time.Now().Add(r.ahead)
}

// stop lets the clock stand still, for what must not happen before the test says so.
func (r *rig) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stands = time.Now()
}

// later moves the clock.
func (r *rig) later(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ahead += d
}

func (r *rig) happened(e gpu.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// told waits until there are that many events.
func (r *rig) told(n int) []gpu.Event {
	r.t.Helper()
	var events []gpu.Event
	require.Eventually(r.t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		events = append(events[:0], r.events...)
		return len(events) >= n
	}, time.Minute, 5*time.Millisecond)
	return events
}

// change writes the scenario anew.
func (r *rig) change() {
	r.t.Helper()
	fakegputest.Change(r.t, r.world)
}

// read reads, and derives what follows.
func (r *rig) read() []*gpu.Device {
	r.t.Helper()
	require.NoError(r.t, r.tryRead())
	return r.snapshot.Devices
}

func (r *rig) tryRead() error {
	r.snapshot.Reset()
	err := r.Read(context.Background(), &r.want, &r.snapshot)
	r.snapshot.Derive()
	return err
}

// has checks a point to a value.
func has(t *testing.T, d *gpu.Device, p gpu.Point, want float64) {
	t.Helper()
	row := &gpu.Rows[p]
	if !assert.True(t, d.Has(p), "%s has no %s %s", d.UUID, row.Metric.Name, row.Value) {
		return
	}
	got := float64(d.Int(p))
	if row.Metric.Double {
		got = d.Float(p)
	}
	assert.InDelta(t, want, got, 1e-9*max(1, want), "%s %s", row.Metric.Name, row.Value)
}

// hasNot checks that points are not set.
func hasNot(t *testing.T, d *gpu.Device, points ...gpu.Point) {
	t.Helper()
	for _, p := range points {
		assert.False(t, d.Has(p), "%s has %s %s", d.UUID, gpu.Rows[p].Metric.Name, gpu.Rows[p].Value)
	}
}
