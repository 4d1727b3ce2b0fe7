// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-llm/otelcol-llm/extension/slocatalogextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/catalog"
)

// Scenario: metadata.yaml is written by hand, as is what mdatagen would make of it. Guarantees: they agree, with
// the factory and with what is emitted.
func TestMetadataAgreesWithTheCode(t *testing.T) {
	data, err := os.ReadFile("metadata.yaml")
	require.NoError(t, err)
	var want struct {
		Type          string `yaml:"type"`
		GithubProject string `yaml:"github_project"`
		Status        struct {
			Class     string              `yaml:"class"`
			Stability map[string][]string `yaml:"stability"`
		} `yaml:"status"`
		Telemetry struct {
			Metrics map[string]struct {
				Description string `yaml:"description"`
				Unit        string `yaml:"unit"`
			} `yaml:"metrics"`
		} `yaml:"telemetry"`
	}
	require.NoError(t, yaml.Unmarshal(data, &want))

	factory := NewFactory()
	assert.Equal(t, want.Type, factory.Type().String())
	assert.Equal(t, catalog.DefaultID.Type(), factory.Type(), "components look for this type by default")
	assert.Equal(t, "github.com/"+want.GithubProject+"/extension/slocatalogextension", metadata.ScopeName)
	assert.Equal(t, "extension", want.Status.Class)
	level := strings.ToLower(factory.Stability().String())
	assert.Equal(t, map[string][]string{level: {"extension"}}, want.Status.Stability)
	assert.Equal(t, metadata.ExtensionStability, factory.Stability())

	tel := componenttest.NewTelemetry()
	ext := started(t, tel, "builtin:vllm")
	for name, m := range want.Telemetry.Metrics {
		got, err := tel.GetMetric("otelcol_" + name)
		require.NoError(t, err)
		assert.Equal(t, [2]string{m.Description, m.Unit}, [2]string{got.Description, got.Unit})
	}
	require.NoError(t, ext.Shutdown(t.Context()))
	require.NoError(t, tel.Shutdown(t.Context()))
}
