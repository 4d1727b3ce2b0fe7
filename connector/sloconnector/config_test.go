// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/xconfmap"

	"github.com/otelcol-llm/otelcol-llm/internal/alertmanager"
	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
)

func TestConfigurationsAreReadAsWritten(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "slo", createDefaultConfig().(*Config))
	require.NoError(t, err)
	assert.Equal(t, createDefaultConfig(), cfg)

	cfg, err = configtest.Read(t, "testdata/config.yaml", "slo/all", createDefaultConfig().(*Config))
	require.NoError(t, err)
	storage := component.MustNewIDWithName("file_storage", "slo")
	off := false
	want := &Config{
		Catalog: component.MustNewIDWithName("slo_catalog", "other"), GroupBy: []string{"k8s.namespace.name", "cloud.region"},
		Window: time.Minute, Lateness: 5 * time.Second, IdleTimeout: 10 * time.Second, MaxLag: 10 * time.Minute, MaxSeries: 1, MaxInputSeries: 2,
		MaxSources: 3, MaxSeriesPerSLO: 4, MaxRecentSpans: 5, SeriesTTL: 30 * time.Minute, TrustParts: true, MaxParts: 6, PartTTL: 40 * time.Minute, TenantFrom: []string{"point:customer.id"},
		BurnRates: []BurnRate{{Long: 2 * time.Hour, Short: 10 * time.Minute, Factor: 10, Severity: "page"}},
		Storage:   &storage, CheckpointInterval: 20 * time.Second,
		Metrics: emit.Settings{"slo.sli.bound": {Enabled: &off}},
	}
	am, past := alertmanager.DefaultConfig(), defaultBackfill()
	am.Endpoints, am.ConsoleURL = []string{"http://localhost:9093"}, "http://localhost:8686"
	past.Endpoint, past.Step, past.Deadline, past.Histograms, past.Gauges = "http://localhost:9090", 6*time.Hour, time.Minute, []string{"ttft"}, []string{"kv_cache_usage"}
	assert.Equal(t, &am, cfg.Alertmanager.Get())
	assert.Equal(t, &past, cfg.Backfill.Get())
	want.Alertmanager, want.Backfill = cfg.Alertmanager, cfg.Backfill
	assert.Equal(t, want, cfg)
}

func TestAWrongConfigurationNamesItsKeys(t *testing.T) {
	f := func(section string, want ...string) {
		t.Helper()
		configtest.Refused(t, "testdata/config.bad.yaml", section, createDefaultConfig(), want...)
	}
	f("slo/values",
		`group_by[0]: must not be empty`,
		`group_by[1]: "slo_id" is an attribute of every result already`,
		`group_by[3]: "cloud.region" stands twice`,
		`group_by[4]: "cloud.region" and "cloud_region" become one label in Prometheus`,
		`group_by[5]: "state" is an attribute of every result already`,
		`window: 1.5s is not a whole number of seconds, at least 1s`,
		`lateness: -1s must not be negative`,
		`idle_timeout: 0s must be positive`,
		`max_lag: 0s must be positive`,
		`max_series: 0 must be at least 1`,
		`max_input_series: -1 must be at least 1`,
		`max_sources: 0 must be at least 1`,
		`series_ttl: 0s must be positive`,
		`max_parts: 0 must be at least 1`,
		`part_ttl: 0s must be positive`,
		`max_series_per_slo: -1 must not be negative`,
		`max_recent_spans: -1 must not be negative`,
		`checkpoint_interval: 500ms must be at least 1s`,
		`tenant_from: must name an attribute, e.g. k8s.namespace.name`,
		`burn_rates[0]::long: 1m30s is not a whole number of minutes, at least 1m`,
		`burn_rates[0]::short: 2m0s is longer than the long window of 1m30s`,
		`burn_rates[0]::factor: 0 must be above 0, e.g. 14.4`,
		`metrics: unknown metric "slo.burnrate": did you mean slo.burn_rate?`,
		`alertmanager: endpoints: must name an Alertmanager`,
		`backfill: endpoint: "" is no URL of a Prometheus, e.g. http://localhost:9090`,
		`step: 1m0s must be at least 1h`,
		`deadline: 0s must be positive`,
		`refresh_interval: -1s must not be negative`)
	f("slo/long", "window: 2161h0m0s is longer than 2160h", "lateness: 24h0m1s is longer than 24h: nothing would be told for as long")
	f("slo/null", "lateness: is null", "group_by[0]: is null")
	f("slo/number", "lateness: 30 has no unit: write 30s, 30m or 30h", "max_series: 1.5 is no whole number")
	f("slo/typo", "groupby")
	f("slo/type", "'lateness' time: invalid duration")
	f("slo/list", "'group_by' source data must be an array or slice, got map")
	f("slo/catalog", "catalog")
}

func TestTheDefaultsAreValid(t *testing.T) {
	assert.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	assert.NoError(t, xconfmap.Validate(createDefaultConfig()))
}
