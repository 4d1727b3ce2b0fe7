// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
)

// The metrics of the connector. What is measured in the SLO's own unit carries no OTLP unit: the attribute unit says
// it, so that one Prometheus name holds them all.
var (
	sliValue = &emit.Metric{
		Name: "slo.sli.value", Kind: emit.Gauge, Default: true,
		Description: "The SLI over its evaluation window: the quantile at the target of a threshold indicator, or the ratio.",
	}
	sliBound = &emit.Metric{
		Name: "slo.sli.bound", Kind: emit.Gauge, Default: true, Attributes: []string{"`bound` = lower, upper"},
		Description: "What the resolution of the input proves about the SLI; both are equal when it is exact.",
	}
	sliIncomplete = &emit.Metric{
		Name: "slo.sli.incomplete", Kind: emit.Gauge, Default: true,
		Description: "1 where the evaluation window was judged without all that a known part has heard, else 0. Only of a connector that is told slo.sli.distribution.",
	}
	sliEvents = &emit.Metric{
		Name: "slo.sli.events", Unit: "{event}", Kind: emit.Counter, Default: true, Attributes: []string{"`outcome` = good, bad"},
		Description: "Accepted events.",
	}
	objective = &emit.Metric{
		Name: "slo.objective", Kind: emit.Gauge, Default: true,
		Description: "The objective in the base unit.",
	}
	state = &emit.Metric{
		Name: "slo.state", Kind: emit.StateSet, Default: true, States: judge.States,
		Description: "The verdict on the evaluation window that closed last.",
	}
	violations = &emit.Metric{
		Name: "slo.violations", Unit: "{violation}", Kind: emit.Counter, Default: true, Attributes: []string{"`slo.policy`"},
		Description: "Violations opened, per ViolationPolicy and group. Labels are those of the first SLO in `when`.",
	}
	remaining = &emit.Metric{
		Name: "slo.error_budget.remaining", Unit: "1", Kind: emit.Gauge, Default: true,
		Description: "The share of the error budget that is left over the SLO's time window: 1 untouched, 0 spent, below 0 overspent. Weighted by events.",
	}
	coverage = &emit.Metric{
		Name: "slo.error_budget.coverage", Unit: "1", Kind: emit.Gauge, Default: true,
		Description: "The share of the SLO's time window that was observed, by this connector or by what it was backfilled from.",
	}
	burnRate = &emit.Metric{
		Name: "slo.burn_rate", Unit: "1", Kind: emit.Gauge, Default: true, Attributes: []string{"`window` = 5m, 30m, 1h, 6h, 1d, 3d"},
		Description: "How many times as fast as it may the error budget is spent; nothing without events in the window.",
	}
	sliDistribution = &emit.Metric{
		Name: "slo.sli.distribution", Kind: emit.Distribution, Default: false, Attributes: []string{"`outcome`", "`layout`", "`factor`"},
		Description: "What the connector has heard, each minute, and then that this was all: another slo connector that is given the distributions of several judges the whole. Of a ratio, the count are all events and the sum the good ones.",
	}
	lag = &emit.Metric{
		Name: "slo.evaluation.lag", Unit: "s", Kind: emit.Gauge, Default: true,
		Description: "The wall clock minus the watermark: how far behind the verdicts are. Once for each connector; it goes on when nothing comes in.",
	}
	table = []*emit.Metric{
		sliValue, sliBound, sliIncomplete, sliEvents, objective, state, violations, remaining, coverage, burnRate, sliDistribution, lag,
	}
)

// burnWindows are the values of the attribute window, by judge.BurnWindows.
var burnWindows = []string{"5m", "30m", "1h", "6h", "1d", "3d"}
