// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/delta"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// gauge takes a value that stands for itself: one event of a threshold, a ready ratio, or, where the spec says that
// its source only grows, a counter whose type was lost on the way.
func (e *engine) gauge(b *batch, in *input, at int64, p pmetric.NumberDataPoint) {
	v := number(p)
	if !e.usable(v) {
		return
	}
	if in.bindings[0].use.Counter {
		e.counter(b, in, at, p, v, e.since(in, at, 0))
		return
	}
	give(e, b, in, at, p, p.Exemplars(), func(t *binding) reason { return add(t, at, v) })
}

// sum takes what was added to a counter. A sum that may fall is a gauge by another name.
func (e *engine) sum(b *batch, in *input, at int64, sum pmetric.Sum, p pmetric.NumberDataPoint) {
	v := number(p)
	if !e.usable(v) {
		return
	}
	switch {
	case sum.AggregationTemporality() == pmetric.AggregationTemporalityDelta:
		e.increment(b, in, at, p, v, at-int64(p.StartTimestamp()))
	case !sum.IsMonotonic():
		give(e, b, in, at, p, p.Exemplars(), func(t *binding) reason { return add(t, at, v) })
	default:
		e.counter(b, in, at, p, v, e.since(in, at, p.StartTimestamp()))
	}
}

// counter takes the value of a cumulative counter.
func (e *engine) counter(b *batch, in *input, at int64, p pmetric.NumberDataPoint, v float64, at0 delta.Point) {
	before := in.number.Last()
	if before == 0 {
		before = at0.Start
	}
	added, outcome := in.number.Add(at0, v)
	if e.happened(outcome) {
		e.increment(b, in, at, p, added, at-before)
	}
}

// increment takes what was added to a counter over a span of time. A threshold is on its rate a second.
func (e *engine) increment(b *batch, in *input, at int64, p pmetric.NumberDataPoint, added float64, span int64) {
	if added < 0 {
		e.counts.refuse(negative, 1)
		return
	}
	give(e, b, in, at, p, p.Exemplars(), func(t *binding) reason {
		if t.use.Role != selection.Value {
			return add(t, at, added)
		}
		if span <= 0 {
			return noInterval
		}
		return add(t, at, added/time.Duration(span).Seconds())
	})
}

// add gives one value to a judged series.
func add(t *binding, at int64, v float64) reason {
	switch t.use.Role {
	case selection.Value:
		if !t.series.AddValue(at, v*t.scale) {
			return layoutLimit
		}
	case selection.RawSuccess:
		t.series.AddRatio(at, v*t.scale, 1)
	case selection.RawFailure:
		t.series.AddRatio(at, 1-v*t.scale, 1)
	default:
		return addCount(t, at, v)
	}
	return none
}

// addCount gives a number of events to a ratio.
func addCount(t *binding, at int64, n float64) reason {
	switch t.use.Role {
	case selection.Good:
		t.series.AddRatio(at, n, 0)
	case selection.Bad:
		t.series.AddRatio(at, -n, 0) // good = total − bad
	case selection.Total:
		good := 0.0
		if t.series.SLO().Indicator.Ratio.Bad != nil {
			good = n
		}
		t.series.AddRatio(at, good, n)
	default:
		return unsupportedShape // a ready ratio is no distribution
	}
	return none
}

func (e *engine) histogram(b *batch, in *input, at int64, temporality pmetric.AggregationTemporality, p pmetric.HistogramDataPoint) {
	bounds, counts := in.ownBounds(p.ExplicitBounds()), e.input.copyCounts(p.BucketCounts())
	if len(counts) == 0 && len(bounds) == 0 { // OTLP allows a histogram of a count and a sum alone
		counts = append(counts, p.Count())
	}
	if !sketch.Valid(bounds, counts) {
		e.counts.refuse(badBuckets, 1)
		return
	}
	if total(counts) != p.Count() {
		e.counts.refuse(countMismatch, 1)
		return
	}
	if temporality == pmetric.AggregationTemporalityCumulative {
		added, outcome := in.explicit.Add(e.since(in, at, p.StartTimestamp()), bounds, counts)
		if !e.happened(outcome) {
			return
		}
		counts = added
	}
	give(e, b, in, at, p, p.Exemplars(), func(t *binding) reason {
		if t.use.Role != selection.Value {
			return addCount(t, at, float64(total(counts)))
		}
		if !t.series.AddExplicit(at, in.inBase(bounds, t.scale), counts) {
			return layoutLimit
		}
		return none
	})
}

func (e *engine) exponential(b *batch, in *input, at int64, temporality pmetric.AggregationTemporality, p pmetric.ExponentialHistogramDataPoint) {
	h := &e.input.exponential
	h.Scale, h.ZeroCount, h.ZeroThreshold, h.Factor = p.Scale(), p.ZeroCount(), p.ZeroThreshold(), 1
	copyBuckets(&h.Positive, p.Positive())
	copyBuckets(&h.Negative, p.Negative())
	if !h.Valid() {
		e.counts.refuse(badBuckets, 1)
		return
	}
	if h.Count() != p.Count() {
		e.counts.refuse(countMismatch, 1)
		return
	}
	if temporality == pmetric.AggregationTemporalityCumulative {
		added, outcome := in.exponential.Add(e.since(in, at, p.StartTimestamp()), h)
		if !e.happened(outcome) {
			return
		}
		h = added
	}
	give(e, b, in, at, p, p.Exemplars(), func(t *binding) reason {
		if t.use.Role != selection.Value {
			return addCount(t, at, float64(h.Count()))
		}
		h.Factor = t.scale
		if !t.series.AddExponential(at, h) {
			return layoutLimit
		}
		return none
	})
}

// since places a cumulative point: its first counts as a whole only if the series began in the pane of the point.
func (e *engine) since(in *input, at int64, start pcommon.Timestamp) delta.Point {
	since := int64(math.MinInt64)
	for i := range in.bindings {
		since = max(since, e.judge.PaneStart(in.bindings[i].slo, at))
	}
	return delta.Point{Start: int64(start), Time: at, Since: since}
}

// happened reports whether a cumulative point tells of new events, and counts it where it does not.
func (e *engine) happened(outcome delta.Outcome) bool {
	switch outcome {
	case delta.Baseline:
		e.counts.refuse(baseline, 1)
	case delta.Reset:
		e.counts.refuse(reset, 1)
	case delta.Stale:
		e.counts.refuse(stale, 1)
	default:
		return true
	}
	return false
}

// usable refuses what is no measurement: some engines write −1 for "not known".
func (e *engine) usable(v float64) bool {
	switch {
	case math.IsNaN(v), math.IsInf(v, 0):
		e.counts.refuse(notFinite, 1)
	case v == -1:
		e.counts.refuse(sentinel, 1)
	default:
		return true
	}
	return false
}

func number(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}

// addExemplars offers the traces behind a point. A scraped exemplar stays until the next one replaces it, so its own time
// decides whether it is of this window.
func (e *engine) addExemplars(t *binding, at int64, all pmetric.ExemplarSlice) {
	for _, x := range all.All() {
		if when := int64(x.Timestamp()); when != 0 && e.judge.PaneStart(t.slo, when) != e.judge.PaneStart(t.slo, at) {
			continue
		}
		v := x.DoubleValue()
		if x.ValueType() == pmetric.ExemplarValueTypeInt {
			v = float64(x.IntValue())
		}
		t.series.AddExemplar(at, judge.Exemplar{TraceID: x.TraceID(), SpanID: x.SpanID(), Value: v * t.scale})
	}
}

// ownBounds returns boundaries that the input owns: its own where they are the same as last time. Whoever was given
// the old ones may keep them, so they are never written to.
func (in *input) ownBounds(bounds pcommon.Float64Slice) []float64 {
	same := bounds.Len() == len(in.bounds)
	for i := 0; same && i < len(in.bounds); i++ {
		same = in.bounds[i] == bounds.At(i)
	}
	if !same {
		in.bounds = slices.Clone(bounds.AsRaw())
	}
	return in.bounds
}

func (s *scratch) copyCounts(counts pcommon.UInt64Slice) []uint64 {
	s.counts = s.counts[:0]
	for i := range counts.Len() {
		s.counts = append(s.counts, counts.At(i))
	}
	return s.counts
}

func copyBuckets(to *sketch.Buckets, from pmetric.ExponentialHistogramDataPointBuckets) {
	to.Offset = from.Offset()
	to.Counts = to.Counts[:0]
	for i := range from.BucketCounts().Len() {
		to.Counts = append(to.Counts, from.BucketCounts().At(i))
	}
}

func total(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}
