// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
	"github.com/otelcol-llm/otelcol-llm/internal/frame"
	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
)

// all are the instances that the Collector makes of a connector that stands in pipelines of every signal.
type all struct {
	members []component.Component
	metrics []consumer.Metrics
	traces  []consumer.Traces
	logs    []consumer.Logs
}

func (a *all) Start(ctx context.Context, h component.Host) error {
	for _, m := range a.members {
		if err := m.Start(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

func (a *all) Shutdown(ctx context.Context) error {
	for _, m := range a.members {
		if err := m.Shutdown(ctx); err != nil {
			return err
		}
	}
	return nil
}

func allSignals(t testing.TB, cfg *Config, m consumer.Metrics, l consumer.Logs) *all {
	t.Helper()
	f, set, a := NewFactory(), connectortest.NewNopSettings(metadata.Type), &all{}
	mm, err := f.CreateMetricsToMetrics(t.Context(), set, cfg, m)
	require.NoError(t, err)
	ml, err := f.CreateMetricsToLogs(t.Context(), set, cfg, l)
	require.NoError(t, err)
	tm, err := f.CreateTracesToMetrics(t.Context(), set, cfg, m)
	require.NoError(t, err)
	tl, err := f.CreateTracesToLogs(t.Context(), set, cfg, l)
	require.NoError(t, err)
	lm, err := f.CreateLogsToMetrics(t.Context(), set, cfg, m)
	require.NoError(t, err)
	ll, err := f.CreateLogsToLogs(t.Context(), set, cfg, l)
	require.NoError(t, err)
	a.members = []component.Component{mm, ml, tm, tl, lm, ll}
	a.metrics, a.traces, a.logs = []consumer.Metrics{mm, ml}, []consumer.Traces{tm, tl}, []consumer.Logs{lm, ll}
	return a
}

// everySignal promises something of metrics, spans and log records.
var everySignal = ttftDocs + "---\n" +
	sloOf("spans", "llm:chat:spans:x", "", thresholdOf(`signal: traces, value: 'span.attributes["`+ttftKey+`"]', unit: s`), `{op: lte, value: 0.8, target: 0.95}`) +
	sloOf("scores", "llm:chat:scores:x", ", otelcol-llm.dev/class: quality", thresholdOf(`signal: logs, value: 'log.attributes["score"]', unit: ratio`), `{op: gte, value: 0.5, target: 0.95}`)

// say gives one item of each signal to every instance, as the Collector does: the batch is shared, and read-only.
func (a *all) say(t testing.TB) {
	md, td := hour()[0], requestSpan(1, t0, 0.5, 0.01)
	ld := evaluation(t0, "x", func(m pcommon.Map) { m.PutDouble("score", 0.9) })
	md.MarkReadOnly()
	td.MarkReadOnly()
	ld.MarkReadOnly()
	for _, c := range a.metrics {
		assert.False(t, c.Capabilities().MutatesData)
		require.NoError(t, c.ConsumeMetrics(t.Context(), md))
	}
	for _, c := range a.traces {
		assert.False(t, c.Capabilities().MutatesData)
		require.NoError(t, c.ConsumeTraces(t.Context(), td))
	}
	for _, c := range a.logs {
		assert.False(t, c.Capabilities().MutatesData)
		require.NoError(t, c.ConsumeLogs(t.Context(), ld))
	}
}

// Guarantees: whatever the pipelines, there is one judge, and it hears each batch once.
func TestOneEngineForAllSignals(t *testing.T) {
	m := new(consumertest.MetricsSink)
	a := allSignals(t, createDefaultConfig().(*Config), m, new(consumertest.LogsSink))
	for _, c := range a.members {
		assert.Same(t, a.members[0].(*instance).Engine(), c.(*instance).Engine())
	}
	require.NoError(t, a.Start(t.Context(), newHost(t, everySignal)))
	a.say(t)
	require.NoError(t, a.Shutdown(t.Context()))
	r := &rig{t: t, metrics: m}
	assert.Equal(t, [2]float64{100, 0}, r.outcomes("llm:chat:ttft:p95"))
	assert.Equal(t, [2]float64{1, 0}, r.outcomes("llm:chat:spans:x"))
	assert.Equal(t, [2]float64{1, 0}, r.outcomes("llm:chat:scores:x"), "a log record has no identity: it is the instances that hear once")
}

func TestLifecycleOfAllSignals(t *testing.T) {
	lifecycletest.Test(t, newHost(t, everySignal),
		func(t testing.TB) *all {
			return allSignals(t, createDefaultConfig().(*Config), new(consumertest.MetricsSink), new(consumertest.LogsSink))
		},
		func(t testing.TB, a *all) { a.say(t) })
}

// Scenario: input comes in before the start and after the end, as from a receiver of another pipeline.
func TestInputBeforeTheStartAndAfterTheEndIsHarmless(t *testing.T) {
	a := allSignals(t, createDefaultConfig().(*Config), new(consumertest.MetricsSink), new(consumertest.LogsSink))
	a.say(t)
	require.NoError(t, a.Start(t.Context(), newHost(t, everySignal)))
	require.NoError(t, a.Shutdown(t.Context()))
	a.say(t)
}

// Scenario: nobody takes the logs of the results, or the metrics.
func TestOneKindOfResultsIsEnough(t *testing.T) {
	f, set, cfg := NewFactory(), connectortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config)
	cfg.Lateness = 0
	m := new(consumertest.MetricsSink)
	c, err := f.CreateMetricsToMetrics(t.Context(), set, cfg, m)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), newHost(t, ttftDocs)))
	for _, md := range hour(1, 2, 3, 4) {
		require.NoError(t, c.ConsumeMetrics(t.Context(), md))
	}
	require.NoError(t, c.Shutdown(t.Context()))
	n, _ := (&rig{metrics: m}).last("slo.violations", nil)
	assert.InDelta(t, 1, n, 0)

	l := new(consumertest.LogsSink)
	other := createDefaultConfig().(*Config)
	other.Lateness = 0
	c, err = f.CreateMetricsToLogs(t.Context(), set, other, l)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), newHost(t, ttftDocs)))
	for _, md := range hour(1, 2, 3, 4) {
		require.NoError(t, c.ConsumeMetrics(t.Context(), md))
	}
	require.NoError(t, c.Shutdown(t.Context()))
	assert.Equal(t, 2, l.LogRecordCount())
}

// Scenario: the consumer of the results blocks for ever, and the Collector shuts down without a deadline, as it does.
// Guarantees: shutdown ends, and the last checkpoint has everything.
func TestABlockedConsumerCostsNoCheckpoint(t *testing.T) {
	blocked, err := consumer.NewMetrics(func(ctx context.Context, _ pmetric.Metrics) error { <-ctx.Done(); return ctx.Err() })
	require.NoError(t, err)
	d := newDisk()
	cfg := createDefaultConfig().(*Config)
	cfg.Storage = &diskID
	h := newHost(t, ttftDocs)
	h.others = map[component.ID]component.Component{diskID: d}
	c, _ := instances(t, cfg, new(consumertest.MetricsSink), new(consumertest.LogsSink))
	e := c.(*instance).Engine()
	e.out.Metrics, e.lastWords = blocked, 50*time.Millisecond
	require.NoError(t, c.Start(t.Context(), h))
	require.NoError(t, c.ConsumeMetrics(t.Context(), hour()[0]))
	ended := make(chan error, 1)
	go func() { ended <- c.Shutdown(context.Background()) }()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("shutdown does not end")
	}
	r := on(t, d, ttftDocs, nil)
	require.True(t, r.known)
	r.wait(time.Second)
	assert.Equal(t, [2]float64{100, 0}, r.outcomes("llm:chat:ttft:p95"))
}

// Scenario: senders of every signal, a catalog that changes, checkpoints, alerts, maintenance, a Prometheus that is asked, and a
// shutdown in the middle of it; for the race detector.
func TestEverythingAtOnce(t *testing.T) {
	maintained := everySignal + `
apiVersion: otelcol-llm.dev/v1alpha1
kind: MaintenanceWindow
metadata: {name: upgrade}
spec: {effect: silence, startTime: ` + t0.Format("2006-01-02 15:04:05") + `, timeZone: UTC, duration: 1h}
`
	s, p, d := newSiren(t), newMemory(t, map[string]string{}), newDisk()
	h := newHost(t, everySignal)
	versions := []*host{h, newHost(t, maintained), newHost(t, ttftDocs)}
	var version atomic.Int64
	source := &swapping{host: h, pick: func() *host { return versions[version.Load()%3] }}
	h.others = map[component.ID]component.Component{diskID: d, component.MustNewID("slo_catalog"): source}
	for round := range 2 {
		cfg := createDefaultConfig().(*Config)
		backfillFrom(t, p.URL)(cfg)
		alerts, err := configtest.Read(t, "testdata/config.yaml", "slo/alerts", createDefaultConfig().(*Config))
		require.NoError(t, err)
		cfg.Alertmanager = alerts.Alertmanager
		cfg.Alertmanager.Get().Endpoints = []string{s.URL}
		cfg.Storage, cfg.CheckpointInterval, cfg.Lateness, cfg.RefreshInterval = &diskID, time.Millisecond, 0, time.Millisecond
		cfg.Metrics = switched(t, "slo.sli.distribution", true)
		m := new(consumertest.MetricsSink)
		a := allSignals(t, cfg, m, new(consumertest.LogsSink))
		require.NoError(t, a.Start(t.Context(), h))
		var senders sync.WaitGroup
		for sender := range 3 {
			senders.Go(func() {
				for i, md := range hour(2, 3, 4) {
					_ = a.metrics[0].ConsumeMetrics(t.Context(), md)
					_ = a.traces[0].ConsumeTraces(t.Context(), requestSpan(1000*sender+i, t0.Add(time.Duration(i)*time.Minute), 0.5, 0.01))
					_ = a.logs[0].ConsumeLogs(t.Context(), evaluation(t0.Add(time.Duration(i)*time.Minute), "x", func(m pcommon.Map) { m.PutDouble("score", 0.9) }))
					version.Add(1)
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		require.Eventually(t, func() bool { return m.DataPointCount() > 0 }, time.Minute, 10*time.Millisecond)
		if round > 0 {
			senders.Wait()
		}
		require.NoError(t, a.Shutdown(t.Context()))
		senders.Wait()
	}
	assert.NotEmpty(t, d.values)
}

// Scenario: a Collector of which something does not start: an instance that leads to logs has started, the one that leads to
// metrics, and the consumer behind it, never. Guarantees: nothing is sent to a consumer that has not started, also not with the last
// words; and once it has, everything is.
func TestNothingIsSentToWhatHasNotStarted(t *testing.T) {
	metrics, logs := new(consumertest.MetricsSink), new(consumertest.LogsSink)
	f := func(started bool) {
		metrics.Reset()
		cfg := createDefaultConfig().(*Config)
		toMetrics, toLogs := instances(t, cfg, metrics, logs)
		h := newHost(t, ttftDocs)
		require.NoError(t, toLogs.Start(t.Context(), h))
		require.NoError(t, toLogs.ConsumeMetrics(t.Context(), hour()[0]))
		time.Sleep(2 * frame.Tick)
		assert.Empty(t, metrics.AllMetrics())
		if started {
			require.NoError(t, toMetrics.Start(t.Context(), h))
		}
		require.NoError(t, toMetrics.Shutdown(t.Context())) // the Collector shuts down what never started, too
		require.NoError(t, toLogs.Shutdown(t.Context()))
		assert.Equal(t, started, len(metrics.AllMetrics()) > 0)
	}
	f(false)
	f(true)
}
