// SPDX-License-Identifier: Apache-2.0

// Package metadata holds what metadata.yaml says, for code.
package metadata

import "go.opentelemetry.io/collector/component"

var (
	// Type is the key of the component in a configuration.
	Type = component.MustNewType("gpu_guard")
	// ScopeName is the instrumentation scope of its own telemetry.
	ScopeName = "github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension"
)

// ExtensionStability is how far the extension is to be relied on.
const ExtensionStability = component.StabilityLevelAlpha
