// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
)

// The metrics of the processor. What is measured in the SLO's own unit carries no OTLP unit: the attribute unit says it, so
// that one Prometheus name holds them all.
var (
	observed = &emit.Metric{
		Name: "slo.drift.observed", Kind: emit.Gauge, Default: true,
		Description: "What the window says: the promised quantile, or the ratio.",
	}
	deviation = &emit.Metric{
		Name: "slo.drift.deviation", Unit: "1", Kind: emit.Gauge, Default: true,
		Description: "(observed − target) / target: 238 ms where 200 ms are promised is 0.19.",
	}
	baselines = &emit.Metric{
		Name: "slo.drift.baseline", Kind: emit.Gauge, Default: true, Attributes: []string{"`baseline` = static, dynamic, frozen"},
		Description: "What the window is held against: what is promised, what was normal lately, and what was normal once.",
	}
	ratio = &emit.Metric{
		Name: "slo.drift.ratio", Unit: "1", Kind: emit.Gauge, Default: true,
		Description: "(dynamic − static) / static: how far what is normal is from what is promised.",
	}
	state = &emit.Metric{
		Name: "slo.drift.state", Kind: emit.StateSet, Default: true, States: []string{"ok", "drifting", "degraded", "insufficient_data"},
		Description: "The verdict on the window that closed last.",
	}
	explanationMetric = &emit.Metric{
		Name: "slo.drift.explanation", Unit: "1", Kind: emit.Gauge, Default: true, Attributes: []string{"`dimension`", "`value`"},
		Description: "The share of an SLO's bad events that would not have been if the events with this value of the dimension were like all others; while a cell of the SLO drifts. Without the dimensions as attributes.",
	}
	throughput = &emit.Metric{
		Name: "llm.throughput", Unit: "{token}/s", Kind: emit.Gauge, Default: true, Attributes: []string{"`batch`", "`context`", "`cache_hit`", "those of `coupling::by`, and none of an SLO"},
		Description: "The mean throughput of an engine lately, by how many requests it worked on at once, how long its prompts were and how much of them was cached; with `coupling`.",
	}
	kneeMetric = &emit.Metric{
		Name: "llm.throughput.knee", Unit: "{request}", Kind: emit.Gauge, Default: true, Attributes: []string{"`context`", "`cache_hit`", "those of `coupling::by`, and none of an SLO"},
		Description: "Where more requests at once stop paying; nothing where that is not known. With `coupling`.",
	}
	table = []*emit.Metric{observed, deviation, baselines, ratio, state, explanationMetric, throughput, kneeMetric}
)

// states are the places of the verdicts in the state set.
var states = [...]int{baseline.OK: 0, baseline.Drifting: 1, baseline.Degraded: 2, baseline.InsufficientData: 3}
