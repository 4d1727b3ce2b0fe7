// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-llm/otelcol-llm/extension/consoleextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
)

func TestMetadataAgreesWithTheCode(t *testing.T) {
	f := NewFactory()
	described := doctest.Metadata(t, "extension", f, metadata.ScopeName, map[component.StabilityLevel][]string{f.Stability(): {"extension"}})
	tel := componenttest.NewTelemetry()
	c := start(t, tel, answering(`{"status":"success"}`), nil)
	assert.Equal(t, http.StatusOK, c.get(t, "/api/v1/query?query=up", nil).status)
	assert.Equal(t, http.StatusForbidden, c.get(t, "/", func(r *http.Request) { r.Host = "evil.example" }).status)
	for name, want := range described {
		got, err := tel.GetMetric("otelcol_" + name)
		require.NoError(t, err)
		assert.Equal(t, want, doctest.Described{Description: got.Description, Unit: got.Unit})
		doctest.Has(t, "`otelcol_"+name+"`")
	}
	assert.Len(t, described, 2)
	require.NoError(t, tel.Shutdown(t.Context()))
}

// Guarantees: each setting that is the console's own has its row, and so have those of the Collector that it sets.
func TestREADMEHasEverySettingWithItsDefault(t *testing.T) {
	rows := map[string]string{
		"query_url": "`http://localhost:9191`", "query": "see below", "allowed_hosts": "`[]`", "trace_url": "none",
		"max_concurrent_queries": "`16`", "max_response_bytes": "`67108864`",
	}
	cfg := reflect.TypeFor[Config]()
	for i := range cfg.NumField() {
		key, options, _ := strings.Cut(cfg.Field(i).Tag.Get("mapstructure"), ",")
		if key == "" {
			assert.True(t, options == "squash" || cfg.Field(i).Name == "_", cfg.Field(i).Name)
			continue
		}
		require.Contains(t, rows, key)
		doctest.Has(t, "| `"+key+"` | "+rows[key]+" |")
	}
	doctest.Has(t, "| `endpoint` | `localhost:8686` |")
	doctest.Has(t, "| `write_timeout` | `1m` |")
	doctest.Has(t, "| `query::timeout` | `30s` |")
	assert.Equal(t, 2, doctest.Examples(t, "extensions", NewFactory()))
}
