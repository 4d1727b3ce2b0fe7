// SPDX-License-Identifier: Apache-2.0

// Package metadata says what the component is called and how stable it is. metadata.yaml says the same for people and tools.
package metadata

import "go.opentelemetry.io/collector/component"

// Type is the name by which configurations refer to the extension.
var Type = component.MustNewType("tenant_headers")

const (
	// ScopeName is the instrumentation scope of the extension's own telemetry.
	ScopeName = "github.com/otelcol-llm/otelcol-llm/extension/tenantheadersextension"
	// ExtensionStability says how far the extension can be relied on.
	ExtensionStability = component.StabilityLevelAlpha
)
