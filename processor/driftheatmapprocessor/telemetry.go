// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/internal/frame"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/metadata"
)

// cellsGauge is the place of the processor's own gauge.
const cellsGauge = frame.Own

// ownMetrics is what the processor says of itself, beside what all say.
var ownMetrics = frame.Spec{
	Scope: metadata.ScopeName, Component: "drift_heatmap",
	Refused: "Data points of an SLO's metric, or of one of coupling's, that did not count, by reason.",
	Evicted: "Cells and input series forgotten because nothing was heard of them.",
	Inputs:  "Input series, and engines, that are remembered.",
	Dropped: frame.Instrument{Name: "results_dropped", Unit: "{datapoint}", Description: "Points of results that no consumer took in time."},
	Gauges:  []frame.Instrument{{Name: "cells", Unit: "{cell}", Description: "Cells (SLO × dimensions), and those of coupling."}},
}

// newOverflowed counts what there was no cell for.
func newOverflowed(set component.TelemetrySettings) (metric.Int64Counter, error) {
	return set.MeterProvider.Meter(metadata.ScopeName).Int64Counter("otelcol_drift_heatmap_points_overflowed", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Data points, spans and log records for whose cell there was no room, so that they count in that of their SLO's overflow."))
}

// sizes notes how full the maps are. The caller holds the mutex.
func (e *engine) sizes() {
	e.own.Sizes(e.intake, e.heat.Evicted())
	cells := e.heat.Len()
	if c := e.coupled; c != nil {
		inputs, _ := e.intake.Sizes()
		e.own.Set(frame.Inputs, inputs+len(c.engines))
		cells += c.curves.Len()
	}
	e.own.Set(cellsGauge, cells)
}
