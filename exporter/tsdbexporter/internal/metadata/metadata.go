// SPDX-License-Identifier: Apache-2.0

// Package metadata names the component; metadata.yaml says the same, and a test holds them against each other.
package metadata

import "go.opentelemetry.io/collector/component"

// Type is the component's type.
var Type = component.MustNewType("tsdb")

const (
	// ScopeName is the instrumentation scope of the component's own telemetry.
	ScopeName = "github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter"
	// MetricsStability is the stability of the component.
	MetricsStability = component.StabilityLevelAlpha
)
