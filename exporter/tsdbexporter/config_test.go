// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/xconfmap"

	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
)

func TestConfigurationsAreReadAsWritten(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "tsdb", defaults())
	require.NoError(t, err)
	assert.Equal(t, createDefaultConfig(), cfg)

	cfg, err = configtest.Read(t, "testdata/config.yaml", "tsdb/all", defaults())
	require.NoError(t, err)
	assert.Equal(t, "0.0.0.0:9191", cfg.HTTP.NetAddr.Endpoint)
	assert.Equal(t, 3*time.Minute, cfg.HTTP.WriteTimeout)
	assert.Equal(t, []string{"https://console.example"}, cfg.HTTP.CORS.Get().AllowedOrigins)
	assert.Equal(t, "/etc/tls.crt", cfg.HTTP.TLS.Get().CertFile)
	assert.Equal(t, "basicauth", cfg.HTTP.Auth.Get().AuthenticatorID.String())
	assert.Equal(t, []string{"metrics.example"}, cfg.AllowedHosts)
	assert.Equal(t, Storage{
		Directory: "/var/lib/tsdb", Retention: model.Duration(30 * 24 * time.Hour), MaxBytes: 100, MinFreeBytes: 200,
		OutOfOrderWindow: 30 * time.Minute, MaxSeries: 1, MaxExemplars: 2, MaxDeltaSeries: 3, DeltaIdleTimeout: 4 * time.Minute,
		PromoteResourceAttributes: []string{"host.name"},
	}, cfg.Storage)
	assert.Equal(t, Query{Timeout: 2 * time.Minute, MaxSamples: 5, MaxLength: 7, MaxResults: 8, MaxConcurrent: 6, Lookback: time.Minute}, cfg.Query)
}

func TestAWrongConfigurationNamesItsKeys(t *testing.T) {
	f := func(section string, want ...string) {
		t.Helper()
		configtest.Refused(t, "testdata/config.bad.yaml", section, defaults(), want...)
	}
	f("tsdb/empty", "endpoint: is empty: write localhost:9191", "directory: is empty: write where the database is to be",
		"promote_resource_attributes[1]: must not be empty", "allowed_hosts[0]: \"\" is no host name", `allowed_hosts[1]: "metrics.example:9191" is no host name: write e.g. console.example.com, without port`)
	f("tsdb/numbers",
		"retention: 1h must be at least 2h: write e.g. 15d",
		"max_bytes: -1 must not be negative: 0 has no limit",
		"min_free_bytes: -1 must not be negative: 0 keeps only what the database itself needs",
		"out_of_order_window: 2h0m0s must not be longer than retention, which is 1h",
		"max_series: 0 must be at least 1",
		"max_exemplars: -1 must not be negative: 0 keeps none",
		"max_delta_series: 0 must be at least 1",
		"delta_idle_timeout: 0s is below a second: write e.g. 1h",
		"query::timeout: 0s must be positive",
		"query::max_samples: 0 must be at least 1",
		"query::max_length: 0 must be at least 1",
		"query::max_results: 0 must be at least 1",
		"query::max_concurrent: 0 must be at least 1",
		"query::lookback: 0s must be positive")
	f("tsdb/negative", "out_of_order_window: -1s must not be negative")
	f("tsdb/window", "out_of_order_window: 500ms is below a second: write e.g. 1h")
	f("tsdb/timeouts", "write_timeout: 10s must be longer than query::timeout, which is 30s, or 0")
	f("tsdb/unit", "query::timeout: 30 has no unit")
	f("tsdb/retention", "retention: 0s must be at least 2h")
	f("tsdb/spelling", "retention", "fortnight")
	f("tsdb/null", "directory: is null", "query::timeout: is null")
	f("tsdb/typo", "retentoin")
}

func TestTheDefaultsAreValid(t *testing.T) {
	assert.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	assert.NoError(t, xconfmap.Validate(createDefaultConfig()))
}
