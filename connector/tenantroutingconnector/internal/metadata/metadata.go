// SPDX-License-Identifier: Apache-2.0

// Package metadata says what the component is called and how stable it is. metadata.yaml says the same for people and tools.
package metadata

import "go.opentelemetry.io/collector/component"

// Type is the name by which configurations refer to the connector.
var Type = component.MustNewType("tenant_routing")

const (
	// ScopeName is the instrumentation scope of the connector's own telemetry.
	ScopeName = "github.com/otelcol-llm/otelcol-llm/connector/tenantroutingconnector"
	// Stability holds for all signals.
	Stability = component.StabilityLevelAlpha
)
