// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/delta"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// number takes a value that stands for itself: one event of a threshold, a ready ratio, an amount. A use whose spec says that
// its source only grows takes what was added, even where the type was lost on the way.
func (e *engine) number(b *batch, in *input, at int64, p pmetric.NumberDataPoint, rising bool, start pcommon.Timestamp) {
	v, why := valueOf(p)
	if why != none {
		e.counts.refuse(why, 1)
		return
	}
	var added float64
	var span int64
	outcome := delta.Added
	if rising || in.counts {
		before := in.number.Last()
		if before == 0 {
			before = int64(start)
		}
		added, outcome = in.number.Add(e.since(in, at, start), v)
		span = at - before
	}
	e.give(b, in, at, p.Exemplars(), func(t *binding) reason {
		if !rising && !t.use.Counter {
			return add(t, at, v)
		}
		if why := reasonOf(outcome); why != none {
			return why
		}
		return increase(t, at, added, span)
	})
}

// sum takes a point of a sum. One that may fall is a gauge by another name.
func (e *engine) sum(b *batch, in *input, at int64, sum pmetric.Sum, p pmetric.NumberDataPoint) {
	if sum.AggregationTemporality() == pmetric.AggregationTemporalityCumulative {
		e.number(b, in, at, p, sum.IsMonotonic(), p.StartTimestamp())
		return
	}
	v, why := valueOf(p)
	if why != none {
		e.counts.refuse(why, 1)
		return
	}
	span := int64(0)
	if p.StartTimestamp() != 0 {
		span = at - int64(p.StartTimestamp())
	}
	e.give(b, in, at, p.Exemplars(), func(t *binding) reason { return increase(t, at, v, span) })
}

// increase takes what was added to a counter over a span of time. A threshold is on its rate a second.
func increase(t *binding, at int64, added float64, span int64) reason {
	switch {
	case t.use.Role != selection.Value:
		return add(t, at, added)
	case added < 0:
		return negative
	case span <= 0:
		return noInterval
	default:
		return add(t, at, added/time.Duration(span).Seconds())
	}
}

// add gives one value to a judged series.
func add(t *binding, at int64, v float64) reason {
	switch t.use.Role {
	case selection.Value:
		if !t.series.AddValue(at, v*t.scale) {
			return layoutLimit
		}
		return none
	case selection.RawSuccess, selection.RawFailure:
		good := v * t.scale
		if t.use.Role == selection.RawFailure {
			good = 1 - good
		}
		if good < -ratioSlack || good > 1+ratioSlack {
			return outOfRange
		}
		t.series.AddRaw(at, good)
		return none
	default:
		return addCount(t, at, v)
	}
}

// ratioSlack keeps rounding from putting a ratio out of range.
const ratioSlack = 1e-9

// addCount gives a number of events to a ratio.
func addCount(t *binding, at int64, n float64) reason {
	if n < 0 {
		return negative
	}
	switch t.use.Role {
	case selection.Good:
		t.series.AddGood(at, n)
	case selection.Bad:
		t.series.AddBad(at, n)
	case selection.Total:
		t.series.AddTotal(at, n)
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
	n, ok := sketch.Total(counts)
	if !ok || !sketch.Valid(bounds, counts) {
		e.counts.refuse(badBuckets, 1)
		return
	}
	if n != p.Count() {
		e.counts.refuse(countMismatch, 1)
		return
	}
	if temporality == pmetric.AggregationTemporalityCumulative {
		added, outcome := in.explicit.Add(e.since(in, at, p.StartTimestamp()), bounds, counts, e.input.added)
		e.input.added = added
		if why := reasonOf(outcome); why != none {
			e.counts.refuse(why, 1)
			return
		}
		counts = added
		n, _ = sketch.Total(counts)
	}
	e.give(b, in, at, p.Exemplars(), func(t *binding) reason {
		if t.use.Role != selection.Value {
			return addCount(t, at, float64(n))
		}
		if !t.series.AddExplicit(at, in.inBase(bounds, t.scale), counts, n) {
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
	if !h.Normalize() {
		e.counts.refuse(badBuckets, 1)
		return
	}
	if h.Count() != p.Count() {
		e.counts.refuse(countMismatch, 1)
		return
	}
	if temporality == pmetric.AggregationTemporalityCumulative {
		added := &e.input.addedExponential
		if why := reasonOf(in.exponential.Add(e.since(in, at, p.StartTimestamp()), h, added)); why != none {
			e.counts.refuse(why, 1)
			return
		}
		h = added
	}
	n := h.Count()
	e.give(b, in, at, p.Exemplars(), func(t *binding) reason {
		if t.use.Role != selection.Value {
			return addCount(t, at, float64(n))
		}
		h.Factor = t.scale
		if !t.series.AddExponential(at, h, n) {
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

// reasonOf says why a cumulative point tells of no new events, none if it does.
func reasonOf(outcome delta.Outcome) reason {
	switch outcome {
	case delta.Baseline:
		return baseline
	case delta.Reset:
		return reset
	case delta.Stale:
		return stale
	default:
		return none
	}
}

// valueOf is the value of a point, or why it is no measurement: some engines write −1 for "not known".
func valueOf(p pmetric.NumberDataPoint) (v float64, why reason) {
	switch p.ValueType() {
	case pmetric.NumberDataPointValueTypeInt:
		v = float64(p.IntValue())
	case pmetric.NumberDataPointValueTypeDouble:
		v = p.DoubleValue()
	default:
		return 0, noValue
	}
	switch {
	case math.IsNaN(v), math.IsInf(v, 0):
		return 0, notFinite
	case v == -1:
		return 0, sentinel
	default:
		return v, none
	}
}

// addExemplars offers the traces behind a point. A scraped exemplar stays until the next one replaces it, so its own time
// decides whether it is of this window.
// Of a ratio only what is bad can be a witness.
func (e *engine) addExemplars(t *binding, at int64, all pmetric.ExemplarSlice) {
	if t.use.Role != selection.Value && t.use.Role != selection.Bad {
		return
	}
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
		in.bounds = bounds.AsRaw() // a copy
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
