// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pipeline"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/connector/tenantroutingconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
)

func TestLifecycle(t *testing.T) {
	create := func(t testing.TB) connector.Metrics {
		c, err := NewFactory().CreateMetricsToMetrics(t.Context(), connectortest.NewNopSettings(metadata.Type), createDefaultConfig(),
			connector.NewMetricsRouter(map[pipeline.ID]consumer.Metrics{toTenants: consumertest.NewNop()}))
		require.NoError(t, err)
		return c
	}
	lifecycletest.Test(t, newHost(), create, func(t testing.TB, c connector.Metrics) {
		assert.True(t, c.Capabilities().MutatesData)
		require.NoError(t, c.ConsumeMetrics(t.Context(), batch(1, "service.name=a", "host.name=h")))
		require.NoError(t, c.ConsumeMetrics(t.Context(), pmetric.NewMetrics()))
	})
}

// Scenario: another component fails to start, and what comes before this one sends its last before it is shut down.
// Guarantees: it is told so, and what was not started ends.
func TestWhatHasNotStartedRefusesAndEnds(t *testing.T) {
	r := buildRig(t, newHost(), zap.NewNop())
	require.ErrorIs(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=a")), errStopped)
	require.NoError(t, r.Shutdown(t.Context()))
	require.ErrorIs(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=a")), errStopped)

	r = buildRig(t, newHost(), zap.NewNop(), persistent) // no such storage
	require.Error(t, r.Start(t.Context(), r.host))
	require.ErrorIs(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=a")), errStopped)
	require.NoError(t, r.Shutdown(t.Context()))
}

func TestPipelinesThatAreNotThereAreNamed(t *testing.T) {
	f := func(want string, configure func(*Config), behind ...string) {
		t.Helper()
		cfg := createDefaultConfig().(*Config)
		configure(cfg)
		next := map[pipeline.ID]consumer.Metrics{}
		for _, name := range behind {
			next[metricsPipeline(name)] = consumertest.NewNop()
		}
		_, err := NewFactory().CreateMetricsToMetrics(t.Context(), connectortest.NewNopSettings(metadata.Type), cfg, connector.NewMetricsRouter(next))
		if want == "" {
			require.NoError(t, err)
			return
		}
		assert.ErrorContains(t, err, want)
	}
	f("", func(*Config) {}, "a")
	f("", func(*Config) {}, "a", "b")
	f("", func(c *Config) { c.DefaultPipelines.Logs = []pipeline.ID{pipeline.NewID(pipeline.SignalLogs)} }, "a")
	f(`default_pipelines::metrics[1]: no pipeline "metrics/c" has "tenant_routing/`, func(c *Config) {
		c.DefaultPipelines.Metrics = []pipeline.ID{metricsPipeline("a"), metricsPipeline("c")}
	}, "a", "b")
	f(`metrics: nothing would be sent to ["metrics/b"]: name it in default_pipelines or in a group`, func(c *Config) {
		c.DefaultPipelines.Metrics = []pipeline.ID{metricsPipeline("a")}
	}, "a", "b")
	group := func(name string) func(*Config) {
		return func(c *Config) {
			c.Groups = []Group{{Name: "g", Tenants: []string{"t"}, Pipelines: Pipelines{Metrics: []pipeline.ID{metricsPipeline(name)}}}}
		}
	}
	f("", group("b"), "a", "b")
	f(`groups[0]::pipelines::metrics[0]: no pipeline "metrics/c"`, group("c"), "a", "b")
	f("default_pipelines::metrics: names no pipeline, and groups take all there are", group("a"), "a")
	_, err := NewFactory().CreateMetricsToMetrics(t.Context(), connectortest.NewNopSettings(metadata.Type), createDefaultConfig(), consumertest.NewNop())
	assert.ErrorContains(t, err, "does not tell the pipelines behind the connector")
}

func metricsPipeline(name string) pipeline.ID {
	return pipeline.NewIDWithName(pipeline.SignalMetrics, name)
}

// Guarantees: what went astray is told in the log, together and not one by one.
func TestWhatWentAstrayIsLoggedTogether(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	r := newRigOn(t, newHost(), zap.New(core), direct, func(c *Config) { c.MaxTenants = 1 })
	for range 10 {
		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "host.name=h", "service.name=a/b", "service.name=first", "service.name=second")))
	}
	assert.Empty(t, logs.All())
	r.complain()
	r.complain()
	told := map[string]any{}
	for _, e := range logs.All() {
		fields := e.ContextMap()
		assert.EqualValues(t, 10, fields["items"])
		told[fields["reason"].(string)] = fields["example"]
	}
	assert.Equal(t, map[string]any{"unknown": nil, "invalid": "a/b", "overflow": "second"}, told)
	assert.Len(t, logs.All(), 3)
}
