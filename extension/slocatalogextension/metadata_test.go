// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-llm/otelcol-llm/extension/slocatalogextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/catalog"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
)

func TestMetadataAgreesWithTheCode(t *testing.T) {
	f := NewFactory()
	assert.Equal(t, catalog.DefaultID.Type(), f.Type(), "components look for this type by default")
	described := doctest.Metadata(t, "extension", f, metadata.ScopeName, map[component.StabilityLevel][]string{f.Stability(): {"extension"}})

	tel := componenttest.NewTelemetry()
	ext := started(t, tel, "builtin:vllm")
	ext.(*sloCatalog).telemetry.failures.Add(t.Context(), 1)
	for name, want := range described {
		got, err := tel.GetMetric("otelcol_" + name)
		require.NoError(t, err)
		assert.Equal(t, want, doctest.Described{Description: got.Description, Unit: got.Unit})
	}
	assert.Len(t, described, 3)
	require.NoError(t, ext.Shutdown(t.Context()))
	require.NoError(t, tel.Shutdown(t.Context()))
}

func TestREADMEHasEverySettingWithItsDefault(t *testing.T) {
	doctest.Settings(t, createDefaultConfig(), map[string]string{"paths": "none; at least one is required"})
}
