// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/xconfmap"

	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
)

func defaults() *Config { return createDefaultConfig().(*Config) }

func TestConfigurationsAreReadAsWritten(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "slo_schema", defaults())
	require.NoError(t, err)
	assert.Equal(t, createDefaultConfig(), cfg)

	cfg, err = configtest.Read(t, "testdata/config.yaml", "slo_schema/all", defaults())
	require.NoError(t, err)
	assert.Equal(t, &Config{
		Catalog: component.MustNewIDWithName("slo_catalog", "other"), OnMultiple: IDsOnly, OnUnknown: Drop,
		Dialects: []string{"pyrra"}, ClassRules: []ClassRule{{SLOID: "latency|ttft", Class: "latency"}},
		ServiceFrom: []string{"team"}, MaxDialectSLOs: 7, DialectTTL: 5 * time.Minute,
	}, cfg)

	cfg, err = configtest.Read(t, "testdata/config.yaml", "slo_schema/none", defaults())
	require.NoError(t, err)
	assert.Empty(t, cfg.Dialects)
}

func TestAWrongConfigurationNamesItsKeys(t *testing.T) {
	f := func(section string, want ...string) {
		t.Helper()
		configtest.Refused(t, "testdata/config.bad.yaml", section, defaults(), want...)
	}
	f("slo_schema/values",
		`on_multiple: "last" is not known: write first or ids_only`,
		`on_unknown: "ignore" is not known: write keep, tag or drop`,
		`dialects[1]: "nobl9" is not known: write sloth, pyrra, slo_generator`,
		`dialects[2]: "sloth" stands there twice`,
		`class_rules[0]::slo_id: "(" is no regular expression: `,
		`class_rules[1]::slo_id: must not be empty: write .* to match every SLO`,
		`class_rules[1]::class: "fast" is not known: write latency, availability, throughput, quality, cost, saturation`,
		`service_from[0]: must not be empty`,
		`max_dialect_slos: 0 must be at least 1`,
		`dialect_ttl: 0s must be positive`)
	f("slo_schema/null", "on_unknown: is null", "class_rules[0]::class: is null")
	f("slo_schema/typo", "on_unknwn")
	f("slo_schema/type", "'dialect_ttl' time: invalid duration")
	f("slo_schema/list", "'dialects' source data must be an array or slice, got map")
	f("slo_schema/catalog", "catalog")
}

func TestTheDefaultsAreValid(t *testing.T) {
	assert.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	assert.NoError(t, xconfmap.Validate(createDefaultConfig()))
}
