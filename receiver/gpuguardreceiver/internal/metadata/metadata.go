// SPDX-License-Identifier: Apache-2.0

// Package metadata names the component; metadata.yaml says the same, and a test holds them against each other.
package metadata

import "go.opentelemetry.io/collector/component"

// Type is the component's type.
var Type = component.MustNewType("gpu_guard")

const (
	// ScopeName is the instrumentation scope of what the component emits.
	ScopeName = "github.com/otelcol-llm/otelcol-llm/receiver/gpuguardreceiver"
	// Stability is that of all that the component emits.
	Stability = component.StabilityLevelAlpha
)
