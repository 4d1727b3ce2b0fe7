// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/store"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
)

func described(t *testing.T) map[string]doctest.Described {
	f := NewFactory()
	return doctest.Metadata(t, "exporter", f, metadata.ScopeName,
		map[component.StabilityLevel][]string{f.MetricsStability(): {"metrics"}})
}

func TestMetadataAgreesWithTheCode(t *testing.T) {
	s, err := store.Open(store.Options{Directory: t.TempDir(), Retention: shortest, MaxSeries: 1, MaxExemplars: 1}, nil)
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	r := create(t, settings(t))
	own, err := newTelemetry(r.tel.NewTelemetrySettings(), func() *store.Store { return s })
	require.NoError(t, err)
	defer func() { assert.NoError(t, own.shutdown()) }()
	own.appended(t.Context(), &store.Refusals{Refused: [store.Reasons]int64{1}, RefusedExemplars: 1}, 1)
	own.answered(t.Context(), "query", 200, 1)
	all := described(t)
	for name, want := range all {
		got, err := r.tel.GetMetric("otelcol_" + name)
		require.NoError(t, err)
		assert.Equal(t, want, doctest.Described{Description: got.Description, Unit: got.Unit})
		assert.Contains(t, doctest.README(t), "`otelcol_"+name+"`")
	}
	assert.Len(t, all, 7+len(borrowed))
}

// Guarantees: what is borrowed is there to be borrowed.
func TestPrometheusCountsWhatIsBorrowed(t *testing.T) {
	r := newRig(t, settings(t))
	r.push(gauge("g", 1, now(), nil))
	r.ask("g", now())
	for _, b := range borrowed {
		assert.Contains(t, r.counted(b.name), "", b.from)
	}
	assert.InDelta(t, 2, r.counted("otelcol_tsdb_samples_appended")[""], 0)
}

// To write documentation.md anew: UPDATE=1 go test ./exporter/tsdbexporter -run Documentation
func TestDocumentationIsCurrent(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Metrics of the tsdb exporter\n\nGenerated from metadata.yaml; do not edit. It emits no metrics " +
		"but these, of itself.\n\n| metric | unit | meaning |\n|---|---|---|\n")
	all := described(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "| `otelcol_%s` | %s | %s |\n", name, all[name].Unit, all[name].Description)
	}
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile("documentation.md", []byte(b.String()), 0o600))
	}
	got, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	assert.Equal(t, b.String(), string(got))
}

func TestREADMEHasEverySettingWithItsDefault(t *testing.T) {
	cfg := defaults()
	doctest.Settings(t, cfg, map[string]string{
		"endpoint":                    "",
		"retention":                   "`" + cfg.Retention.String() + "`",
		"promote_resource_attributes": "`[" + strings.Join(cfg.PromoteResourceAttributes, ", ") + "]`",
	})
}

func TestREADMEHasEveryReason(t *testing.T) {
	for _, name := range store.ReasonNames {
		doctest.Has(t, "| `"+name+"` |")
	}
}

func TestREADMEExamplesAreValid(t *testing.T) {
	assert.Equal(t, 2, doctest.Examples(t, "exporters", NewFactory()))
}
