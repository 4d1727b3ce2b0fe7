// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
)

// To write documentation.md anew: UPDATE=1 go test ./connector/sloconnector -run Documentation
func TestDocumentationIsCurrent(t *testing.T) {
	want := emit.Document("Metrics of the slo connector", table)
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile("documentation.md", []byte(want), 0o600))
	}
	got, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	assert.Equal(t, want, string(got))
}

func TestMetadataAgreesWithTheCode(t *testing.T) {
	f := NewFactory()
	assert.Equal(t, f.MetricsToMetricsStability(), f.MetricsToLogsStability())
	described := doctest.Metadata(t, "connector", f, metadata.ScopeName,
		map[component.StabilityLevel][]string{f.MetricsToMetricsStability(): {"metrics_to_metrics", "metrics_to_logs"}})

	r := newRig(t, ttftDocs, nil)
	for _, md := range hour(1, 2, 3) {
		r.send(md)
	}
	r.own.dropped.Add(t.Context(), 1)
	r.own.evicted.Add(t.Context(), 1)
	r.own.refused.Add(t.Context(), 1)
	for name, want := range described {
		got, err := r.tel.GetMetric("otelcol_" + name)
		require.NoError(t, err)
		assert.Equal(t, want, doctest.Described{Description: got.Description, Unit: got.Unit})
		doctest.Has(t, "`otelcol_"+name+"`")
	}
	assert.Len(t, described, 10)
}

func TestREADMEHasEverySettingWithItsDefault(t *testing.T) {
	doctest.Settings(t, createDefaultConfig(), nil)
}

func TestREADMEHasEveryMetricAndReason(t *testing.T) {
	for _, m := range table {
		doctest.Has(t, "`"+m.Name+"`")
	}
	for _, name := range reasonNames[none+1:] {
		doctest.Has(t, "| `"+name+"` |")
	}
}

func TestREADMEExamplesAreValid(t *testing.T) {
	assert.Equal(t, 2, doctest.Examples(t, "connectors", NewFactory()))
}
