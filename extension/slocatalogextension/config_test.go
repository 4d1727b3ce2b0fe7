// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/confmap/xconfmap"
)

// configured is the configuration that a section of a Collector's configuration gives.
func configured(conf *confmap.Conf, section string) (*Config, error) {
	cfg := createDefaultConfig().(*Config)
	sub, err := conf.Sub(section)
	if err != nil {
		return nil, err
	}
	if err := sub.Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, xconfmap.Validate(cfg)
}

func TestConfigurationsAreReadAsWritten(t *testing.T) {
	conf, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	f := func(section string, want ...string) {
		t.Helper()
		cfg, err := configured(conf, section)
		require.NoError(t, err)
		assert.Equal(t, &Config{Paths: want, ReloadInterval: 10 * time.Second}, cfg)
	}
	f("slo_catalog", "builtin:vllm")
	f("slo_catalog/all", "/etc/otelcol-llm/slo", "teams/*.yaml", "builtin:vllm")
}

func TestAWrongConfigurationNamesItsKeyAndTheCure(t *testing.T) {
	conf, err := confmaptest.LoadConf("testdata/config.bad.yaml")
	require.NoError(t, err)
	f := func(section, want string) {
		t.Helper()
		_, err := configured(conf, section)
		require.ErrorContains(t, err, want)
	}
	const none = "paths: is empty: list files, globs or directories with SLO files, or builtin:vllm"
	f("slo_catalog/none", none)
	f("slo_catalog/empty", none)
	f("slo_catalog/blank", `paths[1]: is empty: write a file, glob or directory, or remove it
paths[2]: unknown builtin "vlm": known are goodput, mlperf, vllm
paths[3]: is empty`)
	f("slo_catalog/interval", "reload_interval: -1s is negative: write e.g. 10s, or 0 to never reload")
	f("slo_catalog/number", "reload_interval: 10 has no unit")
	f("slo_catalog/typo", "has invalid keys: path")
	f("slo_catalog/later", "has invalid keys: reload")
	f("slo_catalog/type", "'paths' source data must be an array or slice, got map")
}
