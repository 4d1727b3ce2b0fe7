// SPDX-License-Identifier: Apache-2.0

package tenantheadersextension

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-llm/otelcol-llm/extension/tenantheadersextension/internal/metadata"
)

// NewFactory is the factory of tenant_headers.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

func createDefaultConfig() component.Config {
	return &Config{Header: "X-Scope-OrgID", FromMetadata: "x-scope-orgid"}
}

func create(_ context.Context, _ extension.Settings, cfg component.Config) (extension.Extension, error) {
	return newHeaders(cfg.(*Config)), nil
}
