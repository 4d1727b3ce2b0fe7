// SPDX-License-Identifier: Apache-2.0

// Package doctest holds a component's README.md and metadata.yaml against its code, so that neither goes stale. Tests
// run in the component's folder, where both files lie.
package doctest

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/xconfmap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// README is the component's README.
func README(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(data)
}

// Has proves that the README contains a text.
func Has(t testing.TB, text string) {
	t.Helper()
	if !strings.Contains(README(t), text) {
		t.Errorf("README.md does not contain %q", text)
	}
}

var fenced = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Blocks are the YAML examples of the README.
func Blocks(t testing.TB) (blocks []string) {
	t.Helper()
	for _, m := range fenced.FindAllStringSubmatch(README(t), -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// Examples reads every Collector configuration among the README's examples: the component's sections (such as
// "connectors") must be valid. It returns how many there were.
func Examples(t testing.TB, section string, factory component.Factory) (configurations int) {
	t.Helper()
	for _, block := range Blocks(t) {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(block))
		if err != nil {
			continue // several documents: not a configuration
		}
		conf, err := retrieved.AsConf()
		if err != nil || !conf.IsSet(section) {
			continue
		}
		configurations++
		sections, err := conf.Sub(section)
		require.NoError(t, err)
		for name := range sections.ToStringMap() {
			var id component.ID
			require.NoError(t, id.UnmarshalText([]byte(name)))
			if id.Type() != factory.Type() {
				continue
			}
			sub, err := sections.Sub(name)
			require.NoError(t, err)
			cfg := factory.CreateDefaultConfig()
			require.NoError(t, sub.Unmarshal(cfg), block)
			require.NoError(t, xconfmap.Validate(cfg), block)
		}
	}
	return configurations
}

// module is what our own packages begin with.
const module = "github.com/otelcol-llm/otelcol-llm/"

// Settings proves that the README's table of settings has a row for every key of a default configuration, with its
// default. Where that cannot be read off the value, others says it. The fields of a squashed structure are settings too, and so
// are those of one of our own that others does not name. Of a squashed one that is the Collector's, such as a server, only
// the keys in others need a row; an empty text there means the value.
func Settings(t testing.TB, defaults any, others map[string]string) {
	t.Helper()
	rows(t, reflect.ValueOf(defaults).Elem(), others)
}

func rows(t testing.TB, cfg reflect.Value, others map[string]string) {
	t.Helper()
	own := strings.HasPrefix(cfg.Type().PkgPath(), module)
	for i := range cfg.NumField() {
		key, options, _ := strings.Cut(cfg.Type().Field(i).Tag.Get("mapstructure"), ",")
		field := cfg.Field(i)
		value, told := others[key]
		if options == "squash" || !told && field.Kind() == reflect.Struct && strings.HasPrefix(field.Type().PkgPath(), module) {
			rows(t, field, others)
			continue
		}
		if key == "" || !own && !told {
			continue
		}
		if value == "" {
			value = "`" + written(field.Interface()) + "`"
		}
		Has(t, fmt.Sprintf("| `%s` | %s |", key, value))
	}
}

// written is a value as people write it.
func written(value any) string {
	if d, ok := value.(time.Duration); ok {
		return openslo.GoDuration(d)
	}
	return fmt.Sprint(value)
}

// Described is an instrument of the component's own, as metadata.yaml describes it.
type Described struct {
	Description string `yaml:"description"`
	Unit        string `yaml:"unit"`
}

// Metadata proves that metadata.yaml, which mdatagen could read, says of class, type, stability and scope name what the
// code says. It returns the instruments that the file describes, by name without otelcol_.
func Metadata(t testing.TB, class string, factory component.Factory, scope string, stability map[component.StabilityLevel][]string) map[string]Described {
	t.Helper()
	data, err := os.ReadFile("metadata.yaml")
	require.NoError(t, err)
	var file struct {
		Type          string `yaml:"type"`
		GithubProject string `yaml:"github_project"`
		Status        struct {
			Class     string              `yaml:"class"`
			Stability map[string][]string `yaml:"stability"`
		} `yaml:"status"`
		Telemetry struct {
			Metrics map[string]Described `yaml:"metrics"`
		} `yaml:"telemetry"`
	}
	require.NoError(t, yaml.Unmarshal(data, &file))
	levels := map[string][]string{}
	for level, signals := range stability {
		levels[strings.ToLower(level.String())] = signals
	}
	folder := strings.ReplaceAll(file.Type, "_", "") + class
	assert.Equal(t, factory.Type().String(), file.Type)
	assert.Equal(t, class, file.Status.Class)
	assert.Equal(t, levels, file.Status.Stability)
	assert.Equal(t, scope, fmt.Sprintf("github.com/%s/%s/%s", file.GithubProject, class, folder))
	return file.Telemetry.Metrics
}
