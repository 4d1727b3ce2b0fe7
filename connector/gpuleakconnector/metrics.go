// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import "github.com/otelcol-llm/otelcol-llm/internal/emit"

// The metrics of the results. Each point has hw.id, process.pid and process.executable.name where they are known.
var (
	state = &emit.Metric{
		Name: "gpu.leak.state", Kind: emit.StateSet, Default: true, States: []string{"ok", "suspect", "leaking", "plateau"},
		Description: "What there is to say of the memory of a process on a device, or, without process.pid, of the memory of no visible process, or of the device where nothing is told of its processes.",
	}
	unjudged = &emit.Metric{
		Name: "gpu.leak.unjudged", Kind: emit.Gauge, Default: true, Attributes: []string{"`reason` = young, calls_missed, told_elsewhere"},
		Description: "1 while there is no state, by why: memory was not seen for long enough; what is allocated is not known, since calls were missed; a process that says of no device tells what the device shows.",
	}
	rate = &emit.Metric{
		Name: "gpu.leak.rate", Unit: "By/s", Kind: emit.Gauge, Default: true,
		Description: "How fast memory grows, over the span that the state rests on, at equal traffic where that is known.",
	}
	rateBound = &emit.Metric{
		Name: "gpu.leak.rate.bound", Unit: "By/s", Kind: emit.Gauge, Attributes: []string{"`bound` = lower, upper"},
		Description: "Between which rates it is, in 95 of 100 cases.",
	}
	exhaustion = &emit.Metric{
		Name: "gpu.leak.time_to_exhaustion", Unit: "s", Kind: emit.Gauge, Default: true,
		Description: "When nothing of the device's memory is left, at that rate. Not told while memory does not grow, or where the device is not known.",
	}
	exhaustionBound = &emit.Metric{
		Name: "gpu.leak.time_to_exhaustion.bound", Unit: "s", Kind: emit.Gauge, Attributes: []string{"`bound` = lower, upper"},
		Description: "Between which times it is, in 95 of 100 cases.",
	}
	perRequest = &emit.Metric{
		Name: "gpu.memory.per_request", Unit: "By/{request}", Kind: emit.Gauge, Default: true,
		Description: "Memory by running requests, within the last hour.",
	}
	perRequestFirst = &emit.Metric{
		Name: "gpu.memory.per_request.first_hour", Unit: "By/{request}", Kind: emit.Gauge, Default: true,
		Description: "The same within the first hour of the process, which it is held against.",
	}
	causes = &emit.Metric{
		Name: "gpu.leak.cause", Kind: emit.Gauge, Default: true, Attributes: []string{"`cause`"},
		Description: "1 for why memory grows, by the rules; 0 for what it was before.",
	}
	breaks = &emit.Metric{
		Name: "gpu.leak.slo.breaks_in", Unit: "s", Kind: emit.Gauge, Default: true, Attributes: []string{"`slo_id`"},
		Description: "When a leak breaks a promise, at the latest: for each that it will break, while it is one.",
	}
	table = []*emit.Metric{state, unjudged, rate, rateBound, exhaustion, exhaustionBound, perRequest, perRequestFirst, causes, breaks}
)

// states are the places of trend's states in those of the metric.
var states = [...]int{0, 3, 1, 2}
