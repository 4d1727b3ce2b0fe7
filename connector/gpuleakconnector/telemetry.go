// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/leak"
	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/frame"
)

// The gauges of the connector's own, by their place in ownMetrics.
const (
	processesGauge = frame.Own + iota
	waitingGauge
	pendingGauge
)

// ownMetrics is what the connector says of itself, beside what all say.
var ownMetrics = frame.Spec{
	Scope: metadata.ScopeName, Component: "gpu_leak",
	Refused: "Data points of memory and traffic that did not count, by reason.",
	Evicted: "Processes and devices forgotten because nothing was heard of them.",
	Inputs:  "Series of counters that are remembered.",
	Dropped: frame.Instrument{Name: "results_dropped", Unit: "{item}", Description: "Points of results, and events, that no consumer took in time."},
	Gauges: []frame.Instrument{
		{Name: "processes", Unit: "{process}", Description: "Processes and devices whose memory is followed."},
		{Name: "waiting_points", Unit: "{datapoint}", Description: "Points that wait until their time is complete."},
		{Name: "pending_events", Unit: "{event}", Description: "Events that wait for a consumer."},
	},
}

// sizes notes how full the maps are. The caller holds the mutex.
func (e *engine) sizes() {
	e.own.Sizes(e.intake, e.fleet.Evicted())
	e.own.Set(frame.Inputs, len(e.counters))
	e.own.Set(processesGauge, e.fleet.Len())
	e.own.Set(waitingGauge, e.fleet.Pending())
	e.fleet.Unjoined(e.joins.count)
}

// joinCounter counts traffic that counted, and is of no process all the same: whether it is shows only when its time is judged.
type joinCounter struct {
	points  metric.Int64Counter
	reasons map[leak.Unjoined]metric.MeasurementOption
	told    map[leak.Unjoined]uint64
}

func newJoinCounter(set component.TelemetrySettings) (*joinCounter, error) {
	points, err := set.MeterProvider.Meter(metadata.ScopeName).Int64Counter("otelcol_gpu_leak_traffic_unjoined", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Points of traffic and memory, and events of applications, that are of no process, by reason."))
	c := &joinCounter{points: points, reasons: map[leak.Unjoined]metric.MeasurementOption{}}
	for _, why := range []leak.Unjoined{leak.NoProcess, leak.Ambiguous, leak.Contested} {
		c.reasons[why] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", why.String())))
	}
	return c, err
}

// begin is called with a fleet that has counted nothing.
func (c *joinCounter) begin() { c.told = map[leak.Unjoined]uint64{} }

func (c *joinCounter) count(why leak.Unjoined, n uint64) {
	if n > c.told[why] {
		c.points.Add(context.Background(), int64(n-c.told[why]), c.reasons[why])
		c.told[why] = n
	}
}
