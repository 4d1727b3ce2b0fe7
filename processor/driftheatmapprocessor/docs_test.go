// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/metadata"
)

// To write documentation.md anew: UPDATE=1 go test ./processor/driftheatmapprocessor -run Documentation
func TestDocumentationIsCurrent(t *testing.T) {
	want := emit.Document("Metrics of the drift_heatmap processor", table)
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile("documentation.md", []byte(want), 0o600))
	}
	got, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	assert.Equal(t, want, string(got))
}

func TestMetadataAgreesWithTheCode(t *testing.T) {
	described := doctest.Metadata(t, "processor", NewFactory(), metadata.ScopeName,
		map[component.StabilityLevel][]string{metadata.Stability: {"metrics", "traces", "logs"}})
	r := newRig(t, promise(0.2), nil)
	r.send(constants(0, 10, 0.1, eu))
	r.own.Dropped.Add(t.Context(), 1)
	r.overflowed.Add(t.Context(), 1)
	r.own.Evicted.Add(t.Context(), 1)
	r.own.Refused.Add(t.Context(), 1)
	r.own.Damaged.Add(t.Context(), 1)
	r.own.Failed.Add(t.Context(), 1)
	r.own.Saved(t.Context(), time.Second, 1, true)
	for name, want := range described {
		got, err := r.tel.GetMetric("otelcol_" + name)
		require.NoError(t, err)
		assert.Equal(t, want, doctest.Described{Description: got.Description, Unit: got.Unit})
		doctest.Has(t, "`otelcol_"+name+"`")
	}
	assert.Len(t, described, 15)
}

func TestREADMEHasEverySettingWithItsDefault(t *testing.T) {
	cfg := defaults()
	doctest.Settings(t, cfg, map[string]string{
		"dimensions":  "`[tenant, cloud.region, device.type, model.version]`",
		"tenant_from": "`[k8s.namespace.name, service.namespace, service.name]`", "storage": "none", "reference_since": "none", "canary": "none", "coupling": "none", "metrics": "`{}`",
	})
	cfg.Canary.GetOrInsertDefault()
	for _, row := range []string{
		"| `attribute`, `baseline`, `candidate` | none; required |",
		fmt.Sprintf("| `alpha` | `%g` |", cfg.Canary.Get().Alpha), fmt.Sprintf("| `min_samples` | `%d` |", cfg.Canary.Get().MinSamples),
	} {
		doctest.Has(t, row)
	}
	c := defaultCoupling()
	for _, row := range []string{
		"| `throughput` | `" + c.Throughput + "` |", "| `batch` | `" + c.Batch + "` |", "| `context` | `" + c.Context + "` |",
		"| `cache_hits`, `cache_queries` | `" + c.CacheHits + "`, `" + c.CacheQueries + "` |", "| `by` | `[" + strings.Join(c.By, ", ") + "]` |",
		"| `context_buckets` | `" + strings.ReplaceAll(fmt.Sprint(c.ContextBuckets), " ", ", ") + "` |",
		"| `hit_buckets` | `" + strings.ReplaceAll(fmt.Sprint(c.HitBuckets), " ", ", ") + "` |",
	} {
		doctest.Has(t, row)
	}
	th := baseline.DefaultThresholds()
	doctest.Has(t, fmt.Sprintf("more than %g %%", 100*th.Degraded))
	doctest.Has(t, fmt.Sprintf("at least %g %%", 100*th.Drifting))
}

func TestREADMEHasEveryMetricAndReason(t *testing.T) {
	for _, m := range table {
		doctest.Has(t, "`"+m.Name+"`")
	}
	for _, name := range intake.Reasons() {
		if name != intake.UnknownSLO.String() && name != intake.Untrusted.String() { // of the slo connector's own input
			doctest.Has(t, "`"+name+"`")
		}
	}
	for _, name := range state.States {
		doctest.Has(t, "| `"+name+"` |")
	}
}

func TestREADMEExamplesAreValid(t *testing.T) {
	assert.Equal(t, 2, doctest.Examples(t, "processors", NewFactory()))
}
