// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/xconfmap"

	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
)

func TestConfigurationsAreReadAsWritten(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "gpu_leak", defaults())
	require.NoError(t, err)
	assert.Equal(t, createDefaultConfig(), cfg)

	cfg, err = configtest.Read(t, "testdata/config.yaml", "gpu_leak/all", defaults())
	require.NoError(t, err)
	on, other := true, component.MustNewIDWithName("slo_catalog", "other")
	assert.Equal(t, &Config{
		Catalog:     &other,
		MinDuration: time.Hour, MinRise: 0.01, Rules: "testdata/rules.yaml",
		Traffic:  TrafficConfig{Running: []string{"running"}, Cache: []string{"cache"}, Served: []string{"served"}, Relation: []string{"host.id", "service.name"}},
		Objects:  ObjectsConfig{Created: []string{"made"}, Destroyed: []string{"gone"}, Attribute: "what"},
		Lateness: 5 * time.Second, IdleTimeout: 10 * time.Second, MaxLag: 10 * time.Minute, MaxProcesses: 1, MaxInputSeries: 2, MaxSources: 3,
		ProcessTTL: time.Minute, TenantFrom: []string{"team"}, Storage: &diskID, CheckpointInterval: 20 * time.Second,
		Metrics: emit.Settings{"gpu.leak.rate.bound": {Enabled: &on}},
	}, cfg)
}

func TestAWrongConfigurationNamesItsKeys(t *testing.T) {
	f := func(section string, want ...string) {
		t.Helper()
		configtest.Refused(t, "testdata/config.bad.yaml", section, defaults(), want...)
	}
	f("gpu_leak/values",
		"min_duration, min_rise: min duration: 1s must be at least 1m0s",
		"max_processes: 0 must be at least 1",
		"max_input_series: 0 must be at least 1",
		"max_sources: 0 must be at least 1",
		"lateness: -1s must be at least 0s",
		"idle_timeout: 0s must be at least 1ns",
		"max_lag: 0s must be at least 1ns",
		"process_ttl: 1ms must be at least 1s",
		"checkpoint_interval: 1ms must be at least 1s",
		"tenant_from: must name an attribute",
		`metrics: unknown metric "gpu.leak.rat": did you mean gpu.leak.rate?`)
	f("gpu_leak/objects", "objects::attribute: must not be empty", `objects: "made" stands in created and in destroyed: keep one`)
	f("gpu_leak/relation", "traffic::relation: an attribute must not be empty")
	f("gpu_leak/rise", "min rise: 1 is not in [0, 1)")
	f("gpu_leak/rules", "rules: open testdata/none.yaml")
	f("gpu_leak/null", "min_duration: is null")
	f("gpu_leak/typo", "min_durations")
	f("gpu_leak/type", "min_duration: 3 has no unit: write 3s, 3m or 3h")
}

func TestTheDefaultsAreValid(t *testing.T) {
	assert.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	assert.NoError(t, xconfmap.Validate(createDefaultConfig()))
}
