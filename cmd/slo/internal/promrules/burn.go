// SPDX-License-Identifier: Apache-2.0

package promrules

import (
	"fmt"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/promsli"
)

// points records how many points keep the objective, and how many there are, at each evaluation: PromQL can compare them
// at an instant only. The ratio over a window is that of what was recorded in it.
func points(slo *openslo.SLO, p *promsli.Points) (rules []Rule, ratio func(w string) string) {
	rules = []Rule{
		{Record: samplesGood, Expr: p.Good, Labels: labelsOf(slo, 0)},
		{Record: samplesAll, Expr: p.All, Labels: labelsOf(slo, 0)},
	}
	return rules, func(w string) string {
		return fmt.Sprintf("sum_over_time(%s{slo_id=%q}[%s])\n/\nsum_over_time(%s{slo_id=%q}[%s])", samplesGood, slo.ID, w, samplesAll, slo.ID, w)
	}
}

// slack keeps rounding from deciding: 19 of 20, extrapolated by increase, is not exactly 0.95.
const slack = " - 1e-9"

// burn is how many times faster than allowed the budget is spent over a window; "" where a window is no longer than a
// slice.
func burn(slo *openslo.SLO, w time.Duration) string {
	o := &slo.Objective
	allowed := promsli.Number(1 - o.Target)
	slice := promsli.Span(o.TimeSliceWindow)
	switch {
	case slo.Budgeting == openslo.Occurrences:
		return fmt.Sprintf("(1 - %s) / %s", recorded(sliRatio, slo.ID, promsli.Span(w)), allowed)
	case w < o.TimeSliceWindow:
		return ""
	case slo.Budgeting == openslo.Timeslices:
		return fmt.Sprintf("(1 - avg_over_time((%s >= bool %s%s)[%s:%s])) / %s",
			recorded(sliRatio, slo.ID, slice), promsli.Number(o.TimeSliceTarget), slack, promsli.Span(w), slice, allowed)
	default:
		return fmt.Sprintf("(1 - avg_over_time(%s[%s:%s])) / %s", recorded(sliRatio, slo.ID, slice), promsli.Span(w), slice, allowed)
	}
}
