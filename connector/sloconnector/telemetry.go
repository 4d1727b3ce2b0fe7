// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/frame"
)

// The gauges of the connector's own, by their place in ownMetrics.
const (
	seriesGauge = frame.Own + iota
	pendingGauge
	partsGauge
)

// ownMetrics is what the connector says of itself, beside what all say.
var ownMetrics = frame.Spec{
	Scope: metadata.ScopeName, Component: "slo",
	Refused: "Data points of an SLO's metric that did not count, by reason.",
	Evicted: "Series forgotten because nothing was heard of them.",
	Inputs:  "Input series that are remembered.",
	Dropped: frame.Instrument{
		Name: "events_dropped", Unit: "{event}", Description: "Log events, points of distributions and ends of series that no consumer took in time.",
	},
	Gauges: []frame.Instrument{
		{Name: "series", Unit: "{series}", Description: "Series that are judged (SLO × group)."},
		{Name: "pending_events", Unit: "{event}", Description: "Violation events that wait for a consumer."},
		{Name: "parts", Unit: "{part}", Description: "Connectors that are known by what they tell, away or not."},
	},
}

// forgottenParts makes the counter of parts that are not waited for any more.
func forgottenParts(set component.TelemetrySettings) (metric.Int64Counter, error) {
	return set.MeterProvider.Meter(metadata.ScopeName).Int64Counter("otelcol_slo_parts_forgotten",
		metric.WithUnit("{part}"), metric.WithDescription("Connectors that were away for so long that they are not waited for any more."))
}

// sizes notes how full the maps are, and what was dropped. The caller holds the mutex.
func (e *engine) sizes() {
	e.own.Sizes(e.intake, e.judge.Evicted())
	e.own.Set(seriesGauge, e.judge.Len())
	e.own.Set(partsGauge, e.judge.Parts())
	if n := e.parts.dropped; n > 0 {
		e.own.Dropped.Add(context.Background(), n)
		e.parts.dropped = 0
	}
}
