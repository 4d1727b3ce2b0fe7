// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

var kind = component.MustNewType("test")

// Guarantees: of the instances that take a signal one feeds the engine, each connects its output, and that is open once it has started.
func TestABatchIsHeardOnceHoweverManyInstancesGetIt(t *testing.T) {
	heard, out := map[string]int{}, new(Outputs)
	c := Connector[*counter]{
		Create:  func(connector.Settings, component.Config) (*counter, error) { return new(counter), nil },
		Outputs: func(*counter) *Outputs { return out },
		Metrics: func(*counter, context.Context, pmetric.Metrics) { heard["metrics"]++ },
		Traces:  func(*counter, context.Context, ptrace.Traces) { heard["traces"]++ },
		Logs:    func(*counter, context.Context, plog.Logs) { heard["logs"]++ },
	}
	cfg, set, metrics, logs := &struct{ int }{}, connectortest.NewNopSettings(kind), new(consumertest.MetricsSink), new(consumertest.LogsSink)
	f := connector.NewFactory(kind, func() component.Config { return cfg }, c.Options(component.StabilityLevelAlpha)...)
	m, err := f.CreateMetricsToMetrics(t.Context(), set, cfg, metrics)
	require.NoError(t, err)
	ml, err := f.CreateMetricsToLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	tm, err := f.CreateTracesToMetrics(t.Context(), set, cfg, metrics)
	require.NoError(t, err)
	tl, err := f.CreateTracesToLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	lm, err := f.CreateLogsToMetrics(t.Context(), set, cfg, metrics)
	require.NoError(t, err)
	l, err := f.CreateLogsToLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)

	assert.Same(t, metrics, out.Metrics)
	assert.Same(t, logs, out.Logs)
	assert.False(t, m.Capabilities().MutatesData)
	for _, i := range []connector.Metrics{m, ml} {
		require.NoError(t, i.ConsumeMetrics(t.Context(), pmetric.NewMetrics()))
	}
	for _, i := range []connector.Traces{tm, tl} {
		require.NoError(t, i.ConsumeTraces(t.Context(), ptrace.NewTraces()))
	}
	for _, i := range []connector.Logs{lm, l} {
		require.NoError(t, i.ConsumeLogs(t.Context(), plog.NewLogs()))
	}
	assert.Equal(t, map[string]int{"metrics": 1, "traces": 1, "logs": 1}, heard)

	require.NoError(t, tm.Start(t.Context(), nil))
	assert.True(t, out.Started.Metrics.Load())
	assert.False(t, out.Started.Logs.Load(), "nobody who takes logs has started")
	require.NoError(t, l.Start(t.Context(), nil))
	assert.True(t, out.Started.Logs.Load())
	for _, i := range []component.Component{m, ml, tm, tl, lm, l} {
		require.EqualError(t, i.Shutdown(t.Context()), "once")
	}
}

func TestAnEngineThatCannotBeMadeIsAnError(t *testing.T) {
	c := Connector[*counter]{Create: func(connector.Settings, component.Config) (*counter, error) { return nil, errors.New("no") }}
	f := connector.NewFactory(kind, func() component.Config { return nil }, c.Options(component.StabilityLevelAlpha)...)
	_, err := f.CreateLogsToLogs(t.Context(), connectortest.NewNopSettings(kind), &struct{ int }{}, new(consumertest.LogsSink))
	require.EqualError(t, err, "no")
}
