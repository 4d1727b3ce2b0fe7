// SPDX-License-Identifier: Apache-2.0

// Package promsli says a service level indicator in PromQL: what of it is good, and of how much, over a window.
//
// Recording rules are made of it, and questions about what was before. What PromQL cannot say is an error, and what it
// cannot say exactly is told.
package promsli

import (
	"errors"
	"fmt"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// SLI is an indicator with its objective, in PromQL. Expressions over a window take its length as PromQL spells it (see
// Span) and give a series for each group.
type SLI struct {
	Comments []string // what is not exactly as the slo connector has it
	// Points is set where single points are compared, which PromQL can do at an instant only. What looks back over a
	// window then evaluates it once a minute; a recording rule can do it once, for all windows.
	Points *Points
	// Whole tells that Good and Total count whole events; not so for the readings of a ratio.
	Whole bool

	part    func(w string) string // good events, or where negated the bad ones
	all     func(w string) string // all of them
	negated bool
	never0  bool   // all is absent, and not 0, where nothing was
	scale   string // "0.01 * " in front of part, or nothing
	group   string // the by clause
	sees    string // selects the series that show that somebody was looking
}

// Points are expressions for an instant: how many series keep the objective, and how many there are.
type Points struct {
	Good, All string
}

// New says an SLO's indicator in PromQL, by group. An error says what of it PromQL cannot say.
func New(slo *openslo.SLO, groupBy []string, kinds Kinds) (*SLI, error) {
	if why := slo.NotEvaluated(); why != "" {
		return nil, errors.New(why)
	}
	if len(slo.Indicator.Parts) > 0 {
		return nil, errors.New("it is made of other SLOs, each with its share, and has no events of its own")
	}
	group := By(groupBy)
	switch in := &slo.Indicator; {
	case in.Threshold != nil:
		return threshold(slo, group, kinds)
	case in.Ratio.Raw != nil:
		return raw(in.Ratio, group, kinds)
	default:
		return counts(in.Ratio, group, kinds)
	}
}

// resolution is how often points are compared within a window.
const resolution = time.Minute

// cell is the grain of Seen: the time for which Prometheus takes a series to be there after its last sample.
const cell = 5 * time.Minute

// Ratio is the share of good events over a window. It is absent without events.
func (s *SLI) Ratio(w string) string {
	if s.Points != nil {
		return fmt.Sprintf("sum_over_time((%s)[%s:%s])\n/\nsum_over_time((%s)[%s:%s])",
			s.Points.Good, w, Span(resolution), s.Points.All, w, Span(resolution))
	}
	all := s.all(w)
	if !s.never0 {
		all = "(" + all + " > 0)"
	}
	ratio := s.scale + s.part(w) + "\n/\n" + all
	if s.negated {
		return "1 - " + ratio
	}
	return ratio
}

// Good is how many events were good over a window: an estimate, as increase extrapolates, and absent where the part of
// the indicator that tells good from bad has no samples.
func (s *SLI) Good(w string) string {
	switch {
	case s.Points != nil:
		return s.all(w) + "\n*\n" + s.Ratio(w)
	case s.negated:
		return s.all(w) + "\n-\n" + s.scale + s.part(w)
	default:
		return s.scale + s.part(w)
	}
}

// Total is how many events there were over a window, likewise.
func (s *SLI) Total(w string) string { return s.all(w) }

// Seen is for how many seconds of a window there were samples of what Total counts, in cells of five minutes.
func (s *SLI) Seen(w string) string {
	return fmt.Sprintf("%s * count_over_time((count%s(present_over_time(%s[%s])))[%s:%s])",
		Number(cell.Seconds()), s.group, s.sees, Span(cell), w, Span(cell))
}

func threshold(slo *openslo.SLO, group string, kinds Kinds) (*SLI, error) {
	src, err := kinds.source(slo.Indicator.Threshold, slo.Unit, false)
	if err != nil {
		return nil, err
	}
	value := tidy(slo.Objective.Value / slo.Indicator.Threshold.Scale) // as the source has it
	if src.kind == histogram {
		return buckets(slo, src, value, group), nil
	}
	return sampled(slo, src, value, group), nil
}

// buckets counts the events of a histogram at the objective's boundary.
func buckets(slo *openslo.SLO, src source, value float64, group string) *SLI {
	bucket := src.selector("_bucket", le(value))
	count := src.selector("_count")
	sli := &SLI{
		Comments: []string{fmt.Sprintf(
			"%s needs a bucket that ends at %s; without one there is no data. --gauge %s if it is no histogram.",
			src.name, Number(value), slo.Indicator.Threshold.Metric)},
		Whole:   true,
		part:    func(w string) string { return fmt.Sprintf("sum%s(increase(%s[%s]))", group, bucket, w) },
		all:     func(w string) string { return fmt.Sprintf("sum%s(increase(%s[%s]))", group, count, w) },
		negated: !slo.Objective.Op.AtMost(),
		group:   group, sees: count,
	}
	switch slo.Objective.Op {
	case openslo.OpLT:
		sli.Comments = append(sli.Comments, "Values that are exactly the objective count as good: a bucket holds its upper boundary.")
	case openslo.OpGTE:
		sli.Comments = append(sli.Comments, "Values that are exactly the objective count as bad: a bucket holds its upper boundary.")
	}
	return sli
}

// rateWindow is what a counter's rate is taken over where its rate is compared with an objective.
const rateWindow = "2m"

// sampled counts, at each evaluation, how many series keep the objective: Prometheus has no other way to compare the
// points of a gauge.
func sampled(slo *openslo.SLO, src source, value float64, group string) *SLI {
	series := src.selector("")
	points := series
	sli := &SLI{Comments: []string{fmt.Sprintf(
		"An approximation: %s is looked at once an evaluation of this group, where the slo connector sees every point.", src.name)}}
	if src.kind == counter {
		points = fmt.Sprintf("rate(%s[%s])", series, rateWindow)
		sli.Comments = append(sli.Comments, "Each series' rate over "+rateWindow+" is held against the objective, as the connector does with each increase.")
	} else {
		sli.Comments = append(sli.Comments, fmt.Sprintf("--histogram %s if it is one.", slo.Indicator.Threshold.Metric))
	}
	op := map[openslo.Op]string{openslo.OpLTE: "<=", openslo.OpLT: "<", openslo.OpGTE: ">=", openslo.OpGT: ">"}[slo.Objective.Op]
	sli.Points = &Points{
		Good: fmt.Sprintf("sum%s(%s %s bool %s)", group, points, op, Number(value)),
		All:  fmt.Sprintf("count%s(%s)", group, points),
	}
	sli.Whole = true
	sli.all = func(w string) string { return fmt.Sprintf("sum%s(count_over_time(%s[%s]))", group, series, w) }
	sli.group, sli.sees = group, series
	return sli
}

// raw weights the readings of a ready ratio alike, as there is no number of events to weight them by.
func raw(r *openslo.Ratio, group string, kinds Kinds) (*SLI, error) {
	src, err := kinds.source(r.Raw, "ratio", false)
	if err != nil {
		return nil, err
	}
	points := src.selector("")
	sli := &SLI{
		Comments: []string{"Each reading of " + src.name + " weighs the same: a ready ratio does not say of how many events it is."},
		part:     func(w string) string { return fmt.Sprintf("sum%s(sum_over_time(%s[%s]))", group, points, w) },
		all:      func(w string) string { return fmt.Sprintf("sum%s(count_over_time(%s[%s]))", group, points, w) },
		negated:  r.RawType == openslo.RawFailure,
		never0:   true,
		group:    group, sees: points,
	}
	if r.Raw.Scale != 1 {
		sli.scale = Number(r.Raw.Scale) + " * "
	}
	return sli, nil
}

// counts divides what good, or all but bad, counted by what total counted.
func counts(r *openslo.Ratio, group string, kinds Kinds) (*SLI, error) {
	part, negated := r.Good, false
	if part == nil {
		part, negated = r.Bad, true
	}
	some, err := kinds.source(part, "", true)
	if err != nil {
		return nil, err
	}
	all, err := kinds.source(r.Total, "", true)
	if err != nil {
		return nil, err
	}
	total := func(w string) string { return fmt.Sprintf("sum%s(%s)", group, all.added(w)) }
	return &SLI{
		Whole: true,
		// A counter that never counted has no series: nothing good, or nothing bad, is 0 and not unknown.
		part:    func(w string) string { return fmt.Sprintf("(sum%s(%s) or 0 * %s)", group, some.added(w), total(w)) },
		all:     total,
		negated: negated,
		group:   group, sees: all.counted(),
	}, nil
}

// counted selects the series that count what a source counts.
func (s source) counted() string {
	if s.kind == histogram {
		return s.selector("_count")
	}
	return s.selector("")
}

// added is what a source counted over a window.
func (s source) added(w string) string {
	function := "increase"
	if s.kind == gauge {
		function = "sum_over_time"
	}
	return fmt.Sprintf("%s(%s[%s])", function, s.counted(), w)
}
