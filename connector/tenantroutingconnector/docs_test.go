// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/tenantroutingconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
)

func TestMetadataAgreesWithTheCode(t *testing.T) {
	f := NewFactory()
	described := doctest.Metadata(t, "connector", f, metadata.ScopeName,
		map[component.StabilityLevel][]string{metadata.Stability: {"metrics_to_metrics", "logs_to_logs", "traces_to_traces"}})

	h := newHost()
	h.extensions[storageID] = &full{}
	r := newRigOn(t, h, zap.NewNop(), persistent, func(c *Config) { c.Limits.ActiveSeries, c.Queue.Get().QueueSize = 1, 1 })
	r.to[toTenants].fail(func(context.Context, string) error { return assert.AnError })
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(2, "service.name=a", "host.name=h")))
	require.Error(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=a")))
	r.own.evicted.Add(t.Context(), 1)
	r.own.damaged.Add(t.Context(), 1)
	r.own.loadFailures.Add(t.Context(), 1)
	r.fallback.sent.Add(1)
	r.fallback.unwritten.Add(1)
	for name, want := range described {
		got, err := r.tel.GetMetric("otelcol_" + name)
		require.NoError(t, err, name)
		assert.Equal(t, want, doctest.Described{Description: got.Description, Unit: got.Unit})
		doctest.Has(t, "| `otelcol_"+name+"` |")
	}
	assert.Len(t, described, 13)
	r.to[toTenants].fail(nil)
}

// Guarantees: each setting has its row, and of those that are exporterhelper's, the defaults that are not.
func TestREADMEHasEverySettingWithItsDefault(t *testing.T) {
	doctest.Settings(t, createDefaultConfig(), map[string]string{
		"tenant_from": "`[k8s.namespace.name, service.namespace, service.name]`", "table": "none",
		"default_pipelines": "each that no group names", "metrics": "none", "logs": "none", "traces": "none",
		"groups": "none", "keep_metadata": "none", "sending_queue": "see [below](#queues)", "retry_on_failure": "see [below](#queues)",
		"items_per_second": "`0` (no limit)", "bytes_per_second": "`0` (no limit)", "active_series": "`0` (no limit)",
	})
	q, cfg := defaultQueue(), createDefaultConfig().(*Config)
	assert.Equal(t, 4, q.NumConsumers)
	assert.Equal(t, int64(1000), q.QueueSize)
	assert.Equal(t, 5*time.Second, cfg.Retry.InitialInterval)
	assert.Zero(t, cfg.Retry.MaxElapsedTime)
	for _, row := range []string{"| `num_consumers` | `4` |", "| `queue_size` | `1000` |", "| `storage` | none |", "| `initial_interval` | `5s` |", "| `max_elapsed_time` | `0` |"} {
		doctest.Has(t, row)
	}
}

func TestREADMEHasEveryReason(t *testing.T) {
	for why := unknownName; why < reasons; why++ {
		doctest.Has(t, "| `"+why.String()+"` |")
	}
}

func TestREADMEExamplesAreValid(t *testing.T) {
	assert.Equal(t, 4, doctest.Examples(t, "connectors", NewFactory()))
	for _, block := range doctest.Blocks(t) {
		_, err := confmap.NewRetrievedFromYAML([]byte(block))
		assert.NoError(t, err)
	}
}
