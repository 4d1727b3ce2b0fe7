// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/alertmanager"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
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
	described := doctest.Metadata(t, "connector", f, metadata.ScopeName,
		map[component.StabilityLevel][]string{metadata.Stability: {"metrics_to_metrics", "metrics_to_logs", "traces_to_metrics", "traces_to_logs", "logs_to_metrics", "logs_to_logs"}})

	r := newRig(t, ttftDocs, nil)
	for _, md := range hour(1, 2, 3) {
		r.send(md)
	}
	r.own.Dropped.Add(t.Context(), 1)
	r.own.Evicted.Add(t.Context(), 1)
	r.own.Refused.Add(t.Context(), 1)
	r.own.Damaged.Add(t.Context(), 1)
	r.own.Failed.Add(t.Context(), 1)
	r.gone.Add(t.Context(), 1)
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
	doctest.Settings(t, createDefaultConfig(), map[string]string{
		"tenant_from": "`[k8s.namespace.name, service.namespace, service.name]`",
		"burn_rates":  "see [below](#burn-rates)", "storage": "none", "alertmanager": "none", "backfill": "none", "metrics": "`{}`",
	})
	am, past := alertmanager.DefaultConfig(), defaultBackfill()
	for _, row := range []string{
		"| `endpoints` | none; at least one is required |",
		"| `resend_interval` | `" + openslo.GoDuration(am.ResendInterval) + "` |", "| `max_alerts` | `" + strconv.Itoa(am.MaxAlerts) + "` |",
		"| `external_labels` | `{}` |", "| `console_url` | none |", "| `timeout` | `" + openslo.GoDuration(am.Timeout) + "` |",
		"| `endpoint` | none; required |", "| `step` | `" + openslo.GoDuration(past.Step) + "` |", "| `deadline` | `" + openslo.GoDuration(past.Deadline) + "` |",
		"| `histograms`, `gauges` | `[]` |",
	} {
		doctest.Has(t, row)
	}
	for _, r := range workbook() {
		doctest.Has(t, fmt.Sprintf("| %gx | %s | %s | %s |", r.Factor, openslo.GoDuration(r.Long), openslo.GoDuration(r.Short), r.Severity))
	}
}

func TestREADMEHasEveryMetricAndReason(t *testing.T) {
	for _, m := range table {
		doctest.Has(t, "`"+m.Name+"`")
	}
	for _, name := range intake.Reasons() {
		doctest.Has(t, "| `"+name+"` |")
	}
}

func TestREADMEExamplesAreValid(t *testing.T) {
	assert.Equal(t, 2, doctest.Examples(t, "connectors", NewFactory()))
}
