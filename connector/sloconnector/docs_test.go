// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/xconfmap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
)

// To write documentation.md anew: UPDATE=1 go test ./connector/sloconnector -run Documentation
func TestDocumentationIsCurrent(t *testing.T) {
	want := emit.Document("Metrics of the slo connector", table)
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile("documentation.md", []byte(want), 0o600))
	}
	got, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	assert.Equal(t, want, string(got))
}

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
	}
	require.NoError(t, yaml.Unmarshal(data, &want))
	f := NewFactory()
	assert.Equal(t, want.Type, f.Type().String())
	assert.Equal(t, "github.com/"+want.GithubProject+"/connector/sloconnector", metadata.ScopeName)
	assert.Equal(t, "connector", want.Status.Class)
	assert.Equal(t, map[string][]string{"alpha": {"metrics_to_metrics", "metrics_to_logs"}}, want.Status.Stability)
	assert.Equal(t, component.StabilityLevelAlpha, f.MetricsToMetricsStability())
	assert.Equal(t, component.StabilityLevelAlpha, f.MetricsToLogsStability())
}

func readme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(data)
}

func TestREADMEHasEverySettingWithItsDefault(t *testing.T) {
	text, cfg := readme(t), reflect.ValueOf(createDefaultConfig()).Elem()
	for i := range cfg.NumField() {
		key := cfg.Type().Field(i).Tag.Get("mapstructure")
		if key == "" {
			continue
		}
		value := fmt.Sprint(cfg.Field(i).Interface())
		for _, zero := range []string{"m0s", "h0m"} { // as people write them: 5m, 1h
			if strings.HasSuffix(value, zero) {
				value = strings.TrimSuffix(value, zero[1:])
			}
		}
		assert.Contains(t, text, fmt.Sprintf("| `%s` | `%s` |", key, value))
	}
}

func TestREADMEHasEveryMetricAndReason(t *testing.T) {
	text := readme(t)
	for _, m := range table {
		assert.Contains(t, text, "`"+m.Name+"`")
	}
	for _, name := range reasonNames[none+1:] {
		assert.Contains(t, text, "| `"+name+"` |")
	}
}

func TestREADMEExamplesAreValid(t *testing.T) {
	blocks := strings.Split(readme(t), "```yaml\n")[1:]
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		var raw map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(block), &raw))
		sections, err := confmap.NewFromStringMap(raw).Sub("connectors")
		require.NoError(t, err)
		for id := range sections.ToStringMap() {
			cfg := createDefaultConfig()
			sub, err := sections.Sub(id)
			require.NoError(t, err)
			require.NoError(t, sub.Unmarshal(cfg))
			require.NoError(t, xconfmap.Validate(cfg))
		}
	}
}
