// SPDX-License-Identifier: Apache-2.0

package tenantheadersextension

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"

	own "github.com/otelcol-llm/otelcol-llm/extension/tenantheadersextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
)

func TestConfigurationsAreReadAsWritten(t *testing.T) {
	f := func(section string, want *Config) {
		t.Helper()
		cfg, err := configtest.Read(t, "testdata/config.yaml", section, createDefaultConfig().(*Config))
		require.NoError(t, err)
		assert.Equal(t, want, cfg)
	}
	f("tenant_headers", &Config{Header: "X-Scope-OrgID", FromMetadata: "x-scope-orgid"})
	f("tenant_headers/all", &Config{Header: "AccountID", FromMetadata: "x-tenant", DefaultTenant: "nobody"})
}

func TestAWrongConfigurationNamesItsKeyAndTheCure(t *testing.T) {
	f := func(section string, want ...string) {
		t.Helper()
		configtest.Refused(t, "testdata/config.bad.yaml", section, createDefaultConfig(), want...)
	}
	f("tenant_headers/values",
		`header: "a b" is no name of a header, such as X-Scope-OrgID`,
		`from_metadata: "" is no key of metadata, such as x-scope-orgid`,
		`default_tenant: "a/b" is no tenant id`)
	f("tenant_headers/null", "header: is null")
	f("tenant_headers/typo", "headers")
}

func TestMetadataAgreesWithTheCode(t *testing.T) {
	f := NewFactory()
	assert.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	assert.Empty(t, doctest.Metadata(t, "extension", f, own.ScopeName, map[component.StabilityLevel][]string{f.Stability(): {"extension"}}))
}

func TestREADMEHasEverySettingWithItsDefault(t *testing.T) {
	doctest.Settings(t, createDefaultConfig(), map[string]string{"default_tenant": "none"})
	assert.Equal(t, 1, doctest.Examples(t, "extensions", NewFactory()))
}
