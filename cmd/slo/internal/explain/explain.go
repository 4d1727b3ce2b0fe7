// SPDX-License-Identifier: Apache-2.0

// Package explain says in plain words what SLO files promise: what counts as good, for whom, how much may go wrong, who
// is told when, and what it costs.
package explain

import (
	"fmt"
	"io"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// Write explains the SLOs of a catalog that wanted accepts, one after the other, and then what all of them cost.
func Write(w io.Writer, c *openslo.Catalog, wanted func(*openslo.SLO) bool) {
	p := &page{w: w}
	var chosen []*openslo.SLO
	for i := range c.SLOs {
		if slo := &c.SLOs[i]; wanted(slo) {
			chosen = append(chosen, slo)
			explainOne(p, c, slo)
		}
	}
	total(p, c, chosen)
}

func explainOne(p *page, c *openslo.Catalog, slo *openslo.SLO) {
	title := slo.Name
	if slo.DisplayName != "" {
		title = slo.DisplayName
	}
	if slo.Objective.DisplayName != "" {
		title += ", " + slo.Objective.DisplayName
	}
	if isComposite(slo) {
		title += ", as a whole"
	}
	p.title(title, fmt.Sprintf("%s  (%s, %s:%d)", slo.ID, slo.Name, slo.Position.File, slo.Position.Line))
	if slo.Description != "" {
		p.field("What for", slo.Description)
	}
	p.field("Promise", promise(slo))
	if slo.Composite != nil {
		p.field("", fmt.Sprintf("It is a part of the composite SLO %s and has %s of its weight.", slo.Name, percent(slo.Composite.Share)))
	}
	p.field("Good", good(slo)...)
	p.field("For whom", forWhom(slo))
	p.field("Budget", budget(slo)...)
	p.field("Pages", pages(c, slo)...)
	p.field("Owner", owner(slo)...)
	p.field("Planned", planned(c, slo)...)
	if b := buckets(slo); b != "" {
		p.field("Buckets", b)
	}
	p.field("Series", cost(slo))
	p.field("Careful", warnings(slo)...)
}

// promise is the objective in a sentence.
func promise(slo *openslo.SLO) string {
	if isComposite(slo) {
		return whole(slo)
	}
	o := &slo.Objective
	share, over := o.Target, window(slo.TimeWindow)
	begin := "At least "
	switch slo.Budgeting {
	case openslo.Timeslices:
		begin = fmt.Sprintf("In at least %s of the slices of %s, at least ", percent(o.Target), span(o.TimeSliceWindow))
		share = o.TimeSliceTarget
	case openslo.RatioTimeslices:
		begin = fmt.Sprintf("In the mean of all slices of %s, at least ", span(o.TimeSliceWindow))
	}
	begin += percent(share) + " of " + subject(slo)
	if slo.Indicator.Ratio != nil {
		return begin + " are good, " + over + "."
	}
	begin += " are " + compared(slo) + ", " + over + "."
	if slo.Budgeting == openslo.RatioTimeslices {
		return begin // a mean of shares is no share below a percentile
	}
	quantile := share
	if !o.Op.AtMost() {
		quantile = 1 - share
	}
	return begin + " In other words, the " + ordinal(quantile*100) + " percentile is."
}

// subject is what is counted, in the plural.
func subject(slo *openslo.SLO) string {
	in := &slo.Indicator
	if in.Ratio != nil {
		if in.Ratio.Raw != nil {
			return "what " + source(in.Ratio.Raw) + " is the ratio of"
		}
		if total := in.Ratio.Total; total.Type == openslo.TypeOpenTelemetry && total.Signal != openslo.SignalMetrics {
			return counted(total)
		}
		return "the events that " + source(in.Ratio.Total) + " counts"
	}
	switch s := in.Threshold; {
	case s.Type != openslo.TypeOpenTelemetry:
		return "the values of another tool's metric"
	case s.Rate > 0:
		return rates(s)
	case s.Signal == openslo.SignalMetrics:
		return "the values of " + s.Metric
	default:
		return "the values that " + s.Value + " has on " + things(s.Signal)
	}
}

// source names the telemetry of a selector.
func source(s *openslo.Selector) string {
	switch {
	case s.Type != openslo.TypeOpenTelemetry:
		return "another tool (" + s.Type + ")"
	case s.Signal == openslo.SignalMetrics:
		return s.Metric
	default:
		return "the number of " + things(s.Signal)
	}
}

// things are what a signal consists of.
func things(s openslo.Signal) string {
	return map[openslo.Signal]string{openslo.SignalTraces: "spans", openslo.SignalLogs: "log records"}[s]
}

func compared(slo *openslo.SLO) string {
	word := map[openslo.Op]string{
		openslo.OpLTE: "at most", openslo.OpLT: "less than", openslo.OpGTE: "at least", openslo.OpGT: "more than",
	}[slo.Objective.Op]
	if s := slo.Indicator.Threshold; s != nil && s.Type != openslo.TypeOpenTelemetry {
		return word + " " + number(slo.Objective.Value) // in a unit that only the other tool knows
	}
	return word + " " + quantity(slo.Objective.Value, slo.Unit)
}

// good says which events there are, and which of them are good.
func good(slo *openslo.SLO) []string {
	lines := goodEvents(slo)
	if slo.MinEvents > 1 {
		lines = append(lines, "A window with fewer than "+number(float64(slo.MinEvents))+" events is without data.")
	}
	return lines
}

func goodEvents(slo *openslo.SLO) []string {
	if isComposite(slo) {
		return madeOf(slo)
	}
	if s := slo.Indicator.Threshold; s != nil {
		lines := []string{"A value that is " + compared(slo) + ". " + event(s)}
		if s.Condition != "" {
			lines = append(lines, "Only those count for which "+oneLine(s.Condition)+".")
		}
		if s.Counted != "" {
			lines = append(lines, "Only those add to it for which "+oneLine(s.Counted)+". The others are input that adds nothing.")
		}
		if s.Range != nil {
			lines = append(lines, plausible(s, slo.Unit))
		}
		if s.Expected != "" {
			lines = append(lines, s.Expected+" counts the requests that should be measured. Those that are not could have been good or bad: the bounds widen.")
		}
		if s.Unit != "" {
			lines = append(lines, "The source is in "+s.Unit+" and is converted.")
		}
		return lines
	}
	switch r := slo.Indicator.Ratio; {
	case r.Raw != nil:
		of := "good"
		if r.RawType == openslo.RawFailure {
			of = "bad"
		}
		return []string{source(r.Raw) + condition(r.Raw) + " is the share of " + of + " ones already; each reading counts as one event."}
	case r.Good != nil:
		return []string{capital(counted(r.Good)) + condition(r.Good) + ".", "Out of " + counted(r.Total) + condition(r.Total) + "."}
	default:
		return []string{capital(counted(r.Total)) + condition(r.Total) + ".", "Except " + counted(r.Bad) + condition(r.Bad) + "."}
	}
}

// counted is what a part of a ratio counts.
func counted(s *openslo.Selector) string {
	if s.Type == openslo.TypeOpenTelemetry && s.Signal != openslo.SignalMetrics {
		return "the " + things(s.Signal)
	}
	return "what " + source(s) + " counts"
}

func condition(s *openslo.Selector) string {
	if s.Condition == "" {
		return ""
	}
	return " for which " + oneLine(s.Condition)
}

// event says what one event is, as far as the name of a source tells.
func event(s *openslo.Selector) string {
	switch {
	case s.Type != openslo.TypeOpenTelemetry:
		return "What a value is, the other tool knows."
	case s.Rate > 0:
		return interval(s)
	case s.Signal != openslo.SignalMetrics:
		return "Each of the " + things(s.Signal) + " is an event."
	case counter(s):
		return "It is a counter: each of its increases, as a rate a second, is an event."
	default:
		return "Each value in a histogram is an event, and each reading of a gauge."
	}
}

func counter(s *openslo.Selector) bool { return strings.HasSuffix(s.Metric, "_total") }

func forWhom(slo *openslo.SLO) string {
	if len(slo.GroupBy) == 0 {
		return "All together: one verdict, unless the connector's setting group_by divides it."
	}
	of := "Each value of "
	if len(slo.GroupBy) > 1 {
		of = "Each combination of "
	}
	return of + list(slo.GroupBy, "and") + " apart: the promise is made to each."
}

// buckets says what a histogram needs for a verdict that is more than a bound.
func buckets(slo *openslo.SLO) string {
	s := slo.Indicator.Threshold
	if s == nil || s.Type != openslo.TypeOpenTelemetry || s.Signal != openslo.SignalMetrics || s.Rate > 0 || counter(s) {
		return ""
	}
	unit := slo.Unit
	if s.Unit != "" {
		unit = s.Unit
	}
	return fmt.Sprintf("If %s is a histogram with buckets, one must end at %s (%s). If none does, the state is at_risk wherever the buckets cannot tell. Exponential histograms and gauges need none.",
		s.Metric, number(slo.Objective.Value/s.Scale), unit)
}
