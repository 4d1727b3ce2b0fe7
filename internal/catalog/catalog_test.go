// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

type other struct {
	component.StartFunc
	component.ShutdownFunc
}

type source struct{ other }

func (source) Catalog() *openslo.Catalog { return &openslo.Catalog{Files: []string{"a.yaml"}} }

func TestTheExtensionIsFoundByItsID(t *testing.T) {
	id := component.MustNewIDWithName("slo_catalog", "eu")
	src, err := From(host{DefaultID: other{}, id: source{}}, id)
	require.NoError(t, err)
	assert.Equal(t, []string{"a.yaml"}, src.Catalog().Files)
}

func TestAMissingOrWrongExtensionIsToldWithTheCure(t *testing.T) {
	_, err := From(host{}, DefaultID)
	require.EqualError(t, err, `catalog: no extension "slo_catalog" is running: add it under extensions and service.extensions`)
	_, err = From(host{}, component.MustNewIDWithName("slo_catalog", "eu"))
	require.ErrorContains(t, err, `"slo_catalog/eu"`)
	pprof := component.MustNewID("pprof")
	_, err = From(host{pprof: other{}}, pprof)
	require.EqualError(t, err, `catalog: extension "pprof" holds no SLO catalog: name one of the type slo_catalog`)
}
