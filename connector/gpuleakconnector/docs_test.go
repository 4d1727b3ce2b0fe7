// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/cause"
	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/leak"
	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
)

// To write documentation.md anew: UPDATE=1 go test ./connector/gpuleakconnector -run Documentation
func TestDocumentationIsCurrent(t *testing.T) {
	want := emit.Document("Metrics of the gpu_leak connector", table)
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile("documentation.md", []byte(want), 0o600))
	}
	got, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	assert.Equal(t, want, string(got))
}

func TestMetadataAgreesWithTheCode(t *testing.T) {
	described := doctest.Metadata(t, "connector", NewFactory(), metadata.ScopeName,
		map[component.StabilityLevel][]string{metadata.Stability: {"metrics_to_metrics", "metrics_to_logs", "logs_to_metrics", "logs_to_logs", "traces_to_metrics", "traces_to_logs"}})
	r := newRig(t, nil)
	r.send(leaking(0).Metrics)
	r.own.Dropped.Add(t.Context(), 1)
	r.own.Evicted.Add(t.Context(), 1)
	r.own.Refused.Add(t.Context(), 1)
	r.own.Damaged.Add(t.Context(), 1)
	r.own.Failed.Add(t.Context(), 1)
	r.joins.count(leak.Ambiguous, 1)
	r.own.Saved(t.Context(), time.Second, 1, true)
	for name, want := range described {
		got, err := r.tel.GetMetric("otelcol_" + name)
		require.NoError(t, err)
		assert.Equal(t, want, doctest.Described{Description: got.Description, Unit: got.Unit})
		doctest.Has(t, "`otelcol_"+name+"`")
	}
	assert.Len(t, described, 17)
}

func TestREADMEHasEverySettingWithItsDefault(t *testing.T) {
	list := func(names []string) string { return "`[" + strings.Join(names, ", ") + "]`" }
	of := defaultTraffic()
	doctest.Settings(t, createDefaultConfig(), map[string]string{
		"tenant_from": "`[k8s.namespace.name, service.namespace, service.name]`", "storage": "none", "catalog": "none", "metrics": "`{}`", "rules": "none", "guard": "none",
		"running": list(of.Running), "cache": list(of.Cache), "served": list(of.Served), "relation": list(of.Relation),
		"created": list(defaultObjects().Created), "destroyed": list(defaultObjects().Destroyed),
	})
}

func TestREADMEHasEveryMetricEventAndCause(t *testing.T) {
	for _, m := range table {
		doctest.Has(t, "`"+m.Name+"`")
	}
	for _, name := range []string{leakOpened, leakClosed} {
		doctest.Has(t, "`"+name+"`")
	}
	for _, r := range cause.Builtin() {
		doctest.Has(t, fmt.Sprintf("| `%s` |", r.Cause))
	}
}

func TestREADMEExamplesAreValid(t *testing.T) {
	assert.Equal(t, 2, doctest.Examples(t, "connectors", NewFactory()))
}
