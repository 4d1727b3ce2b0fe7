// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"github.com/otelcol-llm/otelcol-llm/extension/slocatalogextension/samples"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
)

// load reads the catalog that paths lead to. Expressions are compiled too, so that a broken one is told with its line.
func load(paths []string) (*openslo.Catalog, error) {
	files, sources, err := samples.Resolve(paths)
	if err != nil {
		return nil, err
	}
	opts, err := selection.Checked()
	if err != nil {
		return nil, err
	}
	return openslo.LoadWith(opts, files, sources...)
}
