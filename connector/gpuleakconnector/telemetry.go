// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
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
}
