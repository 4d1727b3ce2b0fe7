// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

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

	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/processor/sloschemaprocessor/internal/metadata"
)

func described(t *testing.T) map[string]doctest.Described {
	f := NewFactory()
	return doctest.Metadata(t, "processor", f, metadata.ScopeName,
		map[component.StabilityLevel][]string{f.MetricsStability(): {"metrics"}})
}

func TestMetadataAgreesWithTheCode(t *testing.T) {
	r := newRig(t, catalogOf(1, false), nil)
	r.own.processed(t.Context(), &counts{labelled: [sources]int64{1}, unknown: [reasons]int64{1}, conditionErrors: 1, evicted: 1})
	r.own.refusedCatalogs.Add(t.Context(), 1)
	all := described(t)
	for name, want := range all {
		got, err := r.tel.GetMetric("otelcol_" + name)
		require.NoError(t, err)
		assert.Equal(t, want, doctest.Described{Description: got.Description, Unit: got.Unit})
		assert.Contains(t, doctest.README(t), "`otelcol_"+name+"`")
	}
	assert.Len(t, all, 6)
}

// To write documentation.md anew: UPDATE=1 go test ./processor/sloschemaprocessor -run Documentation
func TestDocumentationIsCurrent(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Metrics of the slo_schema processor\n\nGenerated from metadata.yaml; do not edit. It emits no metrics of its " +
		"own but these, of itself.\n\n| metric | unit | meaning |\n|---|---|---|\n")
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
	doctest.Settings(t, createDefaultConfig(), map[string]string{
		"dialects":     "`[" + strings.Join(dialectNames[:], ", ") + "]`",
		"service_from": "`[" + strings.Join(createDefaultConfig().(*Config).ServiceFrom, ", ") + "]`",
	})
}

func TestREADMEHasEveryLabelReasonAndSeries(t *testing.T) {
	text := doctest.README(t)
	for _, key := range append(labels.Canonical[:], labels.Tenant, labels.SLOIDs, missingTag) {
		assert.Contains(t, text, "| `"+key+"` |")
	}
	for _, name := range reasonNames {
		assert.Contains(t, text, "| `"+name+"` |")
	}
	for _, name := range sourceNames {
		assert.Contains(t, text, "`"+name+"`")
	}
	for name, s := range known {
		if s.dialect != sloGenerator && !strings.HasSuffix(name, "s_total") {
			assert.Contains(t, text, "`"+name+"`")
		}
	}
}

func TestREADMEExamplesAreValid(t *testing.T) {
	assert.Equal(t, 3, doctest.Examples(t, "processors", NewFactory()))
}
