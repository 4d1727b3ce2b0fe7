// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"net/http"
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
	doctest.Settings(t, createDefaultConfig(), map[string]string{"query": "see below", "trace_url": "none", "endpoint": "", "write_timeout": ""})
	doctest.Has(t, "| `query::timeout` | `30s` |")
	assert.Equal(t, 2, doctest.Examples(t, "extensions", NewFactory()))
}
