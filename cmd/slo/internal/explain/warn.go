// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"math"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// warnings are what an SLO's author may not expect.
func warnings(slo *openslo.SLO) []string {
	var w []string
	add := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	if why := notMeasured(slo); why != "" {
		add("It is not measured here: %s.", why)
		return w
	}
	for _, s := range slo.Indicator.Selectors() {
		switch {
		case !strings.Contains(s.Metric, "inter_token_latency"):
		case calledTPOT(slo):
			add("It is called a time per output token, and %s is none: with speculative decoding it is a time per chunk of several tokens. Take a metric of requests, e.g. vllm:request_time_per_output_token_seconds.", s.Metric)
		default:
			add("%s is a time per chunk where speculative decoding is on, not per token: take the time per output token of requests.", s.Metric)
		}
	}
	if why := foregone(slo); why != "" {
		add("%s", why)
	}
	if n := fewest(slo); n > float64(slo.MinEvents) && !isComposite(slo) {
		add("In a window with fewer than %s events a single bad one misses the objective.", number(n))
	}
	if slo.Budgeting == openslo.Timeslices {
		add("Violations look at single windows, which are held against timeSliceTarget (%s), not against target.", percent(slo.Objective.TimeSliceTarget))
	}
	if len(slo.AlertPolicies) > 0 {
		add("The Collector sends its alerts where the slo connector's setting alertmanager says. Without it, load what slo rules writes into Prometheus.")
	}
	for _, key := range slo.GroupBy {
		if key == "service.instance.id" || strings.HasSuffix(key, "request.id") || strings.HasSuffix(key, "user.id") {
			add("%s has a value for each %s: every one costs the series above.", key, strings.TrimSuffix(strings.ReplaceAll(key, ".", " "), " id"))
		}
	}
	return w
}

// notMeasured says why the slo connector does not judge an SLO; it is empty where it does.
func notMeasured(slo *openslo.SLO) string {
	return slo.NotEvaluated()
}

// calledTPOT tells an SLO that is called a time per output token by its id, its name or its indicator.
func calledTPOT(slo *openslo.SLO) bool {
	for _, name := range []string{slo.ID, slo.Name, slo.DisplayName, slo.Indicator.Name} {
		name = strings.NewReplacer("-", "_", ".", "_", " ", "_").Replace(strings.ToLower(name))
		if strings.Contains(name, "tpot") || strings.Contains(name, "time_per_output_token") {
			return true
		}
	}
	return false
}

// foregone says why an objective is always kept, or never; it is empty where events decide.
func foregone(slo *openslo.SLO) string {
	o := &slo.Objective
	if o.Target == 0 && slo.Budgeting != openslo.Timeslices {
		return "The target is 0: the objective cannot be missed, whatever happens."
	}
	s := slo.Indicator.Threshold
	if s == nil || s.Type != openslo.TypeOpenTelemetry {
		return ""
	}
	r := possible(s, slo.Unit)
	var always, never bool
	switch o.Op {
	case openslo.OpLTE:
		always, never = o.Value >= r.Max, o.Value < r.Min
	case openslo.OpLT:
		always, never = o.Value > r.Max, o.Value <= r.Min
	case openslo.OpGTE:
		always, never = o.Value <= r.Min, o.Value > r.Max
	case openslo.OpGT:
		always, never = o.Value < r.Min, o.Value >= r.Max
	}
	switch {
	case always:
		return fmt.Sprintf("Every value there can be is %s: no event is ever bad.", compared(slo))
	case never:
		return fmt.Sprintf("No value there can be is %s: no event is ever good.", compared(slo))
	}
	return ""
}

// possible are the values that an objective is compared with, as far as is known.
func possible(s *openslo.Selector, unit string) openslo.Range {
	r := openslo.Range{Min: math.Inf(-1), Max: math.Inf(1)}
	switch unit = strings.TrimSuffix(unit, "_per_second"); unit {
	case "seconds", "bytes", "ratio", "tokens", "requests", "events", "joules", "watts":
		r.Min = 0 // never negative
	}
	if s.Range != nil && s.Rate == 0 {
		r.Max = s.Range.Max
		if !math.IsInf(s.Range.Min, -1) {
			r.Min = s.Range.Min
		}
	}
	return r
}

// fewest is the number of events below which one bad event is one too many.
func fewest(slo *openslo.SLO) float64 {
	target := slo.Objective.Target
	if slo.Budgeting == openslo.Timeslices {
		target = slo.Objective.TimeSliceTarget
	}
	if target >= 1 {
		return 0
	}
	n := 1 / (1 - target)
	return math.Ceil(n - n*1e-9) // 1/(1−0.99999) is a little more than 100,000
}
