// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// slo.sli.distribution is how several connectors, each fed a part, make one truth: each tells what the panes of its series
// held, and another one adds them up as if it had heard it all itself.
//
//   - Of a threshold indicator, a point is the histogram of its values. Exponential histograms are told in parts by the
//     attribute outcome (judge.Outcome): what was known of their values before they shared buckets, the buckets cannot tell.
//     What a source's unit makes of their boundaries stands in the attribute factor, for which OTLP has no place.
//     Events without a value are told by their number alone, as are those that should have been measured.
//   - Of a ratio indicator, the count of the point is the total and its sum are the good events; where one of them has
//     come further than the other, the outcome says which. A fraction that the count cannot tell is the sum of another point.
//   - Of an objective on a rate, the sum is what was added up.
//   - A point without slo_id and events says that all was told (progress.go).

// The values of the attribute outcome besides those of judge.Outcomes.
const (
	outcomeUnknown  = "unknown"
	outcomeExpected = "expected"
	outcomeFraction = "fraction"
	outcomePart     = "part"
	outcomeTotal    = "total"
)

// distributions collects what the judge tells until it is published. The engine's mutex guards it.
type distributions struct {
	engine  *engine
	out     emit.Pages
	points  int
	dropped int64
	upTo    int64 // event time up to which all was told, or window.Unset
	lost    bool  // something of what comes after that was dropped
}

// add is called by the judge.
func (d *distributions) add(x *judge.Distribution) {
	if d.points >= emit.MaxUntold {
		d.dropped++
		d.lost = true
		return
	}
	d.points++
	w := writer{Series: d.engine.ofPart(d.out.Next(), x.Of), start: x.Start, end: x.End}
	switch {
	case x.Ratio:
		n := count(x.TotalSum)
		switch {
		case x.Part && x.Whole:
			w.counts(n, x.GoodSum)
		case x.Part:
			w.counts(n, x.GoodSum, "outcome", outcomePart)
		default:
			w.counts(n, x.GoodSum, "outcome", outcomeTotal)
		}
		if fraction := x.TotalSum - float64(n); fraction != 0 {
			w.counts(0, fraction, "outcome", outcomeFraction)
		}
	case x.Rate:
		w.counts(0, x.Amount)
	default:
		x.Values.Explicit(func(bounds []float64, counts []uint64) { w.explicit(bounds, counts) })
		x.Exponential(w.exponential)
		if x.Unknown > 0 {
			w.counts(x.Unknown, math.NaN(), "outcome", outcomeUnknown)
		}
		if x.Expected > 0 {
			w.counts(count(x.Expected), x.Expected, "outcome", outcomeExpected)
		}
	}
}

func count(n float64) uint64 { return uint64(max(math.Round(n), 0)) }

// writer writes the points of one pane.
type writer struct {
	emit.Series
	start, end int64
	layouts    int
}

// layout tells the points of one pane apart: two histograms must not be one series.
func (w *writer) layout(more []string) []string {
	if w.layouts++; w.layouts > 1 && len(more) == 0 {
		more = append(more, "layout", strconv.Itoa(w.layouts))
	}
	return more
}

func (w *writer) counts(n uint64, sum float64, more ...string) {
	w.Histogram(sliDistribution, w.start, w.end, nil, []uint64{n}, sum, more...)
}

func (w *writer) explicit(bounds []float64, counts []uint64) {
	w.Histogram(sliDistribution, w.start, w.end, bounds, counts, math.NaN(), w.layout(nil)...)
}

func (w *writer) exponential(e *sketch.Exponential, o judge.Outcome) {
	var more []string
	if o != judge.ByValue {
		more = append(more, "outcome", o.String())
	}
	if e.Factor != 0 && e.Factor != 1 {
		more = append(more, "factor", strconv.FormatFloat(e.Factor, 'g', -1, 64))
	}
	w.Exponential(sliDistribution, w.start, w.end, e, math.NaN(), w.layout(more)...)
}

// take returns what is to be published.
func (d *distributions) take() []*emit.Batch {
	d.points = 0
	return d.out.Take()
}

// isDistribution tells the metric in OTLP or Prometheus spelling.
func isDistribution(name string) bool {
	return name == sliDistribution.Name || name == "slo_sli_distribution"
}

// distribution takes what other connectors have heard, where they are trusted, and reports whether a metric is that.
func (e *engine) distribution(b *intake.Batch) bool {
	if !isDistribution(b.Metric.Name()) {
		return false
	}
	counts := &e.intake.Counts
	if !e.cfg.TrustParts {
		counts.Refuse(intake.Untrusted, intake.Points(b.Metric))
		return true
	}
	switch b.Metric.Type() {
	case pmetric.MetricTypeHistogram, pmetric.MetricTypeExponentialHistogram:
	default:
		counts.Refuse(intake.UnsupportedShape, intake.Points(b.Metric))
		return true
	}
	if intake.Temporality(b.Metric) != pmetric.AggregationTemporalityDelta {
		counts.Refuse(intake.NoTemporality, intake.Points(b.Metric))
		return true
	}
	if b.Metric.Type() == pmetric.MetricTypeExponentialHistogram {
		for _, p := range b.Metric.ExponentialHistogram().DataPoints().All() {
			h := &e.heard.exponential
			intake.CopyExponential(h, p)
			h.Factor = factorOf(p.Attributes())
			if !(h.Factor > 0) || math.IsInf(h.Factor, 1) || !h.Normalize() || h.Count() != p.Count() {
				counts.Refuse(intake.BadBuckets, 1)
				continue
			}
			part(e, b, p, func(s *judge.Series, at int64, outcome string) bool {
				if s.SLO().Indicator.Threshold == nil {
					return true
				}
				o := max(slices.Index(judge.Outcomes, outcome), 0)
				return s.AddJudged(at, h, h.Count(), judge.Outcome(o))
			})
		}
		return true
	}
	for _, p := range b.Metric.Histogram().DataPoints().All() {
		if isProgress(p) && e.progress(b, p) {
			continue
		}
		e.heard.counts = intake.AppendCounts(e.heard.counts[:0], p.BucketCounts())
		bounds, buckets := p.ExplicitBounds().AsRaw(), e.heard.counts
		n, ok := sketch.Total(buckets)
		if !ok || !sketch.Valid(bounds, buckets) || n != p.Count() || math.IsNaN(p.Sum()) || math.IsInf(p.Sum(), 0) {
			counts.Refuse(intake.BadBuckets, 1)
			continue
		}
		part(e, b, p, func(s *judge.Series, at int64, outcome string) bool {
			switch slo := s.SLO(); {
			case slo.Indicator.Ratio != nil && outcome == outcomeFraction:
				s.AddParts(at, 0, p.Sum(), false, false)
			case slo.Indicator.Ratio != nil:
				s.AddParts(at, p.Sum(), float64(n), outcome != outcomeTotal, outcome != outcomePart)
			case slo.Indicator.Threshold == nil:
			case slo.Indicator.Threshold.Rate > 0:
				s.AddAmount(at, p.Sum())
			case outcome == outcomeUnknown:
				s.AddUnknown(at, n)
			case outcome == outcomeExpected:
				s.AddExpected(at, p.Sum())
			default:
				return s.AddExplicit(at, bounds, buckets, n)
			}
			return true
		})
	}
	return true
}

// part finds the series that a point is a part of, and gives it the pane that the point is for.
func part[P interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
	StartTimestamp() pcommon.Timestamp
}](e *engine, b *intake.Batch, p P, add func(s *judge.Series, at int64, outcome string) bool) {
	start, end := int64(p.StartTimestamp()), int64(p.Timestamp())
	i := e.judge.IndexOf(text(p.Attributes(), labels.SLOID))
	switch {
	case start <= 0 || end <= start:
		e.intake.Counts.Refuse(intake.NoTimestamp, 1)
		return
	case e.intake.Watermark.Ahead(end, b.Now()):
		e.intake.Counts.Refuse(intake.Future, 1)
		return
	case i < 0:
		e.intake.Counts.Refuse(intake.UnknownSLO, 1)
		return
	}
	in := b.Input(p.Attributes())
	if in == nil || b.Again(in, p.StartTimestamp(), end) {
		return
	}
	values := e.heard.values[:0]
	for _, key := range e.judge.GroupBy(i) {
		values = append(values, strings.ToValidUTF8(text(p.Attributes(), key), "\uFFFD"))
	}
	e.heard.values = values
	s := e.judge.Series(i, values)
	if _, overflow := p.Attributes().Get("otel.metric.overflow"); overflow {
		s = e.judge.Overflow(i)
	}
	b.Heard(end)
	if e.judge.Late(s, start) {
		e.intake.Counts.Refuse(intake.Late, 1)
		return
	}
	if !add(s, start, text(p.Attributes(), "outcome")) {
		e.intake.Counts.Refuse(intake.LayoutLimit, 1)
		return
	}
	s.Heard(start, end)
	e.intake.Counts.Accepted++
}

// factorOf is what multiplies the boundaries of an exponential histogram: 1 where nothing is said, NaN where it is no number.
func factorOf(m pcommon.Map) float64 {
	v, ok := m.Get("factor")
	if !ok {
		return 1
	}
	factor, err := strconv.ParseFloat(v.AsString(), 64)
	if err != nil {
		return math.NaN()
	}
	return factor
}

// text is an attribute as text, "" for none.
func text(m pcommon.Map, key string) string {
	if v, ok := m.Get(key); ok {
		return v.AsString()
	}
	return ""
}
