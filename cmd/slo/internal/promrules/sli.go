// SPDX-License-Identifier: Apache-2.0

package promrules

import (
	"fmt"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// indicator is an SLI in PromQL.
type indicator struct {
	ratio    func(window string) string // the share of good events over a window; absent without events
	samples  []Rule                     // what must be recorded before
	comments []string
}

func (b *builder) indicator(slo *openslo.SLO) (indicator, error) {
	switch in := &slo.Indicator; {
	case in.Threshold != nil:
		return b.threshold(slo, in.Threshold)
	case in.Ratio.Raw != nil:
		return b.raw(slo, in.Ratio)
	default:
		return b.counts(slo, in.Ratio)
	}
}

func (b *builder) threshold(slo *openslo.SLO, s *openslo.Selector) (indicator, error) {
	src, err := b.source(s, slo.Unit, false)
	if err != nil {
		return indicator{}, err
	}
	value := tidy(slo.Objective.Value / s.Scale) // as the source has it
	if src.kind == histogram {
		return buckets(slo, src, value), nil
	}
	return sampled(slo, src, value), nil
}

// buckets counts the events of a histogram at the objective's boundary.
func buckets(slo *openslo.SLO, src source, value float64) indicator {
	group := by(slo.GroupBy)
	bucket := src.selector("_bucket", le(value))
	count := src.selector("_count")
	in := indicator{comments: []string{fmt.Sprintf(
		"%s needs a bucket that ends at %s; without one there is no data. --gauge %s if it is no histogram.",
		src.name, literal(value), slo.Indicator.Threshold.Metric)}}
	switch slo.Objective.Op {
	case openslo.OpLT:
		in.comments = append(in.comments, "Values that are exactly the objective count as good: a bucket holds its upper boundary.")
	case openslo.OpGTE:
		in.comments = append(in.comments, "Values that are exactly the objective count as bad: a bucket holds its upper boundary.")
	}
	in.ratio = func(w string) string {
		good := fmt.Sprintf("sum%s(increase(%s[%s]))", group, bucket, w)
		total := fmt.Sprintf("(sum%s(increase(%s[%s])) > 0)", group, count, w)
		if slo.Objective.Op.AtMost() {
			return good + "\n/\n" + total
		}
		return "1 - " + good + "\n/\n" + total
	}
	return in
}

// rateWindow is what a counter's rate is taken over where its rate is compared with an objective.
const rateWindow = "2m"

// sampled counts, at each evaluation, how many series keep the objective: Prometheus has no other way to compare the
// points of a gauge.
func sampled(slo *openslo.SLO, src source, value float64) indicator {
	group := by(slo.GroupBy)
	points := src.selector("")
	in := indicator{comments: []string{fmt.Sprintf(
		"An approximation: %s is looked at once an evaluation of this group, where the slo connector sees every point.", src.name)}}
	if src.kind == counter {
		points = fmt.Sprintf("rate(%s[%s])", points, rateWindow)
		in.comments = append(in.comments, "Each series' rate over "+rateWindow+" is held against the objective, as the connector does with each increase.")
	} else {
		in.comments = append(in.comments, fmt.Sprintf("--histogram %s if it is one.", slo.Indicator.Threshold.Metric))
	}
	op := map[openslo.Op]string{openslo.OpLTE: "<=", openslo.OpLT: "<", openslo.OpGTE: ">=", openslo.OpGT: ">"}[slo.Objective.Op]
	in.samples = []Rule{
		{Record: samplesGood, Expr: fmt.Sprintf("sum%s(%s %s bool %s)", group, points, op, literal(value)), Labels: labelsOf(slo, 0)},
		{Record: samplesAll, Expr: fmt.Sprintf("count%s(%s)", group, points), Labels: labelsOf(slo, 0)},
	}
	in.ratio = func(w string) string {
		return fmt.Sprintf("sum_over_time(%s{slo_id=%q}[%s])\n/\nsum_over_time(%s{slo_id=%q}[%s])", samplesGood, slo.ID, w, samplesAll, slo.ID, w)
	}
	return in
}

// raw weights the readings of a ready ratio alike, as there is no number of events to weight them by.
func (b *builder) raw(slo *openslo.SLO, r *openslo.Ratio) (indicator, error) {
	src, err := b.source(r.Raw, "ratio", false)
	if err != nil {
		return indicator{}, err
	}
	group, points := by(slo.GroupBy), src.selector("")
	scale := ""
	if r.Raw.Scale != 1 {
		scale = literal(r.Raw.Scale) + " * "
	}
	if r.RawType == openslo.RawFailure {
		scale = "1 - " + scale
	}
	return indicator{
		comments: []string{"Each reading of " + src.name + " weighs the same: a ready ratio does not say of how many events it is."},
		ratio: func(w string) string {
			return fmt.Sprintf("%ssum%s(sum_over_time(%s[%s]))\n/\nsum%s(count_over_time(%s[%s]))", scale, group, points, w, group, points, w)
		},
	}, nil
}

// counts divides what good, or all but bad, counted by what total counted.
func (b *builder) counts(slo *openslo.SLO, r *openslo.Ratio) (indicator, error) {
	part, negated := r.Good, false
	if part == nil {
		part, negated = r.Bad, true
	}
	some, err := b.source(part, "", true)
	if err != nil {
		return indicator{}, err
	}
	all, err := b.source(r.Total, "", true)
	if err != nil {
		return indicator{}, err
	}
	group := by(slo.GroupBy)
	return indicator{ratio: func(w string) string {
		total := fmt.Sprintf("sum%s(%s)", group, all.added(w))
		// A counter that never counted has no series: nothing good, or nothing bad, is 0 and not unknown.
		ratio := fmt.Sprintf("(sum%s(%s) or 0 * %s)\n/\n(%s > 0)", group, some.added(w), total, total)
		if negated {
			return "1 - " + ratio
		}
		return ratio
	}}, nil
}

// added is what a source counted over a window.
func (s source) added(w string) string {
	switch s.kind {
	case histogram:
		return fmt.Sprintf("increase(%s[%s])", s.selector("_count"), w)
	case gauge:
		return fmt.Sprintf("sum_over_time(%s[%s])", s.selector(""), w)
	default:
		return fmt.Sprintf("increase(%s[%s])", s.selector(""), w)
	}
}

// slack keeps rounding from deciding: 19 of 20, extrapolated by increase, is not exactly 0.95.
const slack = " - 1e-9"

// burn is how many times faster than allowed the budget is spent over a window; "" where a window is no longer than a
// slice.
func burn(slo *openslo.SLO, w time.Duration) string {
	o := &slo.Objective
	allowed := literal(1 - o.Target)
	slice := span(o.TimeSliceWindow)
	switch {
	case slo.Budgeting == openslo.Occurrences:
		return fmt.Sprintf("(1 - %s) / %s", recorded(sliRatio, slo.ID, span(w)), allowed)
	case w < o.TimeSliceWindow:
		return ""
	case slo.Budgeting == openslo.Timeslices:
		return fmt.Sprintf("(1 - avg_over_time((%s >= bool %s%s)[%s:%s])) / %s",
			recorded(sliRatio, slo.ID, slice), literal(o.TimeSliceTarget), slack, span(w), slice, allowed)
	default:
		return fmt.Sprintf("(1 - avg_over_time(%s[%s:%s])) / %s", recorded(sliRatio, slo.ID, slice), span(w), slice, allowed)
	}
}
