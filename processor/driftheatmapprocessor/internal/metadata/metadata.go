// SPDX-License-Identifier: Apache-2.0

// Package metadata names the component; metadata.yaml says the same, and a test holds them against each other.
package metadata

import "go.opentelemetry.io/collector/component"

// Type is the component's type.
var Type = component.MustNewType("drift_heatmap")

const (
	// ScopeName is the instrumentation scope of the component's results and its own telemetry.
	ScopeName = "github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor"
	// Stability is the stability of the component.
	Stability = component.StabilityLevelAlpha
)
