// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-llm/otelcol-llm/extension/slocatalogextension/internal/metadata"
)

// NewFactory is the factory of slo_catalog.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

func createDefaultConfig() component.Config { return &Config{ReloadInterval: 10 * time.Second} }

func create(_ context.Context, set extension.Settings, cfg component.Config) (extension.Extension, error) {
	return newCatalog(set, cfg.(*Config)), nil
}
