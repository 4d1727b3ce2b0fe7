// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/processor/sloschemaprocessor/internal/metadata"
)

func create(t testing.TB, cfg component.Config, next *consumertest.MetricsSink) processor.Metrics {
	t.Helper()
	p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(metadata.Type), cfg, next)
	require.NoError(t, err)
	return p
}

func TestLifecycle(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	cfg := createDefaultConfig()
	lifecycletest.Test(t, newHost(parse(t, chatDocs)),
		func(t testing.TB) processor.Metrics { return create(t, cfg, sink) },
		func(t testing.TB, p processor.Metrics) {
			assert.True(t, p.Capabilities().MutatesData)
			require.NoError(t, p.ConsumeMetrics(t.Context(), points(10)))
		})
	assert.Equal(t, 20, sink.DataPointCount())
}

// Guarantees: what one pipeline learns of an SLO, the other pipelines of the same processor know, and the processor runs
// until the last of them has ended.
func TestPipelinesShareWhatIsLearned(t *testing.T) {
	cfg, h := createDefaultConfig(), newHost(&openslo.Catalog{})
	var a, b consumertest.MetricsSink
	first, second := create(t, cfg, &a), create(t, cfg, &b)
	require.NoError(t, first.Start(t.Context(), h))
	require.NoError(t, second.Start(t.Context(), h))
	labels := map[string]any{"sloth_id": "chat-ttft", "sloth_service": "chat"}
	md := pmetric.NewMetrics()
	gauges(md, "slo:objective:ratio", 0.95, labels)
	require.NoError(t, first.ConsumeMetrics(t.Context(), md))
	require.NoError(t, first.Shutdown(t.Context()))
	md = pmetric.NewMetrics()
	gauges(md, "slo:current_burn_rate:ratio", 2, labels)
	require.NoError(t, second.ConsumeMetrics(t.Context(), md))
	require.NoError(t, second.Shutdown(t.Context()))
	assert.Equal(t, "0.9500", attributesOf(b.AllMetrics()[0], "slo:current_burn_rate:ratio")[0]["target"])
}

func TestWhatIsWrongWithTheCatalogKeepsTheCollectorFromStarting(t *testing.T) {
	p := create(t, createDefaultConfig(), new(consumertest.MetricsSink))
	require.EqualError(t, p.Start(t.Context(), componenttest.NewNopHost()),
		`catalog: no extension "slo_catalog" is running: add it under extensions and service.extensions`)
	require.NoError(t, p.Shutdown(t.Context()))

	p = create(t, createDefaultConfig(), new(consumertest.MetricsSink))
	bad := catalogOf(1, true)
	bad.SLOs[0].Indicator.Threshold.Condition = "nonsense(1)"
	require.ErrorContains(t, p.Start(t.Context(), newHost(bad)), `slo_schema: :0: slo "chat": condition: `)
	require.NoError(t, p.Shutdown(t.Context()))
}

// Scenario: everything in a batch is dropped. Guarantees: the next component does not get an empty one.
func TestNothingIsSentWhenAllIsDropped(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.OnUnknown = Drop
	sink := new(consumertest.MetricsSink)
	p := create(t, cfg, sink)
	require.NoError(t, p.Start(t.Context(), newHost(&openslo.Catalog{})))
	md := pmetric.NewMetrics()
	gauges(md, "pyrra_window", 1, map[string]any{"slo": "a"})
	require.NoError(t, p.ConsumeMetrics(t.Context(), md))
	require.NoError(t, p.ConsumeMetrics(t.Context(), pmetric.NewMetrics()))
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Len(t, sink.AllMetrics(), 1, "an empty batch is the sender's, and passes")
}
