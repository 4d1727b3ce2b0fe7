// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"
)

type counter struct{ started, stopped int }

func (c *counter) Start(context.Context, component.Host) error { c.started++; return nil }
func (c *counter) Shutdown(context.Context) error              { c.stopped++; return errors.New("once") }

func create() (*counter, error) { return &counter{}, nil }

func TestInstancesOfOneConfigurationShareOneEngine(t *testing.T) {
	var g Group[*counter]
	cfg, other := &struct{ int }{1}, &struct{ int }{1}
	a, err := g.Join(cfg, create)
	require.NoError(t, err)
	b, _ := g.Join(cfg, create)
	c, _ := g.Join(other, create)
	assert.Same(t, a.Engine(), b.Engine())
	assert.NotSame(t, a.Engine(), c.Engine())

	assert.True(t, a.Claim(pipeline.SignalMetrics))
	assert.False(t, b.Claim(pipeline.SignalMetrics), "a batch is heard once")
	assert.True(t, b.Claim(pipeline.SignalLogs))

	for _, m := range []*Member[*counter]{a, b} {
		require.NoError(t, m.Start(t.Context(), componenttest.NewNopHost()))
	}
	for _, m := range []*Member[*counter]{a, b, a} {
		require.EqualError(t, m.Shutdown(t.Context()), "once")
	}
	assert.Equal(t, counter{1, 1}, *a.Engine())
}

// Guarantees: of the instances that take a signal one feeds the engine, and each connects its output.
func TestABatchIsHeardOnceHoweverManyInstancesGetIt(t *testing.T) {
	heard := map[string]int{}
	g := Group[*counter]{Hears: Hears[*counter]{
		Metrics: func(*counter, context.Context, pmetric.Metrics) { heard["metrics"]++ },
		Traces:  func(*counter, context.Context, ptrace.Traces) { heard["traces"]++ },
		Logs:    func(*counter, context.Context, plog.Logs) { heard["logs"]++ },
	}}
	cfg, connected, open := &struct{ int }{}, 0, new(atomic.Bool)
	connect := func(*counter) *atomic.Bool {
		connected++
		return open
	}
	for _, from := range []pipeline.Signal{pipeline.SignalMetrics, pipeline.SignalTraces, pipeline.SignalLogs} {
		for range 2 {
			i, err := g.Instance(cfg, from, create, connect)
			require.NoError(t, err)
			assert.False(t, i.Capabilities().MutatesData)
			switch from {
			case pipeline.SignalMetrics:
				require.NoError(t, i.ConsumeMetrics(t.Context(), pmetric.NewMetrics()))
			case pipeline.SignalTraces:
				require.NoError(t, i.ConsumeTraces(t.Context(), ptrace.NewTraces()))
			case pipeline.SignalLogs:
				require.NoError(t, i.ConsumeLogs(t.Context(), plog.NewLogs()))
			}
		}
	}
	assert.Equal(t, map[string]int{"metrics": 1, "traces": 1, "logs": 1}, heard)
	assert.Equal(t, 6, connected)
	assert.False(t, open.Load(), "nothing has started")
	last, err := g.Instance(cfg, pipeline.SignalLogs, create, connect)
	require.NoError(t, err)
	require.NoError(t, last.Start(t.Context(), nil))
	assert.True(t, open.Load())
	_, err = g.Instance(&struct{ int }{}, pipeline.SignalLogs, func() (*counter, error) { return nil, errors.New("no") }, nil)
	require.EqualError(t, err, "no")
}

func TestAfterShutdownTheConfigurationBeginsAnew(t *testing.T) {
	var g Group[*counter]
	cfg := &struct{ int }{}
	a, _ := g.Join(cfg, create)
	_ = a.Shutdown(t.Context())
	b, _ := g.Join(cfg, create)
	assert.NotSame(t, a.Engine(), b.Engine())
}

func TestAnEngineThatCannotBeMadeIsNotKept(t *testing.T) {
	var g Group[*counter]
	cfg := &struct{ int }{}
	_, err := g.Join(cfg, func() (*counter, error) { return nil, errors.New("no") })
	require.EqualError(t, err, "no")
	_, err = g.Join(cfg, create)
	require.NoError(t, err)
}
