// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/confmap/xconfmap"
)

// configured is the configuration that a section of a file gives.
func configured(t *testing.T, file, section string) (*Config, error) {
	t.Helper()
	conf, err := confmaptest.LoadConf(file)
	require.NoError(t, err)
	sub, err := conf.Sub(section)
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	if err := sub.Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, xconfmap.Validate(cfg)
}

func TestConfigurationsAreReadAsWritten(t *testing.T) {
	cfg, err := configured(t, "testdata/config.yaml", "slo")
	require.NoError(t, err)
	assert.Equal(t, createDefaultConfig(), cfg)

	cfg, err = configured(t, "testdata/config.yaml", "slo/all")
	require.NoError(t, err)
	assert.Equal(t, &Config{
		Catalog: component.MustNewIDWithName("slo_catalog", "other"), GroupBy: []string{"k8s.namespace.name", "cloud.region"},
		Window: time.Minute, Lateness: 5 * time.Second, IdleTimeout: 10 * time.Second, MaxLag: 10 * time.Minute, MaxSeries: 1, MaxInputSeries: 2,
		MaxSources: 3, SeriesTTL: 30 * time.Minute,
	}, cfg)
}

func TestAWrongConfigurationNamesItsKeys(t *testing.T) {
	f := func(section string, want ...string) {
		t.Helper()
		_, err := configured(t, "testdata/config.bad.yaml", section)
		require.Error(t, err)
		for _, w := range want {
			assert.ErrorContains(t, err, w)
		}
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
		`refresh_interval: -1s must not be negative`)
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
