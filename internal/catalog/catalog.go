// SPDX-License-Identifier: Apache-2.0

// Package catalog is how components find the SLO catalog: the slo_catalog extension implements Source, and
// whoever needs the catalog asks the host for it with From.
package catalog

import (
	"fmt"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// DefaultID is the extension that components use when their setting `catalog` says no other.
var DefaultID = component.NewID(component.MustNewType("slo_catalog"))

// Source is what an extension offers that holds a catalog.
type Source interface {
	// Catalog is the catalog as it is now. It is never nil, and what it points to never changes: ask again
	// to see what a reload brought. It may be called at any time, from any goroutine.
	Catalog() *openslo.Catalog
}

// From finds the extension id on the host. It is for use in Start: extensions are started before pipelines, so
// the catalog is loaded then.
func From(host component.Host, id component.ID) (Source, error) {
	ext, ok := host.GetExtensions()[id]
	if !ok {
		return nil, fmt.Errorf("catalog: no extension %q is running: add it under extensions and service.extensions", id)
	}
	src, ok := ext.(Source)
	if !ok {
		return nil, fmt.Errorf("catalog: extension %q holds no SLO catalog: name one of the type %s", id, DefaultID.Type())
	}
	return src, nil
}
