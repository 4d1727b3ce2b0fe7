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
		if strings.Contains(s.Metric, "inter_token_latency") {
			add("%s is a time per chunk where speculative decoding is on, not per token: take the time per output token of requests.", s.Metric)
		}
	}
	if n := fewest(slo); n > 1 {
		add("In a window with fewer than %s events a single bad one misses the objective.", number(n))
	}
	if slo.Budgeting == openslo.Timeslices {
		add("Violations look at single windows, which are held against timeSliceTarget (%s), not against target.", percent(slo.Objective.TimeSliceTarget))
	}
	for i := range slo.AlertPolicies {
		if slo.AlertPolicies[i].WhenBreaching {
			add("The Collector does not send burn-rate alerts: load what slo rules writes into Prometheus for that.")
			break
		}
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
	if why := slo.NotEvaluated(); why != "" {
		return why
	}
	for _, s := range slo.Indicator.Selectors() {
		if s.Signal != openslo.SignalMetrics {
			return "the slo connector judges metrics only, and this is made of " + string(s.Signal)
		}
	}
	return ""
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
