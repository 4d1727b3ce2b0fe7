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
	table = []*emit.Metric{sliValue, sliBound, sliEvents, objective, state, violations}
)
