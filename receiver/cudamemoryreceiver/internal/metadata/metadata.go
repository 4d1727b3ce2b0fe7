// SPDX-License-Identifier: Apache-2.0

// Package metadata names the component; metadata.yaml says the same, and a test holds them against each other.
package metadata

import "go.opentelemetry.io/collector/component"

// Type is the component's type.
var Type = component.MustNewType("cuda_memory")

const (
	// ScopeName is the instrumentation scope of what the component emits.
	ScopeName = "github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver"
	// SchemaURL is of the first release of the semantic conventions that has all names of theirs that the component uses.
	SchemaURL = "https://opentelemetry.io/schemas/1.37.0"
	// Stability is that of all that the component emits.
	Stability = component.StabilityLevelAlpha
)
