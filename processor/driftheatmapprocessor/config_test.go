// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap/xconfmap"

	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
)

func defaults() *Config { return createDefaultConfig().(*Config) }

func TestConfigurationsAreReadAsWritten(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "drift_heatmap", defaults())
	require.NoError(t, err)
	assert.Equal(t, createDefaultConfig(), cfg)

	cfg, err = configtest.Read(t, "testdata/config.yaml", "drift_heatmap/all", defaults())
	require.NoError(t, err)
	off := false
	want := &Config{
		Coupling: configoptional.Some(CouplingConfig{
			Throughput: "a", Batch: "b", Context: "c", CacheHits: "d", CacheQueries: "e", By: []string{"f"}, ContextBuckets: []float64{1}, HitBuckets: []float64{0.5},
		}),
		Catalog: component.MustNewIDWithName("slo_catalog", "other"), Window: time.Minute,
		Dimensions: []Dimension{{Key: "tenant"}, {Key: "gen_ai.usage.input_tokens", Buckets: []float64{1000, 4000, 16000}}},
		Decay:      0.9, MinSamples: 100, ReferenceWindows: 6, ReferenceSince: cfg.ReferenceSince, MaxCells: 7, CellTTL: 2 * time.Hour,
		Canary:   configoptional.Some(CanaryConfig{Attribute: "model.version", Baseline: "v1", Candidate: "v2", Alpha: 0.05, MinSamples: 50}),
		Lateness: 5 * time.Second, IdleTimeout: 10 * time.Second, MaxLag: 30 * time.Minute, MaxInputSeries: 8, MaxSources: 9,
		SeriesTTL: 10 * time.Minute, TenantFrom: []string{"team"}, Storage: &diskID, CheckpointInterval: time.Minute,
		Metrics: emit.Settings{"slo.drift.explanation": {Enabled: &off}},
	}
	assert.Equal(t, want, cfg)
	assert.True(t, t0.Equal(cfg.ReferenceSince))

	cfg, err = configtest.Read(t, "testdata/config.yaml", "drift_heatmap/change", defaults())
	require.NoError(t, err)
	assert.True(t, t0.Equal(cfg.Canary.Get().ChangedAt))

	cfg, err = configtest.Read(t, "testdata/config.yaml", "drift_heatmap/vllm", defaults())
	require.NoError(t, err)
	assert.Equal(t, defaultCoupling(), *cfg.Coupling.Get())

	cfg, err = configtest.Read(t, "testdata/config.yaml", "drift_heatmap/none", defaults())
	require.NoError(t, err)
	assert.Empty(t, cfg.Dimensions)
}

func TestAWrongConfigurationNamesItsKeys(t *testing.T) {
	f := func(section string, want ...string) {
		t.Helper()
		configtest.Refused(t, "testdata/config.bad.yaml", section, defaults(), want...)
	}
	f("drift_heatmap/values",
		"window: 100ms is not a whole number of seconds, at least 1s",
		"dimensions[0]: must not be empty",
		`dimensions[2]: "tenant" stands twice: keep one`,
		`dimensions[3]: "slo_id" is an attribute of every result already`,
		`dimensions[4]: "value" is an attribute of the results already`,
		"dimensions[5]::buckets[1]: 1: boundaries must be finite, and rise",
		"decay: 0 is not in (0, 1]",
		"min_samples: 0 must be at least 1",
		"reference_windows: 0 is not in [1, 65535]",
		"max_cells: 0 must be at least 1",
		"cell_ttl: 0s must be positive",
		"lateness: -1s must not be negative",
		"idle_timeout: 0s must be positive",
		"max_lag: 0s must be positive",
		"max_input_series: 0 must be at least 1",
		"max_sources: 0 must be at least 1",
		"max_recent_spans: -1 must be at least 0",
		"series_ttl: 0s must be positive",
		"tenant_from: must name an attribute",
		"checkpoint_interval: 1ms must be at least 1s",
		"refresh_interval: -1s must not be negative",
		`metrics: unknown metric "slo.drift.observd": did you mean slo.drift.observed?`)
	f("drift_heatmap/canary", "canary: attribute: must not be empty, or changed_at must be set instead", `candidate: "v1" is the baseline`, "alpha: 2 is not in (0, 1)")
	f("drift_heatmap/labels", `dimensions[0]: "instance" is a label that Prometheus writes itself: rename the attribute`,
		`dimensions[2]: "größe" and "gräße" become one label in Prometheus: keep one`, `dimensions[3]: "__name" is a label that Prometheus`,
		`dimensions[4]: "otelcol.component.id" is an attribute of the results already`, `canary: attribute: "job" is a label that Prometheus`,
		`by[1]: "a-b" is no key to group by: "a.b" and "a-b" become one label`, `by[2]: "instance" is no key to group by`)
	f("drift_heatmap/bucketed", `canary::attribute: "batch" is a dimension with buckets`)
	f("drift_heatmap/both", "attribute: is set beside changed_at: set one of them")
	f("drift_heatmap/coupling", "throughput and batch must each name a metric", "cache_hits and cache_queries belong together", `by[1]: "batch" is an attribute of the results already`,
		`by[0]: "" is no key`, "context_buckets[1]: 1: boundaries must be finite, and rise")
	f("drift_heatmap/shares", "cell_ttl: 1s must be at least the window, 5m0s", "hit_buckets[1]: 2: must be above 0 and below 1, as a share is", "context_buckets[0]: 0: must be above 0")
	f("drift_heatmap/long", "window: 2161h0m0s is longer than 2160h", "lateness: 25h0m0s is longer than 24h: nothing would be told for as long")
	f("drift_heatmap/null", "window: is null", "canary::attribute: is null")
	f("drift_heatmap/typo", "windw")
	f("drift_heatmap/type", "window: 300 has no unit: write 300s, 300m or 300h")
	f("drift_heatmap/catalog", "catalog")
}

func TestTheDefaultsAreValid(t *testing.T) {
	assert.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	assert.NoError(t, xconfmap.Validate(createDefaultConfig()))
}
