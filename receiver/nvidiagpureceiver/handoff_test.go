// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

// blocking is a consumer that takes nothing until it is open, as an exporter without a queue while its backend is away.
type blocking struct {
	consumer.Metrics
	open  chan struct{}
	calls atomic.Int32
}

func (b *blocking) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	b.calls.Add(1)
	select {
	case <-b.open:
		return b.Metrics.ConsumeMetrics(ctx, md)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// counting is a guard that counts what it is told, and the host that has it.
type counting struct {
	heard
	told atomic.Int32
}

func (c *counting) Device(gpuwatch.Device) { c.told.Add(1) }

func (c *counting) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("gpu_guard"): c}
}

const (
	takesNothing = "the metrics pipeline takes nothing: GPUs are read on, for events and the guard, and what it should have had is dropped"
	takesAgain   = "the metrics pipeline takes what is read again"
)

// Scenario: the metrics pipeline blocks; then a GPU is lost, and an operator asks for the handles.
// Guarantees: GPUs are read on, the guard is told, events go out, the handles are given back, and the end waits for nobody.
func TestAPipelineThatBlocksStopsNothingElse(t *testing.T) {
	var lost atomic.Bool
	id := component.MustNewID("gpu_guard")
	r := newRig(t, func(s *gpu.Snapshot) {
		if d := full(s, 0); lost.Load() {
			d.State = gpu.Lost
		}
	}, func(cfg *Config) { cfg.CollectionInterval, cfg.Guard = shortest, &id })
	r.now = time.Now
	r.outbox.Clock(r.now)
	blocked, guard := &blocking{Metrics: r.metrics, open: make(chan struct{})}, &counting{}
	r.engine.metrics = blocked
	require.NoError(t, r.Start(t.Context(), guard))
	require.Eventually(t, func() bool { return r.console.FilterMessage(takesNothing).Len() == 1 }, time.Minute, time.Millisecond)
	before := guard.told.Load()
	require.Eventually(t, func() bool { return guard.told.Load() > before }, time.Minute, time.Millisecond)
	lost.Store(true)
	require.Eventually(t, func() bool { return r.logs.LogRecordCount() == 1 }, time.Minute, time.Millisecond)
	assert.Equal(t, []string{eventLost}, r.eventNames())
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGUSR1))
	require.Eventually(t, func() bool { return strings.Contains(r.health.Text(), "all handles are given back until") }, time.Minute, time.Millisecond)
	assert.Equal(t, int32(1), blocked.calls.Load())
	assert.Positive(t, r.counted("scrapes_dropped", "")[""])
	require.NoError(t, r.Shutdown(context.Background()))
	assert.Equal(t, 1, r.source.closed)
}

// Guarantees: while the pipeline blocks, one reading waits and the others are dropped and counted, and one line says so; what comes
// then has the groups that were dropped, and ends what has gone meanwhile.
func TestWhatAPipelineDidNotTakeIsMadeUpFor(t *testing.T) {
	pids := []uint32{7, 9}
	r := newRig(t, func(s *gpu.Snapshot) {
		d := full(s, 0)
		d.Processes = d.Processes[:0]
		for _, pid := range pids {
			d.AddProcess(pid).Memory = uint64(pid)
		}
	}, func(cfg *Config) { cfg.CollectionInterval, cfg.ProcessInterval = time.Second, 3*time.Second })
	const process = "nvidia.gpu.process.memory.usage"
	taken := func() { r.metrics.Reset(); r.send(t.Context()) }
	read := func() { r.clock = r.clock.Add(r.step(t.Context())) }
	read() // waits
	pids = []uint32{9, 11}
	for range 3 {
		read() // the last is to have processes
	}
	assert.Len(t, r.handoff.waiting, 1)
	assert.Equal(t, int64(3), r.counted("scrapes_dropped", "")[""])
	assert.Equal(t, 1, r.console.FilterMessage(takesNothing).Len())
	taken()
	assert.Equal(t, []string{process + "{hw.id=GPU-0,process.pid=7} 7", process + "{hw.id=GPU-0,process.pid=9} 9"}, r.series(process))

	read()
	taken()
	assert.Equal(t, []string{process + "{hw.id=GPU-0,process.pid=11} 11", process + "{hw.id=GPU-0,process.pid=7} ended", process + "{hw.id=GPU-0,process.pid=9} 9"}, r.series(process))
	assert.Equal(t, 1, r.console.FilterMessage(takesAgain).Len())
	read()
	taken()
	assert.Empty(t, r.series(process), "that was made up for")
	assert.NotEmpty(t, r.series("hw.power"))
}

// Guarantees: that nothing comes any more is told even where a reading waits already, behind it, and is not counted as dropped.
func TestTheEndOfSeriesWaitsBehindAReading(t *testing.T) {
	r := newRig(t, one, nil)
	r.step(t.Context())
	r.release()
	assert.Len(t, r.handoff.waiting, 2)
	r.send(t.Context())
	assert.Equal(t, []string{"hw.power{hw.id=GPU-0} 100", "hw.power{hw.id=GPU-0} ended"}, r.series("hw.power"))
	got, err := r.tel.GetMetric("otelcol_nvidia_gpu_scrapes_dropped")
	assert.Error(t, err, "%v", got)
}

// Guarantees: a session that ends before its reading does not lose what is owed.
func TestWhatIsOwedOutlivesASession(t *testing.T) {
	fails := false
	r := newRig(t, one, func(cfg *Config) { cfg.ProcessInterval = time.Hour })
	r.source.fails = func() error {
		if fails {
			return errors.New("gone")
		}
		return nil
	}
	r.put([]pmetric.Metrics{pmetric.NewMetrics()})
	r.clock = r.clock.Add(r.step(t.Context()))
	r.send(t.Context())
	fails = true
	r.scrape()
	fails = false
	r.scrape()
	assert.NotEmpty(t, r.series("nvidia.gpu.process.memory.usage"))
}
