// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-llm/otelcol-llm/internal/frame"
	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/metadata"
)

func create(t testing.TB, cfg component.Config, next consumer.Metrics) processor.Metrics {
	t.Helper()
	p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, next)
	require.NoError(t, err)
	return p
}

func TestLifecycle(t *testing.T) {
	lifecycletest.Test(t, newHost(t, promise(0.2)), func(t testing.TB) processor.Metrics {
		return create(t, createDefaultConfig(), new(consumertest.MetricsSink))
	}, func(t testing.TB, p processor.Metrics) {
		md := constants(0, 10, 0.1, eu)
		md.MarkReadOnly()
		require.NoError(t, p.ConsumeMetrics(t.Context(), md))
	})
}

// Guarantees: all three signals pass as they came, by one engine, and the results of all leave by each metrics pipeline, in whatever
// order the Collector makes them.
func TestWhatComesInIsPassedOnAsItIs(t *testing.T) {
	f, set, cfg := NewFactory(), processortest.NewNopSettings(metadata.Type), defaults()
	cfg.IdleTimeout, cfg.Dimensions = 100*time.Millisecond, nil
	metrics, second := new(consumertest.MetricsSink), new(consumertest.MetricsSink)
	traces, logs := new(consumertest.TracesSink), new(consumertest.LogsSink)
	m := create(t, cfg, metrics)
	m2 := create(t, cfg, second)
	tr, err := f.CreateTraces(t.Context(), set, cfg, traces)
	require.NoError(t, err)
	l, err := f.CreateLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	all := []component.Component{m, m2, tr, l}
	h := newHost(t, promise(0.2))
	for _, c := range all {
		require.NoError(t, c.Start(t.Context(), h))
	}
	md, td, ld := constants(0, 400, 0.238, eu), ptrace.NewTraces(), plog.NewLogs()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("x")
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("x")
	md.MarkReadOnly()
	td.MarkReadOnly()
	ld.MarkReadOnly()
	require.NoError(t, m.ConsumeMetrics(t.Context(), md))
	require.NoError(t, m2.ConsumeMetrics(t.Context(), constants(0, 1, 0.238, eu)))
	require.NoError(t, tr.ConsumeTraces(t.Context(), td))
	require.NoError(t, l.ConsumeLogs(t.Context(), ld))
	assert.Equal(t, md, metrics.AllMetrics()[0])
	assert.Equal(t, td, traces.AllTraces()[0])
	assert.Equal(t, ld, logs.AllLogs()[0])
	require.Eventually(t, func() bool { return len(metrics.AllMetrics()) > 1 }, time.Minute, 10*time.Millisecond)
	for _, c := range all {
		require.NoError(t, c.Shutdown(t.Context()))
	}
	assert.Equal(t, "slo.drift.state", metrics.AllMetrics()[1].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Name())
	require.Len(t, second.AllMetrics(), len(metrics.AllMetrics()))
	for i, md := range metrics.AllMetrics()[1:] {
		assert.NoError(t, pmetrictest.CompareMetrics(md, second.AllMetrics()[1+i]))
	}
}

// Scenario: something in the Collector does not start: the traces pipeline has, the metrics pipeline never.
// Guarantees: nothing is sent to what has not started, also not with the last words; and once it has, results are.
func TestNothingIsSentToWhatHasNotStarted(t *testing.T) {
	f := func(started bool) {
		cfg, h, metrics := defaults(), newHost(t, promise(0.2)), new(consumertest.MetricsSink)
		cfg.IdleTimeout = 10 * time.Millisecond
		m := create(t, cfg, metrics)
		l, err := NewFactory().CreateLogs(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, new(consumertest.LogsSink))
		require.NoError(t, err)
		require.NoError(t, l.Start(t.Context(), h))
		require.NoError(t, m.ConsumeMetrics(t.Context(), constants(0, 400, 0.238, eu)))
		metrics.Reset()
		h.ticks(t, 6) // a window closes within a second
		assert.Empty(t, metrics.AllMetrics())
		if started {
			require.NoError(t, m.Start(t.Context(), h))
		}
		require.NoError(t, m.Shutdown(t.Context()))
		require.NoError(t, l.Shutdown(t.Context()))
		assert.Equal(t, started, len(metrics.AllMetrics()) > 0)
	}
	f(false)
	f(true)
}

// Scenario: the consumer of the results blocks for ever.
// Guarantees: the shutdown ends all the same.
func TestAConsumerThatBlocksDoesNotHoldTheEndUp(t *testing.T) {
	blocked, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		if md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Name() == ttft {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})
	require.NoError(t, err)
	cfg := defaults()
	cfg.IdleTimeout = 10 * time.Millisecond
	p := create(t, cfg, blocked)
	h := newHost(t, promise(0.2))
	require.NoError(t, p.Start(t.Context(), h))
	require.NoError(t, p.ConsumeMetrics(t.Context(), constants(0, 400, 0.1, eu)))
	h.ticks(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = p.Shutdown(ctx) // what the blocked consumer did not take is lost; that it ends, which the consumer never does by itself, is what counts
}

// Guarantees: what a consumer refuses is told again, less and less often, and another one gets it at once; what it will never take is
// dropped and counted.
func TestWhatIsNotTakenIsToldAgain(t *testing.T) {
	r := newRig(t, promise(0.2), nil)
	asked := 0
	var answer error
	refusing, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		asked++
		if answer == nil {
			return r.metrics.ConsumeMetrics(t.Context(), md)
		}
		return answer
	})
	require.NoError(t, err)
	other := new(consumertest.MetricsSink)
	r.leaveBy(refusing, other)
	answer = errors.New("not now")
	r.send(constants(0, 400, 0.238, eu))
	r.wait(2 * time.Minute)
	for range 40 {
		r.wait(frame.Tick)
	}
	assert.Equal(t, 4, asked, "after 0, 1, 3 and 7 seconds")
	assert.Len(t, other.AllMetrics(), 1)
	answer = nil
	r.wait(time.Minute)
	assert.InDelta(t, 0.19, r.last("slo.drift.deviation"), 0.001)

	answer = consumererror.NewPermanent(errors.New("never"))
	r.send(constants(30, 400, 0.238, eu))
	r.send(constants(31, 400, 0.238, eu))
	r.wait(time.Minute)
	assert.Positive(t, r.counted("results_dropped")[""])
	assert.Zero(t, r.outputs[0].Len())
}

func TestAMissingCatalogIsAnError(t *testing.T) {
	cfg := defaults()
	cfg.Catalog = component.MustNewID("other")
	p := create(t, cfg, new(consumertest.MetricsSink))
	assert.ErrorContains(t, p.Start(t.Context(), newHost(t, promise(0.2))), "other")
	assert.NoError(t, p.Shutdown(t.Context()))
}
